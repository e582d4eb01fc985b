"""``scripts/gpu-check``: ask a machine with a card whether what llamarig plans comes true there."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llamarig import __version__
from llamarig.catalog.toolkits import first_driver, older
from llamarig.converge.store.shelf import Shelf, cache_root, sha256_of
from llamarig.errors import RigError, RigErrors
from llamarig.render.wanted import WantedService
from scripts.gpu_check import asking, engine, files, judge, project, report, sandbox, serve, smi
from scripts.gpu_check.asking import Seen
from scripts.gpu_check.report import Report, Verdict
from scripts.gpu_check.words import CannotAskError, say
from tests.support.tiny_models import write_qwen35

ROOT_WORK = "/srv/llamarig-gpu-check"
"""Where root works: below /root and /tmp the unit's sandbox would hide it from the server."""
HIDDEN = ("/root", "/home", "/tmp", "/var/tmp", "/run/user")  # noqa: S108 - recognised, nothing is made there


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/gpu-check",
        description="Build the engine for this machine's card, serve two small models from it under the hardened unit, "
        "hold planned memory against measured, and print a JSON report. Exit: 0 every answer is yes, 1 something "
        "differs, 2 it cannot be asked here.",
        epilog="--wheels DIR, anywhere, makes the Python environment from wheels in a directory, without internet.",
    )
    parser.add_argument("--card", help="UUID or bus id of the card; the one with the most free memory when not given")
    parser.add_argument("--backend", choices=("cuda", "cpu"), default="cuda", help="cpu: a rehearsal without a card")
    parser.add_argument("--engine", type=Path, help="a finished release (bin, lib) instead of building one")
    parser.add_argument("--nvcc", type=Path, help="the compiler; else the one at hand, else a toolkit of wheels")
    parser.add_argument("--files", type=Path, help="directory with sources, models and wheels that were brought along")
    parser.add_argument("--work", type=Path, help=f"where it works; {ROOT_WORK} for root, else in the cache directory")
    parser.add_argument("--out", type=Path, help="write the report there, too")
    parser.add_argument("--no-units", action="store_true", help="start servers without systemd and sandbox")
    return parser.parse_args(words)


def work_of(options: argparse.Namespace, units: bool) -> Path:
    """The directory that everything lies in."""
    default = Path(ROOT_WORK) if os.geteuid() == 0 else cache_root() / "gpu-check"
    work: Path = (options.work or default).resolve()
    if units and any(str(work) == top or str(work).startswith(f"{top}/") for top in HIDDEN):
        raise CannotAskError(
            f"{work} is hidden from a confined server", f"choose another --work, {ROOT_WORK} say, or give --no-units"
        )
    work.mkdir(parents=True, exist_ok=True, mode=0o755)
    return work


def toolkit_spec(compiler: engine.Compiler) -> dict[str, Any]:
    """The ``cuda`` of the spec."""
    if compiler.version == files.TOOLKIT:
        return {"source": "wheels", "version": compiler.version, "wheels": dict(files.WHEELS)}
    return {"source": "archive", "version": compiler.version, "sha256": "unlocked"}


def driver_verdict(card: smi.Card, compiler: engine.Compiler | None) -> Verdict:
    """Whether the driver runs what the toolkit builds, as the catalog has it."""
    question = "driver/runs-the-toolkit"
    if compiler is None:
        return judge.skipped(question, "--engine was given, nothing was compiled")
    first = first_driver(compiler.version)
    if first is None:
        return judge.skipped(question, f"the catalog does not know CUDA {compiler.version}")
    words = f"driver {card.driver}, CUDA {compiler.version} asks for {first} or later"
    return judge.verdict(question, not older(card.driver, first), words)


