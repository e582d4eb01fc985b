"""The plan of a rollout over 500 hosts, no two alike: specs and observations in, waves and actions and builds out.

Half of the hosts have two cards, their driver and a 27B model, half serve a small one on the CPU; they differ in cards,
ports and windows. Their observations are composed from what each is to be (tests/support/compare), as rig_observe
prints them, and lie in files: of eight hosts two are converged, two run a former release, one more does and is in use,
one has a file edited, one has never been touched, one does not answer. What each of these must come to is known.

A process of its own reads the specs and the observations and makes the plan; its whole life is what is timed.
"""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from llamarig.converge.wanted import plan_for, wanted_for  # noqa: E402 - after the path
from llamarig.errors import ExitCode, RigError  # noqa: E402 - after the path
from llamarig.fleet.plan import Observation, plan_rollout  # noqa: E402 - after the path
from llamarig.fleet.policy import Rules, busy, policy_of  # noqa: E402 - after the path
from llamarig.gguf import write_sidecar  # noqa: E402 - after the path
from llamarig.plan.many import on_all_cores  # noqa: E402 - after the path
from llamarig.render.wanted import Wanted  # noqa: E402 - after the path
from llamarig.spec.load import load_project  # noqa: E402 - after the path
from tests.support import big_models  # noqa: E402 - found below the checkout only
from tests.support.compare.cases import RELEASE, bare_observation, observation  # noqa: E402 - found below the checkout only
from tests.support.power.cases import observed as power_observed  # noqa: E402 - found below the checkout only

HOSTS = 500
BAR_S = 5.0
BAR_MIB = 500.0
SHA256 = "ab" * 32
KEY = ROOT / "tests/fixtures/driver/repository-key.asc"
KEY_FINGERPRINT = "D39629B7EE82DFA92138EF496F58C3EEA7EA0732"
"""As gpg tells it (tests/fixtures/driver/README.md)."""
ROOMS = 25
CLASSES = ("converged", "former", "former", "edited", "bare", "silent", "converged", "in-use")
"""What the hosts are, in turn."""
VERDICTS = {
    "converged": "nothing-to-do",
    "former": "change",
    "edited": "change",
    "bare": "change",
    "silent": "unreachable",
    "in-use": "in-use",
}
FLEET = """schema-version: 1
rollout: {canary: 2, waves: [5%, 25%], by: room, failures: 3}
"""


