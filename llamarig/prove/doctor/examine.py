"""All rules over a bundle, or over a pasted text."""

from __future__ import annotations

from llamarig.prove.doctor import cards, driver, system, watch
from llamarig.prove.doctor.bundle import Bundle
from llamarig.prove.doctor.diagnosis import ORDER, Diagnosis
from llamarig.prove.doctor.texts import known_texts

_READ = ("server-log", "nvidia-smi", "dpkg-audit")
"""Parts in which known error texts are looked for."""


def examine(bundle: Bundle, power_limits: dict[str, float] | None = None) -> list[Diagnosis]:
    """Every diagnosis of a machine, the worst first; ``power_limits`` are W by bus id, from its spec."""
    rules = (*driver.RULES, *cards.RULES, *system.RULES, *watch.RULES)
    found = [diagnosis for rule in rules for diagnosis in rule(bundle)]
    found += cards.power(bundle, power_limits or {})
    for part in _READ:
        found += known_texts(bundle.text(part))
    return _sorted(found)


def examine_text(text: str) -> list[Diagnosis]:
    """Every diagnosis that a pasted text allows."""
    log = Bundle({"kernel-log": (0, text)})
    return _sorted([*cards.xids(log), *system.suspended(log), *known_texts(text)])


def _sorted(found: list[Diagnosis]) -> list[Diagnosis]:
    """Without repetitions, errors first."""
    once: dict[tuple[str, str], Diagnosis] = {}
    for each in found:
        once.setdefault((each.code, each.what), each)
    return sorted(once.values(), key=lambda each: ORDER.index(each.severity))
