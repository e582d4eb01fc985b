"""Checks of the unit and its process: state, user, code, arguments, environment, port."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from llamarig.compare.drop_ins import of_one_unit
from llamarig.prove.check import Outcome, Rule
from llamarig.prove.hostile import count, integer, mapping, number, sequence, show, text
from llamarig.prove.services import View
from llamarig.render.wanted import UNITS

STEERING = ("LLAMA_", "GGML_", "MTMD_", "CUDA_")
"""Prefixes of the variables that change what the engine does."""


def unit_state(view: View) -> Outcome:
    """The unit is loaded from our file, enabled, running, and systemd knows its newest text."""
    expected = {"load": "loaded", "active": "active", "sub": "running", "enabled": "enabled", "need-reload": False}
    wrong = [
        f"{key} is {show(view.unit.get(key, 'unknown')) or 'not set'} instead of {value}"
        for key, value in expected.items()
        if view.unit.get(key) != value
    ]
    if not view.unit:
        return False, f"{view.service['unit']} does not exist"
    if not view.pid:
        wrong.append("it has no main process")
    if wrong:
        return False, "; ".join(wrong) + f"; its own words: journalctl -u {view.service['unit']}"
    return True, f"running as process {view.pid}"


def _runs(view: View) -> bool:
    """Whether there is a process to ask, whatever else is wrong with its unit."""
    return view.pid != 0 and view.unit.get("active") == "active"


def files(view: View) -> Outcome:
    """The unit and what else the service reads at start have the planned content; nothing is laid over the unit."""
    name = view.service["name"]
    planned = {file["path"]: file["sha256"] for file in view.wanted["files"] if name in file["restarts"]}
    wrong = [
        f"{path} {'differs' if mapping(view.observed, 'files', path).get('type') == 'file' else 'is not there'}"
        for path, digest in planned.items()
        if text(view.observed, "files", path, "sha256") != digest
    ]
    fragment, place = text(view.unit, "fragment"), f"{UNITS}/{view.service['unit']}"
    if fragment != place:
        wrong.append(f"systemd reads {show(fragment) or 'nothing'} instead of {place}")
    wrong += [
        f"{show(path)} changes it"
        for path in sequence(view.unit, "drop-ins")
        if isinstance(path, str) and path not in planned and of_one_unit(path)
    ]
    return not wrong, "; ".join(wrong[:5]) or f"{count(len(planned), 'file')} as planned, no other drop-in"


RECENT_S = 15 * 60
MANY = 10
"""Restarts by systemd since the last start by hand that are no single mishap any more."""


def restarts(view: View) -> Outcome:
    """It does not end again and again: not once during an apply, not twice of late, not many times in all."""
    again = integer(view.unit, "restarts")
    if again is None:
        return False, "the count of restarts is unknown"
    if not again:
        return True, "none since it was started"
    now, since = number(view.observed, "time"), number(view.unit, "started")
    # A time that is not told, or that lies ahead because the clock was set, counts as recent.
    recent = now is None or since is None or now - since < RECENT_S
    words = f"it ended and was started again {count(again, 'time')}"
    advice = f"see journalctl -u {view.service['unit']}"
    if view.before is not None:
        new = _new_restarts(view, again)
        if new:
            return False, f"it ended and was started again {count(new, 'time')} during this run; {advice}"
    elif again > MANY or (again > 1 and recent):
        return False, f"{words}{', the last time within 15 minutes' if recent else ''}; {advice}"
    return True, f"{words}, which is no storm; {advice}"


def _new_restarts(view: View, again: int) -> int:
    """Restarts by systemd since the run began; one that the run itself ordered sets the counter back to 0."""
    known = mapping(view.before, view.service["unit"])
    if integer(known, "main-pid") == view.pid:
        return 0
    earlier = integer(known, "restarts") or 0
    return again - earlier if again > earlier else again


def user(view: View) -> Outcome:
    """The process runs as the service's own user."""
    seen = text(view.process, "user")
    return seen == view.service["user"], f"runs as {show(seen) or 'unknown'}, planned {view.service['user']}"


