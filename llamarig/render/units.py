"""The unit of a service: what systemd starts, as whom, with which limits and confinement."""

from __future__ import annotations

from llamarig.errors import ExitCode, RigError
from llamarig.plan.types import ServicePlan
from llamarig.render.arguments import value_of
from llamarig.render.probe import CONFIG_ERROR, PROGRAM, config_path, is_socket
from llamarig.render.quoting import command_line, path_value, quote
from llamarig.render.sandbox import Directive, Needs, sandbox
from llamarig.render.text import fill
from llamarig.render.wanted import CURRENT, KEYS, UNITS
from llamarig.spec.service import NoKeys, Service

_TEMPLATE = "etc/systemd/system/llama-service.service.j2"
_NO_CREDENTIAL = 243
"""systemd's own exit status when a credential's file is not there (systemd.exec(5))."""
_PROOF_SLACK_S = 30
"""The probe gives up before systemd does, so that its own words reach the journal."""


def unit_name(service: str) -> str:
    """The unit, the user and the group of a service carry one name."""
    return f"llama-{service}"


def unit_path(service: str) -> str:
    """Where the unit of a service lies on the host."""
    return f"{UNITS}/{unit_name(service)}.service"


def keys_path(service: str) -> str:
    """Where the key file of a service lies on the host."""
    return f"{KEYS}/{service}.keys"


def _defect(plan: ServicePlan, why: str) -> RigError:
    return RigError(
        what=f"the plan of service {plan.name} is not safe to render",
        why=why,
        fix="this is a defect of llamarig; please report it with the spec",
        code=ExitCode.BAD_INPUT,
    )


def _credentials(service: Service, plan: ServicePlan) -> tuple[str, ...]:
    """``name:path`` of every secret; the planned arguments say where the server looks for each."""
    listen = service.listen
    sources: list[tuple[str, str | None]] = [
        ("--api-key-file", keys_path(plan.name) if listen.keyless is None else None),
        ("--ssl-cert-file", listen.tls.certificate if listen.tls else None),
        ("--ssl-key-file", listen.tls.key if listen.tls else None),
    ]
    prefix = f"/run/credentials/{unit_name(plan.name)}.service/"
    found = []
    for flag, source in sources:
        place = value_of(plan.argv, flag)
        if (place is None) != (source is None):
            raise _defect(plan, f"{flag} is {place!r} although the spec gives {source!r}")
        if place is not None and source is not None:
            if not place.startswith(prefix) or "/" in place[len(prefix) :]:
                raise _defect(plan, f"{flag} {place} is not below {prefix}")
            found.append(f"{place[len(prefix) :]}:{path_value(source)}")
    return tuple(found)


def needs_of(service: Service, gpu: bool, models_dir: str) -> Needs:
    """What the sandbox must leave open for a service."""
    listen = service.listen
    return Needs(
        gpu=gpu,
        address=listen.address,
        port=0 if is_socket(listen.address) else listen.port,
        allow=tuple(listen.allow),
        models_dir=models_dir,
        lock_memory=service.load_mode == "mlock",
        children=service.router is not None,
    )


def _order(needs: Needs, argv0: str) -> tuple[Directive, ...]:
    """The ``[Unit]`` section."""
    after = ["network.target"]
    wants = []
    if needs.gpu:
        after += ["systemd-modules-load.service", "nvidia-persistenced.service"]
    if not needs.socket and not needs.loopback:
        after.append("network-online.target")
        wants.append("network-online.target")
    return (
        ("After", " ".join(after)),
        *((("Wants", " ".join(wants)),) if wants else ()),
        ("AssertFileIsExecutable", path_value(argv0)),
        # Ten starts in half an hour, with the pauses below, are about ten minutes of trying.
        ("StartLimitIntervalSec", "30min"),
        ("StartLimitBurst", "10"),
    )


def _lifecycle(needs: Needs, plan: ServicePlan) -> tuple[Directive, ...]:
    directives = [
        ("Restart", "always"),
        ("RestartSec", "2"),
        ("RestartSteps", "6"),
        ("RestartMaxDelaySec", "120"),
        ("RestartPreventExitStatus", f"{CONFIG_ERROR} {_NO_CREDENTIAL}"),
        ("TimeoutStartSec", str(plan.start_timeout_s + _PROOF_SLACK_S)),
        ("TimeoutStopSec", "30"),
        ("OOMPolicy", "kill"),
    ]
    if plan.memory_max_mib > 0:
        directives.append(("MemoryMax", f"{plan.memory_max_mib}M"))
    if needs.socket:
        directives += _socket_place(needs.address, plan)
    return tuple(directives)


def _socket_place(address: str, plan: ServicePlan) -> list[Directive]:
    directory = address.rpartition("/")[0]
    own = unit_name(plan.name)
    if directory == f"/run/{own}":
        return [("RuntimeDirectory", own), ("RuntimeDirectoryMode", "0750")]
    return [("ReadWritePaths", quote(directory))]


def unit_text(service: Service, plan: ServicePlan, gpu: bool, models_dir: str) -> str:
    """The whole unit file of a service.

    Raises :class:`RigError` when a value cannot be written into a unit file, or when
    the planned arguments contradict the spec about keys and certificates.
    """
    if not plan.argv or not plan.argv[0].startswith(f"{CURRENT}/"):
        raise _defect(plan, f"its program is not below {CURRENT}")
    needs = needs_of(service, gpu, models_dir)
    if isinstance(service.listen.keyless, NoKeys) and not (needs.socket or needs.loopback):
        raise _defect(plan, "a server without keys may listen on loopback or a socket only")
    config = config_path(plan.name)
    return fill(
        _TEMPLATE,
        name=plan.name,
        user=unit_name(plan.name),
        unit=_order(needs, plan.argv[0]),
        environment=[quote(f"{name}={value}") for name, value in sorted(plan.environment.items())],
        start=command_line((PROGRAM, "run", config, "--", *plan.argv)),
        start_post=command_line((PROGRAM, "after", config)).replace(" \\\n    ", " "),
        credentials=_credentials(service, plan),
        lifecycle=_lifecycle(needs, plan),
        sandbox=sandbox(needs),
    )
