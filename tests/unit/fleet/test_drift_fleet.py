"""A fleet in one view: sums, what several have in common, then host by host; on a terminal, as JSON and as a page."""

from __future__ import annotations

import io
import json
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import typer

from llamarig.cli import context, drift_fix, drift_view, looked
from llamarig.cli.console import SafeConsole
from llamarig.cli.drift import drift, of_host
from llamarig.cli.drift_fix import Fixed
from llamarig.errors import ExitCode, RigError
from llamarig.fleet.drift.fleet import counts, own, shared
from llamarig.fleet.drift.host import HostDrift
from llamarig.fleet.drift.page import page
from llamarig.fleet.drift.words import record_words, summary_words
from tests.support.compare import changes
from tests.support.compare.cases import UNIT, Case

RTL, ESCAPE, TAG = "\u202ewp.exe", "\x1b]0;pwned\x07\x1b[2J", "<script>alert(1)</script><img src=x onerror=y>"
HOSTILE = f"{RTL}{ESCAPE}{TAG}[bold red]x[/]\u2066"
AWAY = RigError("cannot be reached", "away", f"ssh: {HOSTILE}", "wake it", ExitCode.HOST_FAILED)
Change = Callable[[Case], None]


def seen(name: str, *planted: Change, at: float = 1795971600.0) -> looked.Looked:
    case = Case()
    case.want(host=name)
    case.observed["record"]["host"] = name
    case.observed["changed"] = {UNIT: at}
    for change in planted:
        change(case)
    return looked.judged(case.wanted, case.observed)


def fleet() -> list[looked.Looked]:
    return [
        seen("anna", changes.edit_unit),
        seen("bert", changes.edit_unit, changes.put("packages", "cmake", value=None), at=1795975200.0),
        seen("carl"),
        looked.Looked("away", error=AWAY),
    ]


def found(hosts: list[looked.Looked]) -> list[HostDrift]:
    return [of_host(each) for each in hosts]


@pytest.fixture(autouse=True)
def own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "_printed", False)
    monkeypatch.setattr("llamarig.cli.whole_fleet.hold_fleet", lambda _command: None)
    context._console.cache_clear()


def run(monkeypatch: pytest.MonkeyPatch, hosts: list[looked.Looked], **options: Any) -> int:
    monkeypatch.setattr(looked, "look", lambda *_words, **_named: hosts)
    with pytest.raises(typer.Exit) as ended:
        drift(None, True, **options)
    return int(ended.value.exit_code)


def clean(text: str) -> None:
    assert all(ch == "\n" or unicodedata.category(ch)[0] != "C" for ch in text), ascii(text)


def test_the_sums() -> None:
    sums = counts(found(fleet()))
    assert sums.to_json() == {"hosts": 4, "as-specified": 1, "differ": 2, "not-looked-at": 1}
    assert summary_words(sums) == "4 hosts: 1 as specified, 2 differ, 1 could not be looked at"


def test_what_two_hosts_have_in_common_is_one_entry_with_the_widest_span() -> None:
    hosts = found(fleet())
    (group,) = shared(hosts)
    assert group.hosts == ("anna", "bert")
    assert group.difference.action.subject == UNIT
    assert (group.since.after, group.since.before) == ("2026-11-29T16:00:00Z", "2026-11-29T18:00:00Z")
    assert group.since.cause == "host"
    assert [each.action.subject for each in own(hosts[1], [group])] == ["cmake"]
    assert own(hosts[0], [group]) == []
    assert shared(hosts, least=3) == []


def test_a_span_is_no_more_certain_than_its_least_certain_host() -> None:
    one, two = found([seen("anna", changes.edit_unit), seen("bert", changes.edit_unit)])
    (entry,) = two.differences
    open_ended = replace(two, differences=(replace(entry, since=replace(entry.since, before=None, cause="spec")),))
    (group,) = shared([one, open_ended])
    assert (group.since.before, group.since.by, group.since.cause) == (None, "", "unknown")


