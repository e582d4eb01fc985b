"""The report: one JSON document with a verdict for each question.

``python -m scripts.gpu_check.report`` writes its schema.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "reference" / "gpu-check-report.schema.json"

Answer = Literal["yes", "no", "not-asked"]


class _Part(BaseModel):
    model_config = ConfigDict(
        extra="forbid", alias_generator=lambda name: name.replace("_", "-"), populate_by_name=True
    )


class Verdict(_Part):
    """One question and its answer."""

    question: str = Field(
        description="What was asked, stable: `build/machine-code`, `smol/serves`, `sandbox/PrivateUsers=yes`."
    )
    answer: Answer = Field(description="`no` makes the exit status 1; `not-asked` says why in `detail`.")
    detail: str


class Machine(_Part):
    """Where it ran."""

    system: str = Field(description="Distribution and release, `debian 13`.")
    kernel: str
    cores: int
    ram_mib: float
    systemd: bool = Field(description="Whether systemd is PID 1 and the check is root: only then units are tried.")


class CardReport(_Part):
    """The card that was asked; sizes in MiB."""

    name: str
    uuid: str
    bus_id: str
    driver: str
    capability: str
    catalog: str = Field(description="The catalog's name of the card it was planned as.")
    known: bool = Field(description="Whether the catalog knows this very card; else a card of its generation stood in.")
    total_mib: float
    reserved_mib: float
    catalog_total_mib: float


class Engine(_Part):
    """What was built, or taken."""

    backend: Literal["cuda", "cpu"]
    commit: str
    build_number: int
    architecture: str = Field(description="As CMake names it; empty for the cpu backend.")
    toolkit: str = Field(description="What nvcc says of its version; empty where nothing was compiled.")
    built_seconds: float | None = Field(description="null where --engine named a finished one.")


class Service(_Part):
    """One server: planned against seen. Sizes in MiB."""

    argv: list[str]
    planned_mib: dict[str, dict[str, float]] = Field(description="Place (`card`, `ram`) -> term -> MiB.")
    engine_mib: dict[str, dict[str, float]] = Field(
        description="The engine's own lines: kind of buffer -> device -> MiB."
    )
    driver_mib: float | None = Field(description="What the driver counts for the process.")
    card_grew_mib: float | None = Field(description="How much more of the card was in use than before the start.")
    ram_peak_mib: float | None = Field(description="VmHWM of the process.")
    drafted: int | None
    accepted: int | None
    decode_tok_s: float | None
    sandboxed: bool = Field(description="Whether it ran under the rendered unit.")


class Report(_Part):
    """The whole document."""

    report: Literal["gpu-check"] = "gpu-check"
    version: Literal[1] = 1
    llamarig: str
    machine: Machine
    card: CardReport | None = Field(description="null in a rehearsal on the cpu.")
    engine: Engine
    services: dict[str, Service]
    verdicts: list[Verdict]
    seconds: float

    def text(self) -> str:
        """As it is printed."""
        return json.dumps(self.model_dump(by_alias=True), indent=2, ensure_ascii=True) + "\n"

    @property
    def differs(self) -> bool:
        """Whether any answer is no."""
        return any(verdict.answer == "no" for verdict in self.verdicts)


def schema_text() -> str:
    """The JSON Schema of a report."""
    return json.dumps(Report.model_json_schema(by_alias=True), indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
