"""``llamarig plan`` and ``llamarig model`` as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from llamarig.cli import context
from llamarig.cli.plan_view.terminal import show_alternatives
from llamarig.gguf import read_header, write_sidecar
from tests.support.tiny_models import write_llama, write_qwen35

ROOT = Path(__file__).resolve().parents[3]
SPEC = """\
schema-version: 1
host: {host}
os: {{distribution: debian, release: "13"}}
memory: {{total-mib: {ram}}}
engine:
  commit: 4df29be4f
  build-number: 10454
  source: {{sdist: llama_cpp_python==0.3.35, sha256: unlocked}}
  backend: cpu
models:
  tiny: {{controller-path: tiny.gguf, sha256: unlocked, size: unlocked}}
services:
  chat: {{model: tiny, context: 4096, listen: {{port: 8080}}, speculation: {{type: draft-mtp}}}}
"""


def rig(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, PYTHONPATH=str(ROOT), XDG_CACHE_HOME=str(project / "cache"), COLUMNS="200")
    return subprocess.run(
        [sys.executable, "-m", "llamarig.cli.main", "-C", str(project), *words],
        capture_output=True, text=True, env=environment, cwd=project, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    (root / "inventory").mkdir()
    (root / "inventory" / "box.yml").write_text(SPEC.format(host="box", ram=16_000))
    (root / "inventory" / "small.yml").write_text(SPEC.format(host="small", ram=2100))
    write_qwen35(root / "tiny.gguf")
    write_llama(root / "llama.gguf")
    return root


def test_a_plan_for_people(project: Path) -> None:
    done = rig(project, "plan", "box", "--argv")
    assert done.returncode == 0, done.stderr
    for word in ("box fits", "recurrent-state", "draft-kv-cache", "--spec-type draft-mtp"):
        assert word in done.stdout
    lines = done.stdout.splitlines()
    assert "  --spec-type draft-mtp \\" in lines
    assert max(len(line) for line in lines if line.endswith("\\")) < 100


def test_a_plan_for_programs_and_its_exit_status(project: Path) -> None:
    fits, refused = rig(project, "plan", "box", "--json"), rig(project, "plan", "small", "--json")
    assert (fits.returncode, refused.returncode) == (0, 1)
    assert json.loads(fits.stdout)["fits"] is True
    data = json.loads(refused.stdout)
    assert data["fits"] is False
    assert data["findings"][0]["code"] == "ram-does-not-fit"
    every = rig(project, "plan", "--all", "--json")
    assert every.returncode == 1
    assert {each["host"] for each in json.loads(every.stdout)["hosts"]} == {"box", "small"}


def test_memory_of_any_file_without_a_spec(project: Path) -> None:
    words = ["model", "memory", "tiny.gguf", "--context", "8192", "--backend", "cpu", "--n-max", "3", "--json"]
    done = rig(project, *words)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert list(data) == ["architecture", "components", "total-mib"]
    assert data["architecture"] == "qwen35"
    assert list(data["components"]) == [
        "weights", "kv-cache", "recurrent-state", "draft-weights", "draft-kv-cache", "compute", "draft-compute",
        "projector", "process",
    ]  # fmt: skip
    assert data["components"]["kv-cache"] == data["components"]["draft-kv-cache"] == 4.0
    assert data["total-mib"] == pytest.approx(sum(data["components"].values()), abs=0.05)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["memory", "llama.gguf", "--context", "4096", "--n-max", "3"], "needs an MTP head"),
        (["memory", "tiny.gguf", "--context", "4096", "--backend", "rocm"], "--backend is 'rocm'"),
        (["memory", "tiny.gguf", "--context", "4096", "--cache-k", "q6_K"], "no KV cache type"),
        (["memory", "tiny.gguf", "--context", "4096", "--engine", "latest"], "--engine is 'latest', which is no build"),
        (["memory", "none.gguf", "--context", "4096"], "name a GGUF file"),
        (["header", "inventory/box.yml"], "not a GGUF file"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(project: Path, words: list[str], message: str) -> None:
    done = rig(project, "model", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_header_for_people_and_programs(project: Path) -> None:
    shown = rig(project, "model", "header", "tiny.gguf", "--tensors")
    assert shown.returncode == 0
    assert "qwen35.nextn_predict_layers = 1" in shown.stdout
    assert "token_embd.weight  F16  320 x 320" in shown.stdout
    data = json.loads(rig(project, "model", "header", "tiny.gguf", "--json").stdout)
    assert data["architecture"] == "qwen35"
    assert data["size"] == (project / "tiny.gguf").stat().st_size


def test_a_sidecar_serves_as_well(project: Path) -> None:
    sidecar = write_sidecar(read_header(project / "tiny.gguf"), "ab" * 32, project / "headers")
    of_file, of_sidecar = (
        json.loads(rig(project, "model", "memory", str(path), "--context", "8192", "--json").stdout)
        for path in ("tiny.gguf", sidecar)
    )
    assert of_file == of_sidecar


def test_a_plan_without_a_header_says_first_what_is_not_known(project: Path, tmp_path: Path) -> None:
    (tmp_path / "box.yml").write_text(
        SPEC.format(host="box", ram=16_000).replace(", speculation: {type: draft-mtp}", "")
    )
    done = rig(tmp_path, "plan", "box")
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[0] == "box not known: the model's header is missing, run `llamarig lock box`"
    said = json.loads(rig(tmp_path, "plan", "box", "--json").stdout)
    assert (said["fits"], said["known"]) == (False, False)


def test_model_memory_says_whether_a_card_holds_it(project: Path) -> None:
    words = ["model", "memory", "tiny.gguf", "--context", "4096", "--gpu", "rtx-4090"]
    done = rig(project, *words)
    assert done.returncode == 0, done.stderr
    assert "rtx-4090 fits: " in done.stdout
    assert "of 24,080 MiB usable" in done.stdout
    card = json.loads(rig(project, *words, "--json").stdout)["card"]
    assert (card["gpu"], card["fits"], card["margin-mib"]) == ("rtx-4090", True, 512.0)
    huge = rig(project, *words[:4], "200000000", *words[5:])
    assert huge.returncode == 1, huge.stderr
    assert "rtx-4090 does not fit: " in huge.stdout


def test_model_memory_takes_layers_off_the_card(project: Path) -> None:
    words = ["model", "memory", "tiny.gguf", "--context", "4096", "--json"]
    whole, none = (json.loads(rig(project, *words, *more).stdout) for more in ([], ["--gpu-layers", "0"]))
    assert none["components"]["weights"] < whole["components"]["weights"]
    assert none["ram"]["weights"] > whole["ram"]["weights"]


def test_model_memory_offers_cards_that_there_are(project: Path) -> None:
    done = rig(project, "model", "memory", "tiny.gguf", "--context", "4096", "--gpu", "rtx-4090-ti")
    assert done.returncode == 2
    assert "did you mean rtx-4090 or" in done.stderr
    both = rig(project, "model", "memory", "tiny.gguf", "--context", "4096", "--gpu", "rtx-4090", "--backend", "cpu")
    assert "--gpu is given with --backend cpu" in both.stderr


def test_alternatives_are_written_as_in_a_spec(capsys: pytest.CaptureFixture[str]) -> None:
    entries = [
        {"service": "chat", "change": {"context": 8192}, "harm": "a shorter window", "free-mib": {}},
        {"service": "chat", "change": {"kv-cache": {"k": "q8_0", "v": "q8_0"}}, "harm": "less", "free-mib": {"a": 7.0}},
        {"service": "chat", "change": {"speculation": None, "flash": True}, "harm": "slower", "free-mib": {}},
    ]
    context._console.cache_clear()
    show_alternatives(SimpleNamespace(alternatives=entries))  # type: ignore[arg-type] # the part that is shown
    context._console.cache_clear()
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  chat: context: 8192 (a shorter window)",
        "  chat: kv-cache: {k: q8_0, v: q8_0} (less; 7 MiB free on a)",
        "  chat: speculation: null, flash: true (slower)",
    ]


def test_tables_have_no_blanks_at_line_ends(project: Path) -> None:
    assert [line for line in rig(project, "plan", "--all").stdout.splitlines() if line != line.rstrip()] == []


def test_an_empty_project_is_told_of_init(tmp_path: Path) -> None:
    done = rig(tmp_path, "plan", "box")
    assert done.returncode == 2
    assert "llamarig init" in done.stderr


def test_the_help_of_memory_names_its_default_and_has_no_raw_quotes(project: Path) -> None:
    shown = rig(project, "model", "memory", "--help").stdout
    assert "`" not in shown
    assert "on a CUDA card, or in RAM with --backend cpu" in " ".join(shown.split())