def test_the_terminal_tells_the_fleet_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, fleet()) == 3
    written = capsys.readouterr()
    lines = [line for line in written.out.splitlines() if line]
    assert lines[0] == "4 hosts: 1 as specified, 2 differ, 1 could not be looked at"
    assert [line.strip() for line in lines[1:4]] == ["as specified: carl", "differ: anna, bert", "not looked at: away"]
    assert lines[4] == "[1] on 2 hosts: anna, bert"
    assert "was edited on the host" in lines[5]
    assert "between 2026-11-29T16:00:00Z (record) and 2026-11-29T18:00:00Z" in lines[5]
    record = "record of 2026-11-29T16:00:00Z from desk, run r1"
    assert lines[6] == f"anna: 1 difference, all as on other hosts: [1]  {record}"
    assert lines[7] == f"bert: 2 differences, some as on other hosts: [1]  {record}"
    assert "cmake" in lines[8]
    assert written.out.count("was edited on the host") == 1
    assert "away: cannot be reached" in written.err


def test_the_json_of_a_fleet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, fleet(), json_=True) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["summary"] == {"hosts": 4, "as-specified": 1, "differ": 2, "not-looked-at": 1}
    anna, bert, carl, away = document["hosts"]
    (entry,) = anna["drift"]
    assert set(entry) == {"subject", "expected", "observed", "reason", "since"}
    assert entry["since"] == {
        "after": "2026-11-29T16:00:00Z",
        "before": "2026-11-29T17:00:00Z",
        "by": "the last change of it",
        "cause": "host",
    }
    assert anna["record"]["run"] == "r1"
    assert len(bert["drift"]) == 2
    assert carl["drift"] == []
    assert away["drift"] == []
    assert away["error"]["what"] == "cannot be reached"


def test_a_fleet_without_drift_is_a_line_and_ends_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, [seen("anna"), seen("bert")]) == 0
    assert capsys.readouterr().out.splitlines() == ["2 hosts: 2 as specified", "  as specified: anna, bert"]


def test_hundreds_of_hosts_are_named_in_part_and_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = [seen(f"host-{at:03}", *([changes.edit_unit] if at < 100 else [])) for at in range(300)]
    assert run(monkeypatch, hosts) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "300 hosts: 200 as specified, 100 differ"
    assert lines[1].endswith("host-139 and 160 more")
    assert any(line.startswith("[1] on 100 hosts: ") and line.endswith("host-039 and 60 more") for line in lines)


def hostile_case(case: Case) -> None:
    """What a host can say that reaches the view: names, reasons, its record."""
    long = HOSTILE * 200_000
    case.observed["users"]["llama-chat"] |= {"shell": long, "groups": ["video", long]}
    case.observed["current"] = f"releases/{long}"
    case.observed["record"] |= {"applied-from": long, "run": HOSTILE, "applied-at": long}
    case.observed["files"] |= {f"/etc/llamarig/{HOSTILE}{at}": {"type": "file"} for at in range(500)}
    case.observed["record"]["files"] |= {f"/etc/llamarig/{HOSTILE}{at}": {} for at in range(500)}


def test_hostile_words_of_one_host_reach_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = [seen("evil", hostile_case), seen("anna"), looked.Looked("away", error=AWAY)]
    assert run(monkeypatch, hosts) == 3
    written = capsys.readouterr()
    clean(written.out)
    clean(written.err)
    assert len(written.out) < 600_000, "ten megabytes of a name stay on the host"
    assert "more, which --json shows" in written.out
    assert "anna" in written.out
    assert run(monkeypatch, hosts, json_=True) == 3
    raw = capsys.readouterr().out
    clean(raw)
    assert [each["host"] for each in json.loads(raw)["hosts"]] == ["evil", "anna", "away"]


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_hostile_words_of_one_host_are_only_text_on_the_page() -> None:
    hosts = found([seen("evil", hostile_case), *fleet()])
    made = page(hosts, datetime(2026, 11, 29, 18, 0, tzinfo=UTC))
    clean(made)
    read = _Tags()
    read.feed(made)
    assert not read.tags & {"script", "img", "iframe", "link", "object", "form", "base"}
    assert not any(name.startswith("on") or name in ("src", "style") for name in read.attributes)
    assert "default-src 'none'" in made
    assert len(made) < 2_000_000


