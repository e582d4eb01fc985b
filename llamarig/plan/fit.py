"""Whether what the services take fits into cards and RAM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from llamarig.plan.devices import room_of
from llamarig.plan.load import Load
from llamarig.plan.types import DevicePlan, Finding, RamPlan
from llamarig.spec.host import HostSpec

_DOMINATING = 3
"""Terms that a refusal names."""


def device_plans(spec: HostSpec, loads: Mapping[str, Load]) -> tuple[DevicePlan, ...]:
    """One plan a card, in the order of the spec; unknown cards have no room at all."""
    plans = []
    for name, gpu in spec.gpus.items():
        services = {service: load.cards[name] for service, load in loads.items() if name in load.cards}
        room = room_of(gpu)
        plans.append(
            DevicePlan(
                gpu=name,
                uuid=gpu.uuid,
                total_mib=room.total_mib if room else 0.0,
                usable_mib=room.usable_mib if room else 0.0,
                margin_mib=float(max((spec.services[service].margin_mib for service in services), default=0)),
                services=services,
                doubt_mib=sum(load.doubt.get(name, 0.0) for load in loads.values()),
            )
        )
    return tuple(plans)


def ram_plan(spec: HostSpec, loads: Mapping[str, Load]) -> RamPlan:
    """RAM of all services; total 0 when the spec does not say how much there is."""
    return RamPlan(
        total_mib=float(spec.memory.total_mib) if spec.memory else 0.0,
        reserve_mib=float(spec.memory.reserve_mib) if spec.memory else 0.0,
        services={name: load.ram for name, load in loads.items()},
    )


def dominating(components: Mapping[str, float]) -> str:
    """The biggest terms, biggest first, in words."""
    biggest = sorted(components.items(), key=lambda item: -item[1])[:_DOMINATING]
    return ", ".join(f"{term} {mib:,.0f}" for term, mib in biggest)


def fit_findings(spec: HostSpec, devices: tuple[DevicePlan, ...], ram: RamPlan) -> Iterator[Finding]:
    """Errors where something does not fit, warnings where it barely does."""
    for device in devices:
        if device.services:
            yield from _device(spec, device)
    yield from _kept_margins(spec, devices)
    yield from _ram(spec, ram)


def _device(spec: HostSpec, device: DevicePlan) -> Iterator[Finding]:
    if not device.total_mib:
        yield Finding(
            "gpu-unknown",
            "error",
            f"the catalog does not know the card {spec.gpus[device.gpu].model!r}, so its memory is unknown",
            "use one of the catalog's names (llamarig/catalog/gpus.yml)",
            device.gpu,
        )
        return
    room = room_of(spec.gpus[device.gpu])
    if room is not None and not room.measured:
        yield Finding(
            "usable-assumed",
            "note",
            f"nobody measured what the driver keeps on {device.gpu}: {device.usable_mib:,.0f} of "
            f"{device.total_mib:,.0f} MiB are taken as usable",
            "compare with `nvidia-smi -q -d MEMORY` (Reserved) on the host",
            device.gpu,
        )
    accepted = [name for name in device.services if spec.services[name].accept_margin is not None]
    short = device.margin_mib - device.free_mib
    # Who accepts a thin margin speaks for himself: what the others ask for still holds.
    asked = max((spec.services[name].margin_mib for name in device.services if name not in accepted), default=0)
    if device.free_mib < max(asked, 0) <= device.free_mib + device.doubt_mib:
        yield _undecided(device, asked)
    elif device.free_mib < 0:
        yield _does_not_fit(device, device.margin_mib)
    elif device.free_mib < asked:
        yield _does_not_fit(device, asked)
    elif short > 0:
        yield Finding(
            "thin-margin",
            "warning",
            f"{device.free_mib:,.0f} MiB stay free on {device.gpu}, and {device.margin_mib:,.0f} are asked for; "
            f"accepted: {_reasons(spec, accepted)}",
            "memory grows while requests are served; watch the card, or lower context, ubatch or n-max",
            device.gpu,
        )
    growing = [
        name
        for name, terms in device.services.items()
        if spec.services[name].speculation and "compute" in terms and NO_GRAPHS not in spec.services[name].environment
    ]
    if growing:
        yield _grows(device, growing)


def _reasons(spec: HostSpec, names: list[str]) -> str:
    given = [spec.services[name].accept_margin for name in names]
    return "; ".join(dict.fromkeys(each.reason for each in given if each is not None))


def _kept_margins(spec: HostSpec, devices: tuple[DevicePlan, ...]) -> Iterator[Finding]:
    """Accepted margins that the plan does not need, so that no thin margin shows their reason."""
    thin = {name for device in devices if device.free_mib < device.margin_mib for name in device.services}
    for name, service in spec.services.items():
        if service.accept_margin is not None and name not in thin:
            yield Finding(
                "margin-accepted",
                "note",
                f"service {name} may leave less than {service.margin_mib:,} MiB free, though this plan keeps them; "
                f"accepted: {service.accept_margin.reason}",
                "remove accept-margin when it is not needed",
                name,
            )


def _does_not_fit(device: DevicePlan, margin: float) -> Finding:
    short = margin - device.free_mib
    need = "needs" if len(device.services) == 1 else "need"
    return Finding(
        "does-not-fit",
        "error",
        f"{short:,.0f} MiB short on {device.gpu}: {', '.join(device.services)} {need} {device.used_mib:,.0f} MiB, and "
        f"{device.usable_mib:,.0f} usable less a margin of {margin:,.0f} leave "
        f"{device.usable_mib - margin:,.0f}; most of it: {dominating(device.components)}",
        "take one of the alternatives, or another card",
        device.gpu,
    )


def _undecided(device: DevicePlan, margin: float) -> Finding:
    return Finding(
        "header-undecided",
        "warning",
        f"only the exact header says whether {device.gpu} holds {', '.join(device.services)}: with the composed one "
        f"{margin - device.free_mib:,.0f} MiB are short, and up to {device.doubt_mib:,.0f} of the weights may lie in "
        "RAM instead, in an embedding of wider blocks",
        "run `llamarig lock`, which stores the exact header under headers/",
        device.gpu,
    )


GROWTH_MIB = 8.0
"""MiB a request, reported for CUDA graphs with speculation (llama.cpp issues 25835 and 26558): 7.96 with each of two
drafters, in a straight line until the server died, and 0.12 with GGML_CUDA_DISABLE_GRAPHS set."""

DAY_OF_REQUESTS = 128
"""Requests that free memory should last for where it grows so: one every four minutes of a working day, after which a
service can be restarted at night. The engine's own default margin (``--fit-target``, 1,024 MiB) lasts as long."""

