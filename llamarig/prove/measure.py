"""Measure proven hosts: hold their memory against their plans, and keep what only a running host can tell."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.errors import RigError
from llamarig.plan import plan_host
from llamarig.plan.headers import gather_headers
from llamarig.plan.measured import Measured, write_measured
from llamarig.prove.check import Check
from llamarig.prove.fit_settings import FitColumns, fit_columns
from llamarig.prove.hostile import text
from llamarig.prove.late_rows import late_rows_mib
from llamarig.prove.memory import measured_service, memory_checks, read_account

if TYPE_CHECKING:
    from llamarig.plan.load import Headers
    from llamarig.spec.host import HostSpec


def measure(project_root: Path, spec: HostSpec, answer: dict[str, Any], *, store: bool) -> list[Check]:
    """Judge what rig_prove returned as ``measured``, and ``store`` it in the project.

    Raises :class:`RigError` when the project cannot be written.
    """
    headers = gather_headers(spec, project_root)
    plan = plan_host(spec, headers, with_alternatives=False)
    accounts = {name: read_account(name, answer) for name in spec.services}
    checks = []
    for name, account in accounts.items():
        late = late_rows_mib(spec, spec.services[name], headers)
        checks += memory_checks(plan, name, account, _cpu(spec, name, headers), late)
    if not store:
        return checks
    document = {
        "host": spec.host,
        "release": text(answer, "release") or "unknown",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "services": {name: measured_service(plan, name, account) for name, account in accounts.items()},
    }
    try:
        path = write_measured(project_root, Measured.model_validate(document))
    except OSError as error:
        raise RigError(
            what="the measured memory cannot be stored",
            where=str(project_root),
            why=error.strerror or str(error),
            fix="make the project's directory writable for you",
        ) from error
    return [
        *checks,
        Check("host/memory-stored", True, f"{path.relative_to(project_root)} now holds it for later plans"),
    ]


def _cpu(spec: HostSpec, name: str, headers: Headers) -> FitColumns | None:
    """What the fit tool must print for a service; None where the model's header is not at hand, or does not fit."""
    header = headers.get(spec.services[name].model)
    if header is None:
        return None
    try:
        return fit_columns(spec, spec.services[name], header)
    except RigError:
        return None
