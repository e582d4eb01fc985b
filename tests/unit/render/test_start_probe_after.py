from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.rendering import probe as support
from tests.support.rendering.probe import Behaviour, serving

probe = support.load()
DEAD = 2**22 - 3
"""A process number above any that Linux gives by default."""


def after(tmp_path: Path, behaviour: Behaviour, pid: int | None = None, **changed: object) -> None:
    with serving(behaviour) as port:
        probe.after(support.config(tmp_path, port, **changed), os.getpid() if pid is None else pid)


def refused(tmp_path: Path, behaviour: Behaviour, pid: int | None = None, **changed: object) -> str:
    with pytest.raises(probe.Refusal) as caught:
        after(tmp_path, behaviour, pid, **changed)
    assert caught.value.status == 1
    return str(caught.value)


def test_a_sound_server_passes_and_is_asked_in_this_order(tmp_path: Path) -> None:
    behaviour = Behaviour(loading=2)
    after(tmp_path, behaviour)
    chat = "/v1/chat/completions"
    assert behaviour.asked == [
        ("/health", None),
        ("/health", None),
        ("/health", None),
        (chat, None),
        (chat, "Bearer " + "x" * 40),
        (chat, "Bearer " + support.KEY),
    ]


def test_a_server_that_answers_without_a_key_is_refused(tmp_path: Path) -> None:
    assert "without a key got 200 instead of 401" in refused(tmp_path, Behaviour(keys=()))


def test_a_server_that_takes_any_key_is_refused(tmp_path: Path) -> None:
    assert "with a wrong key got 200" in refused(tmp_path, Behaviour(keys=(support.KEY, "x" * 40)))


def test_a_server_that_refuses_its_own_key_is_refused(tmp_path: Path) -> None:
    assert "gave 401" in refused(tmp_path, Behaviour(keys=("another",)))


def test_a_server_that_never_gets_ready_is_given_up(tmp_path: Path) -> None:
    assert "not ready in time: /health says 503" in refused(tmp_path, Behaviour(loading=10**6), **{"timeout-s": 0.6})


def test_a_server_that_never_listens_is_given_up(tmp_path: Path) -> None:
    config = support.config(tmp_path, support.free_port(), **{"timeout-s": 0.6})
    with pytest.raises(probe.Refusal, match="not ready in time"):
        probe.after(config, os.getpid())


def test_a_health_that_is_neither_ready_nor_loading_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, Behaviour(health=500)) == "/health says 500"


def test_a_server_that_died_is_noticed_at_once(tmp_path: Path) -> None:
    assert "ended while it was starting" in refused(tmp_path, Behaviour(), DEAD)


def test_answers_of_another_process_do_not_count(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as child:

        def die() -> None:
            child.kill()
            child.wait()

        assert "another process" in refused(tmp_path, Behaviour(on_health=die), child.pid)


def test_a_chat_without_text_falls_back_to_a_raw_completion(tmp_path: Path) -> None:
    behaviour = Behaviour(chat=(501, {"error": "no template"}))
    after(tmp_path, behaviour)
    assert behaviour.asked[-1] == ("/completion", "Bearer " + support.KEY)


def test_reasoning_counts_as_text(tmp_path: Path) -> None:
    answer = {"choices": [{"message": {"content": "", "reasoning_content": "hm"}}]}
    after(tmp_path, Behaviour(chat=(200, answer), raw=(500, {})))


@pytest.mark.parametrize(
    "raw",
    [(200, {"content": "  "}), (200, b"<html>"), (200, []), (500, {"error": "CUDA error"}), (200, {"choices": []})],
)
def test_no_text_at_all_is_refused(tmp_path: Path, raw: tuple[int, object]) -> None:
    message = refused(tmp_path, Behaviour(chat=(200, {"choices": [{"message": {"content": ""}}]}), raw=raw))
    assert message.startswith("no completion with text: /v1/chat/completions gave 200")
    assert f"/completion gave {raw[0]}" in message


def test_an_open_server_must_not_answer_foreign_pages(tmp_path: Path) -> None:
    after(tmp_path, Behaviour(keys=()), keys=None)
    for origin in ("*", "https://start-probe.invalid"):
        assert "CORS is open" in refused(tmp_path, Behaviour(keys=(), origin=origin), keys=None)


def test_a_unix_socket_is_probed_like_a_port(tmp_path: Path) -> None:
    path = tmp_path / "api.sock"
    behaviour = Behaviour()
    with serving(behaviour, unix=path):
        probe.after(support.config(tmp_path, 0, address=str(path), connect=str(path)), os.getpid())
    assert behaviour.asked[-1][1] == "Bearer " + support.KEY
    with serving(Behaviour(keys=()), unix=tmp_path / "open.sock"):
        config = support.config(tmp_path, 0, connect=str(tmp_path / "open.sock"))
        with pytest.raises(probe.Refusal, match="instead of 401"):
            probe.after(config, os.getpid())


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    made = {}
    for name in ("own", "foreign"):
        place = tmp_path_factory.mktemp(name)
        made[name] = (place / "cert.pem", place / "key.pem")
        command = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            f"/CN={name}.test",
        ]
        subprocess.run(
            [*command, "-out", str(made[name][0]), "-keyout", str(made[name][1])], check=True, capture_output=True
        )
    return made


def test_tls_is_pinned_to_the_units_own_certificate(tmp_path: Path, certificates: dict[str, tuple[Path, Path]]) -> None:
    behaviour = Behaviour()
    with serving(behaviour, certificate=certificates["own"]) as port:
        probe.after(support.config(tmp_path, port, certificate=str(certificates["own"][0])), os.getpid())
        assert behaviour.asked[-1] == ("/v1/chat/completions", "Bearer " + support.KEY)
        count = len(behaviour.asked)
        config = support.config(tmp_path, port, certificate=str(certificates["foreign"][0]))
        with pytest.raises(probe.Refusal, match="another certificate"):
            probe.after(config, os.getpid())
        assert len(behaviour.asked) == count, "nothing, above all no key, was sent to the stranger"


def test_a_certificate_that_is_none_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("nothing")
    with pytest.raises(probe.Refusal, match="certificate cannot be read") as caught:
        probe.leaf(str(tmp_path / "cert.pem"))
    assert caught.value.status == 78


def test_what_a_server_answers_stays_printable_and_short(capsys: pytest.CaptureFixture[str]) -> None:
    probe.say("a\x1b[31m\nb" + "c" * 5000)
    line = capsys.readouterr().err
    assert line.startswith("start-probe: a?[31m?b")
    assert len(line) < 2100
    assert line.count("\n") == 1


def test_as_a_command_it_takes_the_pid_from_systemd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(Behaviour()) as port:
        path = tmp_path / "chat.json"
        path.write_text(json.dumps(support.config(tmp_path, port)))
        monkeypatch.setenv("MAINPID", str(os.getpid()))
        assert probe.main(["start-probe", "after", str(path)]) == 0
        monkeypatch.setenv("MAINPID", str(DEAD))
        assert probe.main(["start-probe", "after", str(path)]) == 1
    assert "ready, and it answers with text" in capsys.readouterr().err
