"""Services and ports: what runs, and whether nothing else explains why it does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from llamarig.compare.action import Action
from llamarig.compare.drop_ins import of_one_unit, who_removes
from llamarig.compare.flags import argument_changes, variable_changes
from llamarig.compare.system import PREFIXES
from llamarig.compare.text import printable
from llamarig.compare.view import View, as_int, as_map, as_text, as_texts
from llamarig.render.wanted import RELEASES, UNITS, WantedService


def place_of(service: WantedService) -> str:
    """``address:port`` as observations name it."""
    return f"{service.address}:{service.port}"


def ports(view: View) -> Iterator[Action]:
    """An address that a process of somebody else's keeps a service from."""
    # Also those of units that nobody wants any more: they are stopped before a service is started.
    ours = {pid for unit in view.part("units").values() if (pid := as_int(as_map(unit).get("main-pid")))}
    for service in view.wanted.services:
        owners = view.part("ports").get(place_of(service))
        for owner in owners if isinstance(owners, list) else []:
            pid = as_int(as_map(owner).get("pid"))
            if pid in ours:
                continue
            who = f"pid {pid} ({printable(as_map(owner).get('command'))})" if pid else "an unknown process"
            yield Action(
                "port",
                place_of(service),
                f"is taken by {who}; {service.name} is to listen there",
                expected=service.unit,
                observed=who,
                restarts=(service.name,),
            )
            break


def services(view: View, others: Sequence[Action]) -> Iterator[Action]:
    """A service that is down or runs the wrong thing, unless an action of ``others`` restarts it anyway."""
    restarted = {name for action in others for name in action.restarts}
    touched = {action.subject for action in others if action.kind == "file"}
    for service in view.wanted.services:
        settings = [] if f"{UNITS}/{service.unit}" in touched else _settings_wrong(view, service)
        foreign = _drop_ins(view, service)
        settings += [
            f"drop-in {printable(path)} is not ours; {who_removes(path) or 'apply deletes it'}" for path in foreign
        ]
        state = [] if service.name in restarted else _state_wrong(view, service)
        if settings or state:
            unit = view.unit(service)
            yield Action(
                "service",
                service.name,
                "; ".join([*settings, *state]),
                expected="active, enabled, as planned",
                observed=f"{printable(unit.get('active'))}/{printable(unit.get('sub'))}",
                restarts=(service.name,) if state or foreign else (),
            )


def _settings_wrong(view: View, service: WantedService) -> list[str]:
    unit = view.unit(service)
    if unit.get("load") != "loaded":
        return []
    wrong = []
    if unit.get("fragment") != f"{UNITS}/{service.unit}":
        wrong.append(f"another unit file is in force: {printable(unit.get('fragment'))}")
    if unit.get("enabled") != "enabled":
        wrong.append(f"does not start at boot ({printable(unit.get('enabled')) or 'not enabled'})")
    return wrong


def _drop_ins(view: View, service: WantedService) -> list[str]:
    known = {file.path for file in view.wanted.files}
    there = as_texts(view.unit(service).get("drop-ins"))
    return [path for path in there if path not in known and of_one_unit(path)]


def stuck(view: View) -> list[str]:
    """What no apply can mend, in words: drop-ins that it does not remove."""
    return [
        f"drop-in {printable(path)} changes {service.unit}; {who}"
        for service in view.wanted.services
        for path in _drop_ins(view, service)
        if (who := who_removes(path))
    ]


def _state_wrong(view: View, service: WantedService) -> list[str]:
    unit = view.unit(service)
    if unit.get("load") != "loaded":
        return [f"its unit is not loaded ({printable(unit.get('load'))})"]
    if unit.get("active") != "active":
        result = unit.get("result")
        why = f", {printable(result)}" if result not in ("success", None, "") else ""
        return [f"is {printable(unit.get('active'))} ({printable(unit.get('sub'))}{why})"]
    wrong = ["systemd has not read its changed unit yet"] if unit.get("need-reload") is not False else []
    return wrong + _process_wrong(view, service) + _listens_wrong(view, service)


def _process_wrong(view: View, service: WantedService) -> list[str]:
    process = view.process(service)
    if not process:
        return ["its main process could not be looked at"]
    wrong = [*_program_wrong(view, service)]
    changes = argument_changes(process.get("argv"), service.argv)
    changes += variable_changes(process.get("environment"), service.environment, PREFIXES)
    if changes:
        wrong.append("runs with other arguments: " + ", ".join(changes))
    if process.get("user") != service.user:
        wrong.append(f"runs as {printable(process.get('user'))} instead of {service.user}")
    return wrong


def _program_wrong(view: View, service: WantedService) -> Iterator[str]:
    wanted = view.wanted.release.id
    base = f"{RELEASES}/{wanted}/"
    process, built = view.process(service), view.built(wanted)
    exe = as_text(process.get("exe")) or ""
    if not exe.startswith(base):
        yield f"runs {printable(exe)}, which is not of release {wanted}"
        return
    if not view.runs_wanted_release(service):
        yield f"runs a {printable(exe.removeprefix(base))} that is not the one that was built"
    mapped = as_map(process.get("mapped"))
    for path in sorted(path for path in mapped if isinstance(path, str)):
        if path != exe and (not path.startswith(base) or built.get(path.removeprefix(base)) != mapped[path]):
            yield f"has {printable(path)} loaded, which is {_not_built(path)}"


def _not_built(path: str) -> str:
    if path.startswith(f"{RELEASES}/"):
        return "not what was built"
    return "neither of a release nor of the system's packages (is it in /etc/ld.so.preload?)"


def _listens_wrong(view: View, service: WantedService) -> list[str]:
    owners = view.part("ports").get(place_of(service))
    return [] if isinstance(owners, list) and owners else [f"does not listen at {place_of(service)}"]
