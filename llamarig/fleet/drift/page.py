"""A fleet's drift as one page that needs nothing else: no script, no request, all that hosts say escaped."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from html import escape

from llamarig.compare.text import printable
from llamarig.errors import RigError
from llamarig.fleet.drift.fleet import MOST, Shared, counts, own, shared
from llamarig.fleet.drift.host import Difference, HostDrift
from llamarig.fleet.drift.since import Since
from llamarig.fleet.drift.words import difference_words, record_words, since_words, summary_words

_LONGEST = 2000
"""Characters of a line of an error that are shown."""
_STYLE = """
:root { color-scheme: light dark; --ground: #f5f6f8; --card: #fff; --ink: #1b1f26; --soft: #59616d; --line: #d9dde3;
  --good: #1c7a4c; --bad: #b3261e; --thin: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --ground: #12151a; --card: #1b1f26; --ink: #e7eaef; --soft: #a3acb9;
  --line: #343b46; --good: #74d3a1; --bad: #ff9a92; --thin: #f0c069; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 28px 20px 56px; }
h1 { font-size: 1.6rem; margin: 0 0 4px; } h2 { font-size: 1.2rem; margin: 32px 0 10px; } h3 { margin: 0; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 18px;
  margin: 0 0 14px; }
ul { list-style: none; margin: 14px 0 0; padding: 0; display: flex; flex-wrap: wrap; gap: 6px; }
li { border: 1px solid var(--line); border-radius: 999px; padding: 1px 12px; background: var(--card); }
li a { color: inherit; text-decoration: none; }
.good { color: var(--good); } .bad { color: var(--bad); } .thin { color: var(--thin); } .soft { color: var(--soft); }
p { margin: 2px 0; } .soft { font-size: .9rem; }
dl { margin: 10px 0 0; } dt { font-family: ui-monospace, monospace; font-size: .88rem; margin-top: 8px; }
dd { margin: 0 0 0 18px; } h1, h3, li, p, dt, dd, pre { overflow-wrap: anywhere; }
pre { white-space: pre-wrap; margin: 8px 0 0; font-size: .86rem; }
@media print { body { background: none; } section { break-inside: avoid; } }
"""


def page(found: Sequence[HostDrift], at: datetime) -> str:
    """The page; ``at`` is when the hosts were looked at, UTC."""
    groups = shared(found)
    sums = counts(found)
    mark = "good" if sums.as_specified == sums.hosts else "bad"
    parts = [
        "<!doctype html>\n<!-- made by llamarig drift -->\n",
        '<html lang="en"><head><meta charset="utf-8"><title>Drift</title>',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body><main>",
        f'<h1>Drift</h1><p class="{mark}">{_text(summary_words(sums))}</p>',
        f'<p class="soft">looked at {at:%Y-%m-%d %H:%M} UTC</p>',
        f"<ul>{''.join(_chip(host) for host in found)}</ul>",
    ]
    if groups:
        parts.append("<h2>On several hosts</h2>")
        parts += [_shared(number, group) for number, group in enumerate(groups, 1)]
    if any(host.differences or host.error for host in found):
        parts.append("<h2>Host by host</h2>")
        parts += [_host(host, groups) for host in found if host.differences or host.error]
    return "".join([*parts, "</main></body></html>\n"])


def _text(text: str, limit: int = _LONGEST) -> str:
    """Hostile text for HTML: no tag, and no sign that hides or turns what follows."""
    return escape(printable(text, limit))


def _soft(words: str) -> str:
    return f'<p class="soft">{_text(words)}</p>' if words else ""


def _chip(host: HostDrift) -> str:
    mark, words = "good", "as specified"
    if host.error is not None:
        mark, words = "thin", "not looked at"
    elif host.differences:
        mark, words = "bad", str(len(host.differences))
    name = _text(host.host)
    inner = name if mark == "good" else f'<a href="#host-{name}">{name}</a>'
    return f'<li>{inner} <span class="{mark}">{words}</span></li>'


def _rows(rows: Sequence[tuple[Difference, Since]]) -> str:
    told = [
        f"<dt>{_text(f'{each.action.kind} {each.action.subject}')}</dt><dd>{_text(difference_words(each.action))}"
        f"{_soft(since_words(since))}</dd>"
        for each, since in rows[:MOST]
    ]
    if len(rows) > MOST:
        told.append(f'<dd class="soft">and {len(rows) - MOST} more, which --json shows</dd>')
    return f"<dl>{''.join(told)}</dl>" if told else ""


def _shared(number: int, group: Shared) -> str:
    names = ", ".join(_text(host) for host in group.hosts)
    return (
        f'<section id="shared-{number}"><h3>{number}: {len(group.hosts)} hosts</h3><p class="soft">{names}</p>'
        f"{_rows([(group.difference, group.since)])}</section>"
    )


def _host(host: HostDrift, groups: Sequence[Shared]) -> str:
    name = _text(host.host)
    if host.error is not None:
        return f'<section id="host-{name}"><h3>{name}</h3>{_error(host.error)}</section>'
    mine = {each.same for each in host.differences}
    told = [
        f'<a href="#shared-{number}">{number}</a>'
        for number, group in enumerate(groups, 1)
        if group.difference.same in mine
    ]
    also = f'<p class="soft">as on other hosts: {", ".join(told)}</p>' if told else ""
    rows = _rows([(each, each.since) for each in own(host, groups)])
    record = _text(record_words(host.record or {}))
    return f'<section id="host-{name}"><h3>{name}</h3><p class="soft">{record}</p>{also}{rows}</section>'


def _error(error: RigError) -> str:
    lines = "\n".join(_text(line) for line in error.why.split("\n")[:200])
    why = f"<pre>{lines}</pre>" if error.why else ""
    fix = f'<p class="soft">fix: {_text(error.fix)}</p>' if error.fix else ""
    return f'<p class="thin">{_text(error.what)}</p>{why}{fix}'