class Session:
    """One run, with what it has found out so far."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.started = time.monotonic()
        self.units = serve.systemd_runs() and not options.no_units
        self.card = smi.chosen(smi.cards(), options.card) if options.backend == "cuda" else None
        self.work = work_of(options, self.units)
        self.shelf = Shelf.default()
        self.verdicts: list[Verdict] = []

    def prepare(self) -> None:
        """Bring files, compiler and engine, and plan."""
        options, compiler = self.options, None
        if options.files is not None:
            taken = files.take_in(self.shelf, options.files, files.pins(toolkit=True))
            say(f"from {options.files}: {', '.join(taken) or 'nothing that is needed'}")
        if self.card is not None and options.engine is None:
            architecture = project.planned_as(self.card)[1].architecture
            compiler = engine.compiler(options.nvcc, self.shelf, self.work, architecture)
        smol = files.model(self.shelf, self.work)
        tiny = write_qwen35(self.work / project.TINY)
        pinned = {"controller-path": str(tiny), "size": tiny.stat().st_size, "sha256": sha256_of(tiny)}
        wheels = {"source": "wheels", "version": files.TOOLKIT, "wheels": dict(files.WHEELS)}
        cuda = wheels if compiler is None else toolkit_spec(compiler)
        spec = project.compose(self.card, cuda, smol, pinned)
        self.prepared = project.prepare(self.work / "project", spec)
        release = self.prepared.wanted.release
        if options.engine is not None:
            self.built = engine.taken(options.engine.resolve())
        else:
            self.built = engine.build(release, self.shelf, self.work, compiler)
        self.compiler = compiler
        self.place = serve.Place(self.work, self.built.prefix)
        serve.lay_out(self.place, self.prepared, {project.SMOL: smol, project.MTP: tiny})

    def serve(self, service: WantedService, without: Sequence[str] = ()) -> Seen:
        """Start it, ask it, measure it, stop it."""
        say(f"{service.name}: {'under its unit' if self.units else 'as a plain process'}")
        before = 0.0 if self.card is None else smi.used_mib(self.card.uuid)
        running = (
            serve.under_unit(self.place, self.prepared, service, without)
            if self.units
            else serve.as_process(self.place, service)
        )
        with running as started:
            seen = Seen(self.units, started.error, pid=started.pid, lines=started.lines)
            if not seen.error:
                asking.ask(service, self.place.key_file(service.name).read_text().strip(), seen)
                asking.measure(seen, self.card, before)
        return seen

    def ask_all(self) -> dict[str, report.Service]:
        """Every question; the figures of the servers."""
        services, plan = {}, self.prepared.plan
        uuid = None if self.card is None else self.card.uuid
        if self.card is None:
            self.verdicts.append(judge.skipped("build/machine-code", "a rehearsal on the cpu backend"))
        else:
            architecture = self.prepared.wanted.release.inputs["architectures"][0].removesuffix("-real")
            wrong = engine.machine_code(self.built.prefix, architecture)
            self.verdicts.append(driver_verdict(self.card, self.compiler))
            words = "; ".join(wrong) or f"for {architecture} alone"
            self.verdicts.append(judge.verdict("build/machine-code", not wrong, words))
        failed = ""
        for service in self.prepared.wanted.services:
            seen = self.serve(service)
            failed = failed or (seen.error if service.name == project.SMOL else "")
            drafts = service.name == project.MTP
            self.verdicts += judge.service(self.prepared, service.name, seen, uuid, drafts=drafts)
            services[service.name] = judge.service_report(plan, service.name, service.argv, seen)
        [smol] = [service for service in self.prepared.wanted.services if service.name == project.SMOL]
        asked = self.units and self.card is not None
        self.verdicts += sandbox.blame(failed, lambda without: self.serve(smol, without).error, asked)
        self.verdicts.append(sandbox.power_reads(asked))
        return services

    def report(self, services: dict[str, report.Service]) -> Report:
        """The whole document."""
        release = self.prepared.wanted.release
        return Report(
            llamarig=__version__,
            machine=report.Machine(
                system=project.system(),
                kernel=project.kernel(),
                cores=project.cores(),
                ram_mib=round(project.ram_mib(), 2),
                systemd=self.units,
            ),
            card=None if self.card is None else card_report(self.card),
            engine=report.Engine(
                backend=release.backend,
                commit=release.commit,
                build_number=release.build_number,
                architecture="".join(release.inputs["architectures"]),
                toolkit="" if self.compiler is None else self.compiler.version,
                built_seconds=None if self.built.seconds is None else round(self.built.seconds, 1),
            ),
            services=services,
            verdicts=self.verdicts,
            seconds=round(time.monotonic() - self.started, 1),
        )


def card_report(card: smi.Card) -> report.CardReport:
    """The card, and as which one it was planned."""
    name, known, exact = project.planned_as(card)
    return report.CardReport(
        name=card.name,
        uuid=card.uuid,
        bus_id=card.bus_id,
        driver=card.driver,
        capability=card.capability,
        catalog=name,
        known=exact,
        total_mib=card.total_mib,
        reserved_mib=card.reserved_mib,
        catalog_total_mib=known.total_mib,
    )


def main(words: Sequence[str] | None = None) -> int:
    """Ask everything and print the report; the exit status says how it went."""
    options = parse(words)
    try:
        session = Session(options)
        session.prepare()
        found = session.report(session.ask_all())
    except CannotAskError as error:
        sys.stderr.write(f"error: {error.what}\n  fix: {error.fix}\n")
        return 2
    except (RigError, RigErrors) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write(found.text())
    if options.out is not None:
        options.out.write_text(found.text(), encoding="utf-8")
    for verdict in found.verdicts:
        if verdict.answer == "no":
            say(f"differs: {verdict.question}: {verdict.detail}")
    return 1 if found.differs else 0


if __name__ == "__main__":
    sys.exit(main())
