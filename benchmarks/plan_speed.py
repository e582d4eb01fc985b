"""A plan of one spec whose header is at hand, in process: memory, arguments, findings.

The reference stack and hosts with models of other families, on the card and with a part of them in RAM, are planned
over and over, each time with another context, so that nothing is kept from one plan to the next. The median counts; the
first one of the process is shown, too.
"""

from __future__ import annotations

import copy
import gc
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from llamarig.gguf import Header  # noqa: E402 - after the path
from llamarig.plan.host import plan_host  # noqa: E402 - after the path
from llamarig.spec.host import HostSpec  # noqa: E402 - after the path
from tests.support import models  # noqa: E402 - found below the checkout only
from tests.support.big_models import header_of, qwen35_27b  # noqa: E402 - found below the checkout only
from tests.support.plan_specs import REFERENCE  # noqa: E402 - found below the checkout only

BAR_MS = 30.0
ROUNDS = 40
STEP = 256
"""Tokens by which the context changes from plan to plan."""
IN_RAM: dict[str, dict[str, Any]] = {
    "28 layers and more": {"gpu-layers": 20},
    "experts of ten layers": {"experts-on-cpu": 10},
    "all experts": {"experts-on-cpu": "all"},
    "every second layer's attention": {"tensor-overrides": [r"blk\.\d*[02468]\.attn=CPU"]},
}
"""Keys of a service by what of its model lies in RAM."""
MODELS = ("llama-3.1-8b", "qwen3moe-30b-a3b", "gemma3-27b", "gpt-oss-20b", "qwen35moe-35b-a3b", "qwen3next-80b-a3b")


def specs() -> dict[str, tuple[dict[str, Any], Header]]:
    """A spec and a header by what is planned: the reference, then one service on one card for each model."""
    found = {"the reference stack": (REFERENCE, header_of(qwen35_27b()))}
    for name in MODELS:
        header = models.header(name)
        found[name] = (alone({}), header)
        for part, keys in IN_RAM.items():
            found[f"{name}, in RAM {part}"] = (alone(keys), header)
    return found


def alone(keys: dict[str, Any]) -> dict[str, Any]:
    """The reference spec with one plain service, and these keys of it."""
    spec = copy.deepcopy(REFERENCE)
    service: dict[str, Any] = spec["services"]["chat"]
    for key in ("speculation", "projector-gpu"):
        service.pop(key, None)
    spec["models"]["qwen"].pop("projector", None)
    service.update(keys, **{"kv-cache": {"k": "q8_0", "v": "q8_0"}})
    return spec


def timed(spec: dict[str, Any], header: Header) -> list[float]:
    """Milliseconds of processor time of each plan, which reads nothing; the sweeping before is not counted."""
    hosts = []
    for number in range(ROUNDS):
        spec["services"]["chat"]["context"] = 32_768 + STEP * number
        hosts.append(HostSpec.model_validate(spec))
    taken = []
    for host in hosts:
        gc.collect()
        started = time.process_time()
        plan = plan_host(host, {"qwen": header}, with_alternatives=False)
        taken.append(1000 * (time.process_time() - started))
        assert plan.services
    return taken


def main() -> int:
    """Plan and print a line each; 1 when the slowest median is above the bar."""
    slowest = 0.0
    for name, (spec, header) in specs().items():
        taken = timed(copy.deepcopy(spec), header)
        median = statistics.median(taken)
        print(f"{name}: median {median:.1f} ms, first {taken[0]:.1f}, slowest {max(taken):.1f}", flush=True)
        slowest = max(slowest, median)
    verdict = "met" if slowest <= BAR_MS else "MISSED"
    print(f"plan of one spec, cached header  {slowest:.1f} ms  {BAR_MS:.0f} ms  {verdict}")
    return 0 if verdict == "met" else 1


if __name__ == "__main__":
    sys.exit(main())
