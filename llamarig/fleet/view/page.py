"""A rollout as one page that needs nothing else: no script, no request, all that hosts say escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from llamarig.compare.text import printable
from llamarig.fleet.rollout.state import DONE, PENDING, HostState, State, Wave
from llamarig.fleet.view.words import (
    budget_words,
    checks_words,
    counts,
    counts_words,
    ordered,
    phase_words,
    shown_phases,
    status_words,
    wave_words,
)

_LONGEST = 2000
"""Characters of a reason that are shown."""
_STYLE = """
:root { color-scheme: light dark; --ground: #f5f6f8; --card: #fff; --ink: #1b1f26; --soft: #59616d; --line: #d9dde3;
  --good: #1c7a4c; --bad: #b3261e; --thin: #8a5a00; --work: #1f5fae; --rest: #b9c0ca; }
@media (prefers-color-scheme: dark) { :root { --ground: #12151a; --card: #1b1f26; --ink: #e7eaef; --soft: #a3acb9;
  --line: #343b46; --good: #74d3a1; --bad: #ff9a92; --thin: #f0c069; --work: #86b6f2; --rest: #48505c; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif;
  font-variant-numeric: tabular-nums; }
main { max-width: 1120px; margin: 0 auto; padding: 28px 20px 56px; }
h1 { font-size: 1.6rem; margin: 0 0 4px; } h2 { font-size: 1.1rem; margin: 0 0 8px; }
h1, h2, td, th, p { overflow-wrap: anywhere; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 18px;
  margin: 0 0 14px; }
p { margin: 2px 0; } .soft { color: var(--soft); font-size: .9rem; font-weight: 400; }
.good { color: var(--good); } .bad { color: var(--bad); } .thin { color: var(--thin); } .work { color: var(--work); }
.phase { font-weight: 600; white-space: nowrap; }
.bar { display: flex; height: 12px; margin: 14px 0 6px; border-radius: 6px; overflow: hidden; background: var(--rest); }
.bar span { background: currentColor; border-right: 1px solid var(--card); } .bar .soft { background: var(--rest); }
table { width: 100%; border-collapse: collapse; font-size: .94rem; table-layout: fixed; }
thead th:nth-child(1) { width: 15%; } thead th:nth-child(2) { width: 12%; } thead th:nth-child(4) { width: 21%; }
thead th:nth-child(5) { width: 14%; } thead th:nth-child(6) { width: 8%; }
th, td { text-align: left; vertical-align: top; padding: 5px 10px 5px 0; border-top: 1px solid var(--line); }
thead th { border-top: 0; color: var(--soft); font-weight: 400; font-size: .86rem; }
.number { text-align: right; white-space: nowrap; padding-right: 0; }
code { font-family: ui-monospace, monospace; font-size: .86em; }
@media (max-width: 640px) { thead { display: none; } tr { display: block; border-top: 1px solid var(--line);
  padding: 6px 0; } td, th { display: block; border: 0; padding: 1px 0; } .number { text-align: left; } }
@media print { body { background: none; } section { break-inside: avoid; } }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_COLUMNS = ("host", "phase", "why, or what was done", "release", "checks", "time")


def page(state: State) -> str:
    """The page of a rollout that may still be going on."""
    tone, words = status_words(state)
    why = f": {_text(state.reason)}" if state.reason else ""
    begun = f"{_text(state.started_at)}, last news {_text(state.updated_at)}"
    by = f" by {_text(state.by)}" if state.by else ""
    parts = [
        "<!doctype html>\n<!-- made by llamarig rollout -->\n",
        f'<html lang="en"><head><meta charset="utf-8"><title>Rollout {_text(state.id)}</title>',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body><main>",
        f'<h1>Rollout {_text(state.id)}</h1><p><span class="phase {tone}">{_text(words)}</span>{why}</p>',
        f'<p class="soft">begun {begun}{by}; {_text(budget_words(state))}</p>',
        _bar(state),
        f'<p class="soft">{_text(counts_words(state))}</p>',
    ]
    return "".join([*parts, *(_wave(wave, state) for wave in ordered(state)), "</main></body></html>\n"])


def _text(text: str, limit: int = _LONGEST) -> str:
    """Hostile text for HTML: no tag, and no sign that hides or turns what follows."""
    return escape(printable(text, limit))


def _bar(state: State) -> str:
    """Every phase as wide as its share of the hosts."""
    parts = [
        f'<span class="{phase_words(phase)[0]}" style="flex:{count}"></span>' for phase, count in counts(state).items()
    ]
    return f'<div class="bar" role="img" aria-label="{_text(counts_words(state))}">{"".join(parts)}</div>'


def _wave(wave: Wave, state: State) -> str:
    hosts = [(name, state.hosts[name]) for name in wave.hosts if name in state.hosts]
    head = f'<h2>{_text(wave.name)} <span class="soft">{_text(wave_words(wave, state))}</span></h2>'
    phases = shown_phases(state)
    if all(phases[name] == PENDING for name, _ in hosts):
        return f'<section>{head}<p class="soft">{", ".join(_text(name) for name, _ in hosts)}</p></section>'
    names = "".join(f"<th>{name}</th>" for name in _COLUMNS[:-1])
    heads = f'<thead><tr>{names}<th class="number">{_COLUMNS[-1]}</th></tr></thead>'
    rows = "".join(_row(name, host, phases[name]) for name, host in hosts)
    return f"<section>{head}<table>{heads}<tbody>{rows}</tbody></table></section>"


def _row(name: str, host: HostState, phase: str) -> str:
    tone, words = phase_words(phase)
    seconds = "" if host.seconds is None else f"{host.seconds:.1f} s"
    cells = [
        f"<th>{_text(name)}</th>",
        f'<td class="phase {tone}">{_text(words)}</td>',
        f"<td>{_done(host)}</td>",
        f"<td>{_release(host)}</td>",
        f"<td{_class(host)}>{_text(checks_words(host).replace(' checks passed', ' checks'))}</td>",
        f'<td class="number">{seconds}</td>',
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _done(host: HostState) -> str:
    if host.reason and host.phase != DONE:
        return "<br>".join(_text(line) for line in _lines(host.reason))
    return f"{host.actions} action{'' if host.actions == 1 else 's'}" if host.actions else ""


def _lines(text: str, most: int = 12) -> Sequence[str]:
    lines = text[: 4 * _LONGEST].splitlines()
    return [*lines[:most], *(["…"] if len(lines) > most else [])]


def _class(host: HostState) -> str:
    return ' class="bad"' if host.checks.get("failed") else ""


def _release(host: HostState) -> str:
    """From which to which; once where it stays."""
    former, wanted = host.from_release, host.to_release
    if host.phase == DONE and former != wanted:
        return f"<code>{_text(former or 'none', 60)}</code> → <code>{_text(wanted or 'none', 60)}</code>"
    return f"<code>{_text(former, 60)}</code>" if former else ""
