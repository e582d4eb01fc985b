"""Power: files, units, sleep, and the limits that the host's own watch has last read back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from llamarig.compare.act import absence, ownership
from llamarig.compare.action import Action
from llamarig.compare.text import printable, short_hash
from llamarig.compare.view import View, as_map, as_text, as_texts
from llamarig.render.power import SERVICE, STATE_FILE, TIMER
from llamarig.render.wanted import UNITS, WantedPower, WantedPowerCard

SLEEP_TARGETS = (
    "sleep.target",
    "suspend.target",
    "hibernate.target",
    "hybrid-sleep.target",
    "suspend-then-hibernate.target",
)
_NEAR_W = 0.5
"""As in libexec/power-limit: the driver prints two digits of what it keeps in milliwatts."""


def power(view: View) -> Iterator[Action]:
    """What of power is not as wanted, each subject once; files that nobody wants any more, too."""
    wanted = view.wanted.power
    files = () if wanted is None else wanted.files
    for file in files:
        seen = view.part("power", "files", file.path)
        wrong = [why] if (why := absence(seen, "file")) else ownership(seen, file.mode, file.owner, file.group)
        if not wrong and seen.get("sha256") != file.sha256:
            wrong = ["its content is not what the spec renders"]
        if wrong:
            shown = short_hash(seen.get("sha256")) if seen.get("type") == "file" else printable(seen.get("type"))
            yield Action("power", file.path, "; ".join(wrong), expected=short_hash(file.sha256), observed=shown)
    known = {file.path for file in files}
    for path, seen in sorted(view.part("power", "files").items()):
        if path not in known and as_map(seen).get("type") not in (None, "absent"):
            yield Action("power", path, "is not wanted any more", expected="absent", observed="there")
    if wanted is not None:
        yield from _sleep(view, wanted)
        if wanted.cards:
            yield from _units(view, wanted)
            yield from _state(view, wanted)


def _sleep(view: View, wanted: WantedPower) -> Iterator[Action]:
    masked = as_texts(view.part("power").get("masked"))
    if wanted.mask_sleep:
        awake = [target for target in SLEEP_TARGETS if target not in masked]
        if awake:
            yield Action(
                "power",
                "sleep",
                f"the host may sleep: {', '.join(awake)} {'is' if len(awake) == 1 else 'are'} not masked",
                expected="masked",
                observed=f"{len(awake)} of {len(SLEEP_TARGETS)} not masked",
            )
    elif masked and view.part("power").get("we-masked") is True:
        yield Action(
            "power", "sleep", "the sleep targets are masked and the spec lets the host sleep", "open", "masked"
        )


def _units(view: View, wanted: WantedPower) -> Iterator[Action]:
    service, timer = view.part("units", SERVICE), view.part("units", TIMER)
    if service.get("load") == "loaded":
        wrong = [] if service.get("enabled") == "enabled" else ["does not start at boot"]
        wrong += [f"drop-in {printable(path)} is not ours" for path in _drop_ins(service)]
        wrong += ["its last run failed"] if service.get("active") == "failed" else []
        wrong += ["systemd has not read its changed unit yet"] if service.get("need-reload") is True else []
        if wrong:
            yield Action("power", SERVICE, "; ".join(wrong), "enabled", printable(service.get("enabled")))
    if wanted.watch and timer.get("load") == "loaded":
        wrong = [] if timer.get("enabled") == "enabled" else ["does not start at boot"]
        wrong += [] if timer.get("active") == "active" else ["does not run, so nobody watches the limits"]
        wrong += [f"drop-in {printable(path)} is not ours" for path in _drop_ins(timer)]
        if wrong:
            yield Action("power", TIMER, "; ".join(wrong), "enabled, active", printable(timer.get("active")))


def _drop_ins(unit: Mapping[str, Any]) -> list[str]:
    return [path for path in as_texts(unit.get("drop-ins")) if path.startswith(f"{UNITS}/llamarig-power")]


def _state(view: View, wanted: WantedPower) -> Iterator[Action]:
    state = view.part("power", "state")
    limited = [card for card in wanted.cards if card.watts is not None]
    if not state:
        yield Action("power", "limits", "were never set: there is no state file", STATE_FILE, "absent")
    elif state.get("boot-id") != view.observed.get("boot-id"):
        yield Action("power", "limits", "were not set since the host booted", "this boot", "an earlier one")
    elif error := as_text(state.get("error")):
        yield Action("power", "limits", f"are not set: {printable(error)}", "no error", printable(error))
    else:
        for card in limited:
            yield from _limit(card, as_map(as_map(state.get("cards")).get(card.uuid or "")))


def _limit(card: WantedPowerCard, seen: Mapping[str, Any]) -> Iterator[Action]:
    """The limit that was last read back, and what the driver enforces: more than the limit is never right."""
    limit, enforced = _number(seen.get("limit-w")), _number(seen.get("enforced-w"))
    error, wanted = as_text(seen.get("error")), float(card.watts or 0)
    if error:
        why = printable(error)
    elif limit is None or abs(limit - wanted) > _NEAR_W:
        why = f"has a limit of {_shown(limit)} instead of {wanted:g} W"
    elif enforced is not None and enforced > wanted + _NEAR_W:
        why = f"is held to {_shown(enforced)} instead of {wanted:g} W"
    else:
        return
    yield Action("power", f"card {card.name}", why, f"{wanted:g} W", _shown(limit))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _shown(watts: float | None) -> str:
    return "an unknown limit" if watts is None else f"{watts:g} W"