NO_GRAPHS = "GGML_CUDA_DISABLE_GRAPHS"
"""The engine asks only whether the variable is there (ggml/src/ggml-cuda/ggml-cuda.cu)."""


def _grows(device: DevicePlan, services: list[str]) -> Finding:
    requests = int(max(device.free_mib, 0.0) / GROWTH_MIB)
    return Finding(
        "memory-grows",
        "note" if requests >= DAY_OF_REQUESTS and device.free_mib >= device.margin_mib else "warning",
        f"with speculation and CUDA graphs, memory was seen to grow by about {GROWTH_MIB:.0f} MiB a request until the "
        f"server died; what is free on {device.gpu} lasts for about {requests:,} requests of {', '.join(services)}",
        f"restart the service in a quiet hour before that, leave a bigger margin (margin-mib; "
        f'{DAY_OF_REQUESTS * GROWTH_MIB:,.0f} last for {DAY_OF_REQUESTS} requests), or set {NO_GRAPHS}: "1" under '
        "environment, which costs speed",
        device.gpu,
    )


def _ram(spec: HostSpec, ram: RamPlan) -> Iterator[Finding]:
    if not ram.total_mib:
        yield Finding(
            "ram-unknown",
            "note",
            f"the spec does not say how much RAM {spec.host} has; the services need {ram.used_mib:,.0f} MiB",
            "add `memory: {total-mib: …}`; `llamarig init` reads it from the host",
        )
        return
    short = ram.used_mib + ram.reserve_mib - ram.total_mib
    if short > 0:
        yield Finding(
            "ram-does-not-fit",
            "error",
            f"{short:,.0f} MiB of RAM short: the services need {ram.used_mib:,.0f} MiB, and {ram.total_mib:,.0f} less "
            f"a reserve of {ram.reserve_mib:,.0f} are there; most of it: {dominating(ram.components)}",
            "lower cache-ram-mib, context-checkpoints, parallel or context, or use a smaller model",
        )
