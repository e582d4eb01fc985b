"""A whole session without a card, with a stand-in for the server: from the command line to the report."""

from __future__ import annotations

import copy
import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from llamarig.converge.store.shelf import sha256_of
from scripts.gpu_check import files, main, project
from scripts.gpu_check.report import Report
from tests.support.tiny_models import write_qwen35

SERVER = """#!PYTHON
import http.server, json, sys
words = sys.argv
port = int(words[words.index("--port") + 1])
key = open(words[words.index("--api-key-file") + 1]).read().strip()
print("x:        CPU KV buffer size = 1.25 MiB", flush=True)

class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
    def do_GET(self):
        self.answer(200, {})
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Authorization") != "Bearer " + key:
            return self.answer(401, {})
        text = {"message": {"content": "This small model"}}
        self.answer(200, {"choices": [text], "timings": {"draft_n": 8, "draft_n_accepted": 8}})

http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A release whose server is the stand-in, and a model for both services that is at hand."""
    tiny = write_qwen35(tmp_path / "model.gguf")
    given: dict[str, Any] = copy.deepcopy(project.reference())
    given["models"]["smol"] |= {"sha256": sha256_of(tiny), "size": tiny.stat().st_size}
    monkeypatch.setattr(project, "reference", lambda: given)
    monkeypatch.setattr(files, "model", lambda *_: tiny)
    program = tmp_path / "release/bin/llama-server"
    program.parent.mkdir(parents=True)
    program.write_text(SERVER.replace("PYTHON", sys.executable))
    program.chmod(0o755)
    return program.parent.parent


def test_a_session_ends_in_a_report_that_says_what_differs(
    engine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work, out = tmp_path / "models-of-it/work", tmp_path / "report.json"
    words = ["--backend", "cpu", "--no-units", "--engine", str(engine), "--work", str(work), "--out", str(out)]
    assert main.main(words) == 1
    captured = capsys.readouterr()
    report = Report.model_validate(json.loads(captured.out))
    assert out.read_text() == captured.out
    answers = {verdict.question: verdict.answer for verdict in report.verdicts}
    for service in (project.SMOL, project.MTP):
        assert answers[f"{service}/serves"] == "yes"
        assert answers[f"{service}/asks-for-a-key"] == "yes"
        assert answers[f"{service}/memory-kv-cache"] == "no"
        assert report.services[service].engine_mib == {"KV": {"CPU": 1.25}}
        assert not report.services[service].sandboxed
        assert f"differs: {service}/memory-kv-cache" in captured.err
    assert (report.services[project.MTP].drafted, report.services[project.MTP].accepted) == (8, 8)
    assert answers[f"{project.MTP}/drafts-are-accepted"] == "yes"
    assert answers["sandbox/PrivateUsers=yes"] == answers["build/machine-code"] == "not-asked"
    assert report.card is None
    keys = work / "etc/keys"
    assert stat.S_IMODE(keys.stat().st_mode) == 0o700
    assert not [path for path in keys.iterdir() if path.read_text().strip() in captured.out + captured.err]


def test_a_server_that_ends_is_a_no_with_its_own_words(
    engine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (engine / "bin/llama-server").write_text("#!/bin/sh\necho 'no usable GPU found'\nexit 3\n")
    words = ["--backend", "cpu", "--no-units", "--engine", str(engine), "--work", str(tmp_path / "w/work")]
    assert main.main(words) == 1
    report = Report.model_validate(json.loads(capsys.readouterr().out))
    [served] = [verdict for verdict in report.verdicts if verdict.question == f"{project.SMOL}/serves"]
    assert served.answer == "no"
    assert "ended with 3" in served.detail
    assert "no usable GPU found" in served.detail
