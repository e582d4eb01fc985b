"""All rules over a bundle, or over a pasted text."""

from __future__ import annotations

from collections.abc import Iterator

from llamarig.prove.doctor import cards, driver, system, watch
from llamarig.prove.doctor.bundle import Bundle
from llamarig.prove.doctor.diagnosis import ORDER, Diagnosis
from llamarig.prove.doctor.texts import known_texts, unknown_error
from llamarig.prove.hostile import show

_READ = ("server-log", "nvidia-smi", "dpkg-audit")
"""Parts in which known error texts are looked for."""
_SEND = (
    "send more of it: `journalctl -u llama-NAME -n 200 | llamarig doctor --error -`, or `journalctl -k -b` for the "
    "kernel's log; `llamarig doctor HOST` looks at the machine itself"
)


def examine(bundle: Bundle, power_limits: dict[str, float] | None = None) -> list[Diagnosis]:
    """Every diagnosis of a machine, the worst first; ``power_limits`` are W by bus id, from its spec."""
    rules = (*driver.RULES, *cards.RULES, *system.RULES, *watch.RULES)
    found = [diagnosis for rule in rules for diagnosis in rule(bundle)]
    found += cards.power(bundle, power_limits or {})
    for part in _READ:
        found += known_texts(bundle.text(part))
    return _sorted(found)


def examine_text(text: str) -> list[Diagnosis]:
    """Every diagnosis that a pasted text allows; where it allows none, that it is no clean bill."""
    log = Bundle({"kernel-log": (0, text)})
    found = [*cards.xids(log), *system.suspended(log), *system.killed_for_memory(log), *known_texts(text, pasted=True)]
    if all(each.severity == "note" for each in found):
        found += not_known(text, found)
    return _sorted(found)


def not_known(text: str, found: list[Diagnosis]) -> Iterator[Diagnosis]:
    """What nobody has explained yet: it says nothing good of the machine."""
    line = unknown_error(text)
    if line is not None:
        yield Diagnosis(
            "text-not-known",
            "warning",
            "this text is not known here, which does not mean that nothing is wrong",
            "the line is none of the known ones of engine, driver, systemd and package tools",
            _SEND,
            show(line.strip(), 200),
        )
    elif not found:
        yield Diagnosis(
            "no-error-in-text",
            "note",
            "nothing in this text looks like an error, which does not mean that nothing is wrong",
            "the line that tells may be missing: causes are often logged long before the last line",
            _SEND,
        )


def _sorted(found: list[Diagnosis]) -> list[Diagnosis]:
    """Without repetitions, errors first."""
    once: dict[tuple[str, str], Diagnosis] = {}
    for each in found:
        once.setdefault((each.code, each.what), each)
    return sorted(once.values(), key=lambda each: ORDER.index(each.severity))
