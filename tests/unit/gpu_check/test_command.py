"""``scripts/gpu-check`` where it cannot ask, what it takes from a directory, and how it builds."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from llamarig.converge.store.shelf import Shelf
from llamarig.render.wanted import WantedRelease
from scripts.gpu_check import engine, files, main
from scripts.gpu_check.words import CannotAskError

ROOT = Path(__file__).resolve().parents[3]


def test_without_nvidia_smi_it_ends_with_2_and_says_what_to_do(tmp_path: Path) -> None:
    for name in ("dirname", "sh"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    done = subprocess.run(
        [str(ROOT / "scripts/gpu-check")], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "there is no nvidia-smi" in done.stderr
    assert "--backend cpu" in done.stderr
    assert done.stdout == ""


def typed(*words: str, python: str = "/bin/echo") -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "GPU_CHECK_PYTHON": python}
    command = [str(ROOT / "scripts/gpu-check"), *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_wheels_may_be_named_anywhere_and_reach_pip_alone(tmp_path: Path) -> None:
    done = typed("--backend", "cpu", "--wheels", str(tmp_path), "--out", "a b")
    assert done.stdout == "-m scripts.gpu_check.main --backend cpu --out a b\n"
    shown = tmp_path / "shown"
    shown.write_text('#!/bin/sh\necho "$PIP_NO_INDEX $PIP_FIND_LINKS"\n')
    shown.chmod(0o755)
    assert typed("--wheels", str(tmp_path), "--help", python=str(shown)).stdout == f"1 {tmp_path}\n"


@pytest.mark.parametrize("words", [("--wheels",), ("--wheels", "/nonexistent")])
def test_wheels_without_a_directory_are_refused(words: tuple[str, ...]) -> None:
    done = typed(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--wheels names no directory" in done.stderr


def test_the_program_itself_says_so_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main.main([]) == 2
    assert "there is no nvidia-smi" in capsys.readouterr().err


def test_a_place_that_a_sandbox_hides_is_refused(tmp_path: Path) -> None:
    options = main.parse(["--work", "/root/x"])
    with pytest.raises(CannotAskError, match="hidden from a confined server"):
        main.work_of(options, units=True)
    assert main.work_of(main.parse(["--work", str(tmp_path / "w")]), units=False) == tmp_path / "w"


def test_files_are_taken_by_their_content(tmp_path: Path) -> None:
    shelf, folder = Shelf(tmp_path / "shelf"), tmp_path / "brought"
    folder.mkdir()
    (folder / "any-name.whl").write_bytes(b"wanted")
    (folder / "other.whl").write_bytes(b"not wanted")
    wanted = {hashlib.sha256(b"wanted").hexdigest(): "a wheel"}
    assert files.take_in(shelf, folder, wanted) == ["a wheel"]
    assert shelf.get(next(iter(wanted))) is not None
    with pytest.raises(CannotAskError, match="no directory"):
        files.take_in(shelf, tmp_path / "gone", wanted)


def release(*cmake: str) -> WantedRelease:
    return WantedRelease(
        id="x", label="x", commit="c", build_number=1, source={}, patches=(), cmake=cmake, targets=("llama-server",),
        job_mib=1, jobs=None, backend="cuda", inputs={}, flags=(),
    )  # fmt: skip


def test_the_planned_options_meet_the_toolkit_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    planned = release(
        "-DCMAKE_INSTALL_RPATH=$ORIGIN/../lib",
        "-DCMAKE_CUDA_ARCHITECTURES=90-real",
        "-DCMAKE_CUDA_HOST_COMPILER=g++-14",
        "-DCMAKE_CUDA_COMPILER=/opt/llamarig/cuda/13.0.88/bin/nvcc",
        "-DCUDAToolkit_ROOT=/opt/llamarig/cuda/13.0.88",
    )
    assert engine.options(planned, engine.Compiler(Path("/usr/local/cuda"), "13.0.88")) == [
        "-DCMAKE_CUDA_ARCHITECTURES=90-real",
        "-DCMAKE_CUDA_COMPILER=/usr/local/cuda/bin/nvcc",
        "-DCUDAToolkit_ROOT=/usr/local/cuda",
        "-DCMAKE_INSTALL_RPATH=$ORIGIN/../lib;/usr/local/cuda/lib64",
    ]


def test_missing_tools_are_named_as_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None if name == "ninja" else name)
    with pytest.raises(CannotAskError) as caught:
        engine.need_tools()
    assert caught.value.fix == "apt-get install ninja-build"


def test_a_directory_without_a_server_is_no_engine(tmp_path: Path) -> None:
    with pytest.raises(CannotAskError, match="holds no bin/llama-server"):
        engine.taken(tmp_path)


def test_a_library_that_is_none_is_not_taken_for_machine_code(tmp_path: Path) -> None:
    assert "No such file" in engine.machine_code(tmp_path, "89")[0]
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libggml-cuda.so").write_bytes(Path(sys.executable).resolve().read_bytes()[:100])
    assert engine.machine_code(tmp_path, "89")


def test_what_nvcc_says_is_read(tmp_path: Path) -> None:
    nvcc = tmp_path / "bin/nvcc"
    nvcc.parent.mkdir()
    nvcc.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 12.8, V12.8.93'\n")
    nvcc.chmod(0o755)
    found = engine.compiler(nvcc, Shelf(tmp_path / "shelf"), tmp_path, "89")
    assert (found.version, found.prefix) == ("12.8.93", tmp_path)
    assert main.toolkit_spec(found)["sha256"] == "unlocked"
    with pytest.raises(CannotAskError, match="is no program"):
        engine.compiler(tmp_path / "no", Shelf(tmp_path / "shelf"), tmp_path, "89")
