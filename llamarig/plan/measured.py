"""What a host's own processes take beyond their buffers, as ``llamarig verify --memory`` measured it.

``measured/<host>.json`` lies in the project beside the specs, is meant to be committed with them, and takes the place
of the fitted share of a process in every later plan of that host.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from llamarig.errors import RigError
from llamarig.plan.load import Load
from llamarig.plan.types import Finding

DIRECTORY = "measured"
MAX_BYTES = 1 << 20
MiB = Annotated[float, Field(ge=0, le=1 << 24, allow_inf_nan=False)]
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$")]

LEAST_SHARE_MIB = 50.0
"""On a card: less than any process was ever seen to take (153 on an 8 GB laptop), so a figure below it is a mistake."""
FAR = 0.5
"""Part by which the buffers may have changed since the measurement before it says nothing of this plan."""


def _kebab(name: str) -> str:
    return name.replace("_", "-")


def _a_date(text: str) -> str:
    date.fromisoformat(text)
    return text


class _Strict(BaseModel):
    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", alias_generator=lambda name: name.replace("_", "-")
    )


class MeasuredCard(_Strict):
    """One process on one card, MiB."""

    driver_mib: MiB
    """What the driver counts for the process."""
    planned_mib: MiB
    """What was planned for it without the share of the process itself."""

    @property
    def residue_mib(self) -> float:
        """The share of the process itself, and whatever the plan missed."""
        return max(self.driver_mib - self.planned_mib, 0.0)


class MeasuredService(_Strict):
    """One service at the time of the measurement."""

    cards: dict[Word, MeasuredCard] = Field(default_factory=dict)
    """By the card's name in the spec."""
    ram_peak_mib: MiB | None = None
    """Most RAM that the process ever held; proc(5), VmHWM."""
    ram_planned_mib: MiB | None = None
    """RAM that was planned for weights, caches and buffers, without the process itself."""


class Measured(_Strict):
    """A host's measurement."""

    schema_version: Annotated[int, Field(ge=1, le=1)] = 1
    host: Word
    release: Word
    """The release that ran."""
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$"), AfterValidator(_a_date)]
    services: dict[Word, MeasuredService] = Field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return self.model_dump(mode="json", by_alias=True)


def measured_path(project_root: Path, host: str) -> Path:
    """Where a host's measurement lies."""
    return project_root / DIRECTORY / f"{host}.json"


def read_measured(project_root: Path, host: str) -> Measured | None:
    """The stored measurement of a host, None when there is none.

    Raises :class:`RigError` when the file is there and cannot be read as one.
    """
    path = measured_path(project_root, host)
    try:
        # Without O_NONBLOCK the open of a pipe that nobody writes to would wait for ever.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise _refused(path, "it is no regular file")
            text = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _refused(path, error.strerror or str(error)) from error
    if len(text) > MAX_BYTES:
        raise _refused(path, f"it is longer than {MAX_BYTES} bytes")
    try:
        found = Measured.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _refused(path, f"{place}: {first['msg']}" if place else first["msg"]) from error
    if found.host != host:
        raise _refused(path, f"it was measured on {found.host}")
    return found


def _refused(path: Path, why: str) -> RigError:
    return RigError(
        what="the host's measured memory cannot be read",
        where=str(path),
        why=why,
        fix="remove the file, and run `llamarig verify HOST --memory` to measure again",
    )


def write_measured(project_root: Path, measured: Measured) -> Path:
    """Store a measurement, whole or not at all; returns its path."""
    path = measured_path(project_root, measured.host)
    path.parent.mkdir(exist_ok=True)
    text = json.dumps(measured.to_json(), indent=2) + "\n"
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def use_measured(loads: Mapping[str, Load], measured: Measured | None) -> Iterator[Finding]:
    """Put measured shares in the place of the fitted ones; says so of each.

    On a card the measured share replaces the fitted one. In RAM it only raises the assumed one: pages that were not
    touched yet are not counted by the kernel, so a lower figure proves nothing.
    """
    if measured is None:
        return
    for name, service in measured.services.items():
        load = loads.get(name)
        if load is None:
            yield _left_out(name, "the spec has no such service", measured)
            continue
        for card, seen in service.cards.items():
            terms = load.cards.get(card, {})
            if why := _doubt(terms, card, seen):
                yield _left_out(name, why, measured)
                continue
            fitted, terms["process"] = terms["process"], seen.residue_mib
            yield _told(name, f"on {card}", seen.residue_mib, f"{fitted:,.0f} that are fitted", measured)
        base = load.ram_detail.get("base")
        if base is None or service.ram_peak_mib is None or service.ram_planned_mib is None:
            continue
        seen_base = service.ram_peak_mib - service.ram_planned_mib
        if seen_base > base:
            load.ram_detail["base"] = seen_base
            load.put(None, "process", seen_base - base)
            yield _told(name, "in RAM", seen_base, f"{base:,.0f} that are assumed", measured)


def _doubt(terms: Mapping[str, float], card: str, seen: MeasuredCard) -> str:
    """Why a measurement says nothing of this plan; empty when it does."""
    if "process" not in terms:
        return f"the service takes nothing of a card {card}"
    if seen.residue_mib < LEAST_SHARE_MIB:
        return (
            f"{seen.residue_mib:,.0f} MiB on {card} ({seen.driver_mib:,.0f} by the driver less {seen.planned_mib:,.0f} "
            f"planned then) are less than any process takes"
        )
    planned = sum(terms.values()) - terms["process"]
    if abs(planned - seen.planned_mib) > FAR * max(planned, seen.planned_mib):
        return f"{seen.planned_mib:,.0f} MiB of buffers were planned on {card} then, and {planned:,.0f} are now"
    return ""


def _left_out(name: str, why: str, measured: Measured) -> Finding:
    return Finding(
        "measurement-left-out",
        "warning",
        f"what was measured of service {name} on {measured.date} is not used: {why}",
        f"measure again: llamarig verify {measured.host} --memory (or remove {DIRECTORY}/{measured.host}.json)",
        name,
    )


def _told(name: str, place: str, mib: float, instead: str, measured: Measured) -> Finding:
    return Finding(
        "process-measured",
        "note",
        f"the process of service {name} takes {mib:,.0f} MiB {place} beside its buffers, as measured on "
        f"{measured.date} with {measured.release}, instead of the {instead}",
        f"measure again after a change of driver or engine: llamarig verify {measured.host} --memory",
        name,
    )
