"""The wanted state of a host: everything that llamarig manages there, as plain data."""

from __future__ import annotations

from pathlib import Path

from llamarig.catalog.gpus import card as catalog_card
from llamarig.errors import RigError
from llamarig.plan.places import PRESETS
from llamarig.plan.settings import visible_cards
from llamarig.plan.types import Plan, ServicePlan
from llamarig.render import wanted as place
from llamarig.render.arguments import flags_of, value_of
from llamarig.render.build import builds_nothing, packages, release
from llamarig.render.driver import driver
from llamarig.render.models import wanted_models
from llamarig.render.power import wanted_power
from llamarig.render.probe import PROGRAM, config_path, is_socket, probe_config
from llamarig.render.site import apt_source
from llamarig.render.text import fill, verbatim
from llamarig.render.toolkit import toolkit
from llamarig.render.units import keys_path, unit_name, unit_path, unit_text
from llamarig.render.wanted import (
    Wanted,
    WantedCard,
    WantedCredential,
    WantedFile,
    WantedModelFile,
    WantedService,
    WantedUser,
)
from llamarig.spec.hardware import full_bus_id
from llamarig.spec.host import HostSpec
from llamarig.spec.service import Service

Directory = tuple[str, str, str, str]
_GPU_GROUPS = ("video",)
"""Debian's driver package gives its device nodes to this group."""


def _uses_gpu(spec: HostSpec, service: Service) -> bool:
    return bool(visible_cards(spec, service))


def _users(spec: HostSpec) -> tuple[WantedUser, ...]:
    builder = WantedUser(name=place.BUILDER, home=place.BUILD)
    servers = (
        WantedUser(name=unit_name(name), groups=_GPU_GROUPS if _uses_gpu(spec, service) else ())
        for name, service in spec.services.items()
    )
    return (builder, *servers)


def _directories(spec: HostSpec, models: tuple[WantedModelFile, ...]) -> tuple[Directory, ...]:
    """(path, mode, owner, group), parents first."""
    root = ("root", "root")
    builder = (place.BUILDER, place.BUILDER)
    cache = ((place.CCACHE.rpartition("/")[0], "0755", *root), (place.CCACHE, "0750", *builder))
    named = sorted({link.rpartition("/")[0] for model in models for link in model.links})
    return (
        (place.ROOT, "0755", *root),
        (place.RELEASES, "0755", *root),
        *(((place.TOOLKITS, "0755", *root),) if toolkit(spec) is not None else ()),
        (place.LIBEXEC, "0755", *root),
        (place.STATE, "0755", *root),
        # Root takes a finished build out of it; its owner could swap one directory of it for another.
        (place.BUILD, "0755", *root),
        (place.INCOMING, "0700", *root),
        *(cache if spec.engine.build.where == "host" else ()),
        (place.CONFIG, "0755", *root),
        (place.KEYS, "0700", *root),
        (f"{place.CONFIG}/services", "0755", *root),
        (f"{place.CONFIG}/templates", "0755", *root),
        *(((PRESETS, "0755", *root),) if any(service.router for service in spec.services.values()) else ()),
        (spec.models_dir, "0755", *root),
        (f"{spec.models_dir}/sha256", "0755", *root),
        *((path, "0755", *root) for path in named),
    )


def _chat_template(service: Service, plan: ServicePlan, project_root: Path) -> tuple[WantedFile, ...]:
    path = value_of(plan.argv, "--chat-template-file")
    if service.chat_template is None or path is None:
        return ()
    source = project_root / service.chat_template
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise RigError(
            what=f"the chat template of service {plan.name} cannot be read",
            where=str(source),
            why=str(error),
            fix="chat-template names a UTF-8 file below the project's directory",
        ) from error
    return (WantedFile(path=path, content=text, restarts=(plan.name,)),)


def _presets(plan: ServicePlan) -> tuple[WantedFile, ...]:
    """The models of a router, in the file that its arguments name."""
    path = value_of(plan.argv, "--models-preset")
    if path is None:
        return ()
    text = fill("etc/llamarig/presets/presets.ini.j2", presets=plan.presets)
    return (WantedFile(path=path, content=text, restarts=(plan.name,)),)