def test_the_page_tells_sums_groups_records_and_errors() -> None:
    made = page(found(fleet()), datetime(2026, 11, 29, 18, 0, tzinfo=UTC))
    for words in (
        "4 hosts: 1 as specified, 2 differ, 1 could not be looked at",
        "looked at 2026-11-29 18:00 UTC",
        "record of 2026-11-29T16:00:00Z from desk, run r1",
        "cmake",
        "cannot be reached",
        'href="#shared-1"',
    ):
        assert words in made
    assert made.count("was edited on the host") == 1


def test_a_page_replaces_only_a_page_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "drift.html"
    for _ in range(2):
        assert run(monkeypatch, fleet(), html=target) == 3
        assert str(target) in capsys.readouterr().out.replace("\n", "")
    mine = tmp_path / "plan.html"
    mine.write_text("<!doctype html>\n<!-- made by llamarig plan -->\n")
    monkeypatch.setattr(looked, "look", lambda *_words, **_named: fleet())
    with pytest.raises(RigError, match="not written by `llamarig drift --html`"):
        drift(None, True, html=mine)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"state": "absent"}, "never applied"),
        ({"state": "edited"}, "its record is edited"),
        ({"state": "ok", "applied-at": "T", "applied-from": "desk", "run": "r1"}, "record of T from desk, run r1"),
        ({"state": "ok", "applied-at": "T", "applied-from": "desk"}, "record of T from desk"),
    ],
)
def test_which_record_a_host_is_held_against(record: dict[str, str], words: str) -> None:
    assert record_words(record) == words


def test_on_a_terminal_since_when_stands_below(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    console = SafeConsole(file=stream, width=100, force_terminal=True, color_system=None, highlight=False)
    for module in (drift_view, context):
        monkeypatch.setattr(module, "out", lambda: console)
    drift_view.show(found(fleet()))
    lines = stream.getvalue().splitlines()
    assert all(len(line) <= 100 for line in lines)
    text = " ".join(" ".join(lines).split())
    assert "was edited on the host" in text
    assert "changed on the host, between 2026-11-29T16:00:00Z (record)" in text


def fixed(monkeypatch: pytest.MonkeyPatch, code: ExitCode, keys: list[dict[str, str]] | None = None) -> list[str]:
    """A --fix that claims to mend; which hosts it was given is the list."""
    given: list[str] = []

    def mend(hosts: list[str], **_options: Any) -> Fixed:
        given.extend(hosts)
        return Fixed(hosts, {host: {"host": host, "ok": not code} for host in hosts}, keys or [], code)

    monkeypatch.setattr(drift_fix, "mend", mend)
    return given


def test_fix_applies_to_those_that_differ_alone_and_looks_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = fixed(monkeypatch, ExitCode.OK, [{"host": "anna", "key": "shown-once"}])
    looks: list[list[str]] = []

    def look(hosts: list[str], all_: bool, _verb: str, **_named: Any) -> list[looked.Looked]:
        looks.append(hosts)
        return fleet() if all_ else [seen(host) for host in hosts]

    monkeypatch.setattr(looked, "look", look)
    with pytest.raises(typer.Exit) as ended:
        drift(None, True, fix=True, yes=True, json_=True)
    assert ended.value.exit_code == 3, "one host is still away"
    assert given == ["anna", "bert"]
    assert looks == [[], ["anna", "bert"]]
    document = json.loads(capsys.readouterr().out)
    assert document["summary"] == {"hosts": 4, "as-specified": 3, "differ": 0, "not-looked-at": 1}
    assert [each["host"] for each in document["hosts"] if "fix" in each] == ["anna", "bert"]
    assert document["new-keys"] == [{"host": "anna", "key": "shown-once"}]


def test_a_fix_that_fails_gives_its_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fixed(monkeypatch, ExitCode.HOST_FAILED)
    assert run(monkeypatch, fleet()[:1], fix=True, yes=True, json_=True) == 3
    assert len(json.loads(capsys.readouterr().out)["drift"]) == 1, "it still differs, and is shown so"


def test_a_fleet_as_specified_is_not_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    given = fixed(monkeypatch, ExitCode.HOST_FAILED)
    assert run(monkeypatch, [seen("anna")], fix=True) == 0
    assert given == []


def test_yes_without_fix_is_refused() -> None:
    with pytest.raises(RigError, match="--yes is given without --fix"):
        drift(None, True, yes=True)