def executable(view: View) -> Outcome:
    """The running executable lies in the wanted release and has the sha256 of its provenance."""
    path, digest = text(view.process, "exe"), text(view.process, "exe-sha256")
    inside = view.release_dir + "/"
    if view.process.get("deleted") is not False:
        return False, f"the running file {show(path)} was deleted or replaced on disk; restart the service"
    if not path.startswith(inside):
        return False, f"it runs {show(path)}, not a file of {view.release_dir}"
    known = text(view.provenance, path.removeprefix(inside))
    if not known:
        return False, f"{show(path)} is not in the provenance of the release"
    if digest != known:
        return False, f"sha256 of what runs is {show(digest)}, the provenance says {show(known)}"
    return True, f"{show(path)} sha256 {digest[:16]}…"


def libraries(view: View) -> Outcome:
    """Every mapped library of the engine comes from the wanted release and equals its provenance."""
    inside = view.release_dir + "/"
    ours = {PurePosixPath(name).name for name in view.provenance}
    wrong, matched = [], 0
    for path, digest in mapping(view.process, "mapped").items():
        name = path.removeprefix(inside)
        if path == text(view.process, "exe"):
            continue
        if path.startswith(inside):
            if not digest or digest != text(view.provenance, name):
                wrong.append(f"{show(name)} differs from the provenance")
            else:
                matched += 1
        elif PurePosixPath(path).name in ours or path.startswith("/opt/llamarig/releases/"):
            wrong.append(f"{show(path)} is mapped from outside the release")
    wrong += [f"{show(path)} is mapped, which nobody planned" for path in sequence(view.probe, "mapped", "outside")]
    wanted = any(name.startswith("lib/") for name in view.provenance)
    if wanted and not matched and not wrong:
        wrong.append("none of the release's libraries is mapped")
    return not wrong, "; ".join(wrong[:5]) or f"{count(matched, 'library', 'libraries')} as in the provenance"


def arguments(view: View) -> Outcome:
    """argv of the running process equals the plan's, one by one."""
    seen, planned = sequence(view.process, "argv"), list(view.service["argv"])
    if seen == planned:
        return True, f"{count(len(planned), 'argument')} as planned"
    for at, (have, want) in enumerate(zip(seen, planned, strict=False)):
        if have != want:
            return False, f"argument {at} is {show(have)}, planned {show(want)}"
    return False, f"{count(len(seen), 'argument')} instead of {len(planned)}"


def environment(view: View) -> Outcome:
    """No variable steers the engine but the planned ones, and those have the planned values."""
    seen: dict[str, Any] = mapping(view.process, "environment")
    planned = {key: value for key, value in view.service["environment"].items() if key.startswith(STEERING)}
    wrong = [f"{show(key)}={show(seen[key])} is not planned" for key in sorted(set(seen) - set(planned))]
    wrong += [
        f"{key} is {show(seen[key]) if key in seen else 'missing'}, planned {show(value)}"
        for key, value in sorted(planned.items())
        if seen.get(key) != value
    ]
    return not wrong, "; ".join(wrong[:5]) or f"{count(len(planned), 'planned variable')}, no other"


def port(view: View) -> Outcome:
    """Exactly one process owns the address, and it is the unit's main process."""
    own = mapping(view.probe, "owner")
    if not view.service["port"]:
        return own.get("ours") is True, show(text(own, "why")) or f"process {view.pid} listens on {view.port_key}"
    pids = {integer(owner, "pid") for owner in sequence(view.observed, "ports", view.port_key)}
    if pids != {view.pid}:
        names = ", ".join(
            f"{show(text(owner, 'command'))} ({show(owner.get('pid'))})" if isinstance(owner, dict) else show(owner)
            for owner in sequence(view.observed, "ports", view.port_key)[:5]
        )
        return False, f"{view.port_key} belongs to {names or 'nobody'}, not to process {view.pid} alone"
    if own.get("ours") is not True:
        return False, f"{view.port_key}: {show(text(own, 'why')) or 'the owner could not be told'}"
    return True, f"{view.port_key} belongs to process {view.pid} alone"


RULES: tuple[Rule[View], ...] = (
    Rule("unit", unit_state, enough=_runs),
    Rule("files", files),
    Rule("restarts", restarts, needs=("unit",)),
    Rule("user", user, needs=("unit",)),
    Rule("executable", executable, needs=("unit",)),
    Rule("libraries", libraries, needs=("unit",)),
    Rule("arguments", arguments, needs=("unit",)),
    Rule("environment", environment, needs=("unit",)),
    Rule("port", port, needs=("unit",)),
)