def _files(spec: HostSpec, plan: Plan, project_root: Path) -> tuple[WantedFile, ...]:
    files = [
        *apt_source(spec, project_root),
        WantedFile(
            path=PROGRAM,
            content=verbatim(PROGRAM.lstrip("/")),
            mode="0755",
            restarts=tuple(sorted(spec.services)),
        ),
    ]
    for name, service in spec.services.items():
        service_plan = plan.services[name]
        gpu = _uses_gpu(spec, service)
        config = probe_config(service, service_plan, gpu)
        unit = unit_text(service, service_plan, gpu, spec.models_dir)
        files.append(WantedFile(path=config_path(name), content=config, restarts=(name,)))
        files.extend(_chat_template(service, service_plan, project_root))
        files.extend(_presets(service_plan))
        files.append(WantedFile(path=unit_path(name), content=unit, restarts=(name,)))
    return tuple(files)


def _credentials(spec: HostSpec) -> tuple[WantedCredential, ...]:
    found = []
    for name, service in spec.services.items():
        keys = service.listen.keys
        if service.listen.keyless is None:
            found.append(
                WantedCredential(
                    path=keys_path(name),
                    service=name,
                    kind="generated" if keys.file is None else "file",
                    clients=tuple(keys.clients) if keys.file is None else (),
                    source=keys.file or "",
                )
            )
    return tuple(found)


def _service(spec: HostSpec, plan: Plan, name: str) -> WantedService:
    service, service_plan = spec.services[name], plan.services[name]
    cards = visible_cards(spec, service)
    card = next((device for device in plan.devices if cards and device.gpu == cards[0]), None)
    vram = sum(sum(device.services.get(name, {}).values()) for device in plan.devices)
    return WantedService(
        name=name,
        unit=f"{unit_name(name)}.service",
        user=unit_name(name),
        argv=service_plan.argv,
        environment=dict(service_plan.environment),
        address=service.listen.address,
        port=0 if is_socket(service.listen.address) else service.listen.port,
        keyed=service.listen.keyless is None,
        tls=service.listen.tls is not None,
        model_sha256=spec.models[service.model].sha256,
        model_path=service_plan.model_path,
        alias=value_of(service_plan.argv, "--alias", "-a") or service.alias or service.model,
        context=service_plan.context,
        slots=service_plan.slots,
        modalities=service_plan.modalities,
        speculative=service_plan.speculative,
        backend="cuda" if cards else "cpu",
        gpu_uuid=card.uuid if card is not None else None,
        vram_mib=round(vram, 2),
        start_timeout_s=service_plan.start_timeout_s,
    )


def _cards(spec: HostSpec, plan: Plan) -> tuple[WantedCard, ...]:
    """Those that a service uses."""
    planned = {device.gpu: round(device.used_mib, 2) for device in plan.devices}
    used = {name for service in spec.services.values() for name in visible_cards(spec, service)}
    return tuple(
        WantedCard(
            name=name,
            bus_id=full_bus_id(card.bus_id) if card.bus_id is not None else "",
            uuid=card.uuid,
            planned_mib=planned.get(name, 0.0),
            architecture=known.architecture if (known := catalog_card(card.model)) is not None else "",
        )
        for name, card in spec.gpus.items()
        if name in used
    )


def wanted_state(spec: HostSpec, plan: Plan, project_root: Path) -> Wanted:
    """What the host must look like. ``project_root`` is where chat templates are read from.

    Raises :class:`RigError` when a file of the project is missing or a value cannot be rendered.
    """
    models = wanted_models(spec)
    wanted = Wanted(
        host=spec.host,
        packages=packages(spec),
        users=_users(spec),
        directories=_directories(spec, models),
        files=_files(spec, plan, project_root),
        release=release(spec, flags_of(plan.services[name].argv for name in spec.services)),
        models=models,
        credentials=_credentials(spec),
        services=tuple(_service(spec, plan, name) for name in spec.services),
        cards=_cards(spec, plan),
        driver=driver(spec, project_root),
        toolkit=toolkit(spec),
        power=wanted_power(spec),
        system=f"{spec.os.distribution} {spec.os.release}",
    )
    return wanted if spec.engine.build.where == "host" else builds_nothing(wanted)