def documents(rng: random.Random) -> Iterator[dict[str, Any]]:
    """A spec a host."""
    large = yaml.safe_load((ROOT / "inventory/dual-gpu-256k.yml").read_text().replace(": unlocked", f": {SHA256}"))
    small = yaml.safe_load((ROOT / "inventory/demo.yml").read_text())
    large["driver"] |= {"key": KEY.name, "key-fingerprint": KEY_FINGERPRINT}
    # Patches would have to be there, each with its hash; what is measured does not depend on them.
    del large["engine"]["patches"]
    for number in range(HOSTS):
        spec = json.loads(json.dumps(small if number % 2 else large))
        spec |= {"host": f"host-{number:04}", "labels": {"room": f"room-{number % ROOMS}"}}
        service = next(iter(spec["services"].values()))
        service["listen"]["port"] = 2000 + number
        service["context"] = (4096 if number % 2 else 8192) + 256 * (number // 2)
        for card in spec.get("gpus", {}).values():
            card["uuid"] = f"GPU-{uuid.UUID(int=rng.getrandbits(128), version=4)}"
        yield spec


def write_project(root: Path, rng: random.Random) -> None:
    """Specs, header sidecars and a policy."""
    inventory = root / "inventory"
    inventory.mkdir(parents=True)
    write_sidecar(big_models.header_of(big_models.qwen35_27b()), SHA256, root / "headers")
    for path in (ROOT / "headers").iterdir():
        (root / "headers" / path.name).write_bytes(path.read_bytes())
    (root / KEY.name).write_bytes(KEY.read_bytes())
    (inventory / "fleet.yml").write_text(FLEET)
    for spec in documents(rng):
        (inventory / f"{spec['host']}.yml").write_text(yaml.safe_dump(spec, sort_keys=False))


def converged(wanted: Wanted) -> dict[str, Any]:
    """What a host says that is as it shall be, its models of their true size and its cards' power among it."""
    # The composed processes run the release of the composed wanted state.
    text = json.dumps(observation(wanted)).replace(RELEASE, wanted.release.id)
    seen: dict[str, Any] = json.loads(text)
    seen["boot-id"] = str(uuid.uuid5(uuid.NAMESPACE_DNS, wanted.host))
    for model in wanted.models:
        entry, recorded = seen["models"][model.path], seen["record"]["files"][model.path]
        entry["size"] = entry["stat"][2] = recorded["stat"][2] = model.size
    if wanted.power is not None:
        power = power_observed(wanted)
        power["power"]["state"]["boot-id"] = seen["boot-id"]
        seen["units"] |= power["units"]
        seen["power"] = power["power"]
    return seen


def write_observations(root: Path) -> dict[str, str]:
    """What each host says, a file each; host -> its class."""
    hosts = load_project(root).valid(None)
    classes = {loaded.host: CLASSES[number % len(CLASSES)] for number, loaded in enumerate(hosts)}

    def write(number: int) -> None:
        loaded = hosts[number]
        wanted = wanted_for(root, loaded, plan_for(root, loaded))
        kind = classes[loaded.host]
        seen = bare_observation(wanted) if kind == "bare" else converged(wanted)
        seen["hostname"] = loaded.host
        if kind in ("former", "in-use"):
            seen["current"] = "releases/4df29be4f-000000000000"
            seen["releases"] = {}
        if kind == "edited":
            seen["files"][wanted.files[number % len(wanted.files)].path]["sha256"] = "0" * 64
        (root / "seen" / f"{loaded.host}.json").write_text(json.dumps({} if kind == "silent" else seen))

    (root / "seen").mkdir()
    on_all_cores(write, len(hosts))
    return classes


class Recorded(Mapping[str, Observation]):
    """The observations in their files, each read when it is asked for."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __getitem__(self, host: str) -> Observation:
        seen: dict[str, Any] = json.loads((self._directory / f"{host}.json").read_bytes())
        silent = RigError("the host cannot be reached", host, code=ExitCode.HOST_FAILED)
        return seen or silent

    def __iter__(self) -> Iterator[str]:
        return (path.stem for path in self._directory.iterdir())

    def __len__(self) -> int:
        return sum(1 for _ in self._directory.iterdir())


def measured(root: Path, in_use: set[str]) -> None:
    """The plan as JSON, with the peak of memory of this process and its children; run in a process of its own."""
    # As the command does it: nothing here makes cycles.
    gc.disable()
    hosts = load_project(root).valid(None)
    idle = {"users": ["somebody on tty1"], "services": {}}
    use = {name: busy(idle, Rules(), time.time()) for name in in_use}
    plan = plan_rollout(root, hosts, Recorded(root / "seen"), policy_of(hosts), use)
    document = plan.to_json()
    own, children = (
        resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    # Every child as large as the largest, and shared pages counted in each: it is less than that.
    cores = len(os.sched_getaffinity(0))
    document["mib"] = own + cores * children
    of_children = resource.getrusage(resource.RUSAGE_CHILDREN)
    document["longest-way-s"] = time.process_time() + (of_children.ru_utime + of_children.ru_stime) / cores
    json.dump(document, sys.stdout)


def misjudged(document: dict[str, Any], classes: dict[str, str]) -> list[str]:
    """Hosts whose verdict is another than their class must come to, or that are not in exactly one wave."""
    placed = Counter(name for wave in document["waves"] for name in wave["hosts"])
    return [
        name
        for name, kind in classes.items()
        if document["hosts"][name]["verdict"] != VERDICTS[kind] or placed[name] != 1
    ]


def main() -> int:
    """Print the figures; 1 when a bar is missed or a host is judged wrongly."""
    seed = random.SystemRandom().randrange(1 << 32)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        write_project(root, random.Random(seed))
        classes = write_observations(root)
        in_use = [name for name, kind in classes.items() if kind == "in-use"]
        seen_mib = sum(path.stat().st_size for path in (root / "seen").iterdir()) / 2**20
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.monotonic()
        command = [sys.executable, __file__, "--measured", str(root), *in_use]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = time.monotonic() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    document = json.loads(done.stdout)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    wrong = misjudged(document, classes)
    counts = Counter(host["verdict"] for host in document["hosts"].values())
    said = ", ".join(f"{count} {word}" for word, count in counts.items())
    print(
        f"seed {seed}; {seen_mib:.0f} MiB of observations; {len(document['waves'])} waves, "
        f"{len(document['builds'])} releases to build; {said}; of the CPU {cpu:.2f} s, "
        f"{document['longest-way-s']:.2f} s on the longest way; load {os.getloadavg()[0]:.1f}"
    )
    if wrong:
        print(f"judged wrongly: {', '.join(wrong[:5])}")
    right = not wrong and len(document["hosts"]) == HOSTS
    ratio, mib = seconds / BAR_S, document["mib"]
    time_met, memory_met = right and seconds <= BAR_S, right and mib <= BAR_MIB
    figure = f"{seconds:.2f} s, {ratio:.2f} of the bar"
    print(f"plan of a rollout over {HOSTS} hosts  {figure}  at most {BAR_S:.0f} s  {'met' if time_met else 'MISSED'}")
    met = "met" if memory_met else "MISSED"
    print(f"memory of that plan, all processes  {mib:.0f} MiB  at most {BAR_MIB:.0f} MiB  {met}")
    return 0 if time_met and memory_met else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measured"]:
        measured(Path(sys.argv[2]), set(sys.argv[3:]))
    else:
        sys.exit(main())
