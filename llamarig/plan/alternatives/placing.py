"""Changes of what lies where: another quant, the projector elsewhere, layers and experts in RAM."""

from __future__ import annotations

from typing import Any

from llamarig.catalog.known_files import UNLOCKED, KnownFile
from llamarig.gguf import Header
from llamarig.memory.units import MIB
from llamarig.plan.alternatives.change import Change, Series, ServiceEdit, Subject, listed, unchanged
from llamarig.plan.quality import LEAST_BITS, quality_words
from llamarig.plan.settings import placed_on, projector_card
from llamarig.plan.stand_in import scaled
from llamarig.spec.models import Model
from llamarig.spec.service import Service

_GB = 1e9
_EXPERTS = "_exps."


def quant(subject: Subject, name: str) -> Series | None:
    """Smaller files of the same model that the catalog knows to the byte, biggest first; none of 2 bits or less."""
    return _files(subject, name, "quant", coarse=False)


def coarse_quant(subject: Subject, name: str) -> Series | None:
    """Those that are not recommended, where no better one fits."""
    return _files(subject, name, "coarse-quant", coarse=True)


def _files(subject: Subject, name: str, kind: str, *, coarse: bool) -> Series | None:
    service = subject.spec.services[name]
    model, header = subject.spec.models[service.model], subject.header(name)
    own = identified(subject, model)
    if own is None or header is None or model.shards:
        return None
    size = model.size if isinstance(model.size, int) else own.most_bytes
    smaller = [
        each
        for each in usable_files(subject, service, own)
        if each.most_bytes < size and (0 < each.quant_class < LEAST_BITS) is coarse
    ]
    smaller.sort(key=lambda each: -each.most_bytes)
    changes = [file_change(subject, name, own, other) for other in smaller]
    sizes = [-float(each.most_bytes) for each in smaller] + [-float(size)]
    # The last one stands for no step, number -1.
    after = "quant" if coarse else ""
    return Series(kind, name, len(changes), changes.__getitem__, scale=sizes.__getitem__, after=after)


def identified(subject: Subject, model: Model) -> KnownFile | None:
    """The known file that a model of the spec is."""
    size = model.size if isinstance(model.size, int) else None
    return subject.known.identify(sha256=model.sha256, repo=model.repo, file=model.file, size=size)


def usable_files(subject: Subject, service: Service, own: KnownFile) -> list[KnownFile]:
    """Files of the same model that are known to the byte; with the head that drafts, where one of its services does."""
    drafts = any(
        each.speculation is not None and each.speculation.type == "draft-mtp" and service.model in each.models_read
        for each in subject.spec.services.values()
    )
    return [each for each in subject.known.of(own.model) if each.size is not None and (each.mtp or not drafts)]


def file_keys(file: KnownFile) -> dict[str, Any]:
    """A file as a spec names it; what nobody published is ``unlocked``."""
    return {
        "repo": file.repo,
        "revision": file.revision,
        "file": file.file,
        "sha256": file.sha256,
        "size": file.size if file.size is not None else UNLOCKED,
    }


def file_change(subject: Subject, name: str, own: KnownFile, other: KnownFile) -> Change:
    """Another file for the service's model; planned with the present one's layout and the other's bytes."""
    model = subject.spec.services[name].model
    header = subject.header(name)
    planned = scaled(header, other.most_bytes) if header is not None else None
    keys = file_keys(other)
    origin: dict[str, Any] = {"url": None, "wheel": None, "member": None, "host_path": None, "controller_path": None}
    harm = f"coarser weights: {other.quant}, {other.most_bytes / _GB:.2f} GB instead of {own.most_bytes / _GB:.2f}"
    parameters = subject.known.models[own.model].parameters
    if parameters:
        bits = [each.most_bytes * 8 / parameters for each in (other, own)]
        harm += f", {bits[0]:.2f} bits a weight instead of {bits[1]:.2f}"
    harm = "; ".join([harm, *quality_words(other.quant_class)])
    changed = (model, {**origin, **keys, "header": None}, planned)
    return Change(name, {"models": {model: keys}}, harm, unchanged, changed)


def projector(subject: Subject, name: str) -> Series | None:
    """The projector on another card of the host, or on the CPU."""
    service = subject.spec.services[name]
    if subject.spec.models[service.model].projector is None:
        return None
    here = projector_card(subject.spec, service)
    if here is None:
        return None
    changes = [
        Change(name, {"projector-gpu": card}, f"none for text; images are read on {card}", _with("projector_gpu", card))
        for card in subject.spec.gpus
        if card != here
    ]
    cpu: dict[str, Any] = {"projector-on-cpu": True}
    if service.projector_gpu is not None:
        cpu["projector-gpu"] = None
    harm = "none for text; the CPU reads images: one with 32 threads was reported to take 17 s for one"
    changes.append(Change(name, cpu, harm, _on_cpu))
    return listed("projector", name, changes, monotone=False)


def _on_cpu(service: Service) -> Service:
    return service.model_copy(update={"projector_on_cpu": True, "projector_gpu": None})


def experts(subject: Subject, name: str) -> Series | None:
    """The experts of the first layers in RAM, one layer after the other."""
    service, header = subject.spec.services[name], subject.header(name)
    if header is None or service.experts_on_cpu != 0 or placed_on(subject.spec, service) is None:
        return None
    sizes: dict[int, int] = {}
    for tensor in header.tensors:
        block = tensor.name.split(".", 2)[1] if tensor.name.startswith("blk.") else ""
        if _EXPERTS in tensor.name and block.isdecimal():
            sizes[int(block)] = sizes.get(int(block), 0) + tensor.size
    if not sizes:
        return None
    total = max(sizes) + 1
    shape = subject.shapes.get(name)
    used = shape.experts_used if shape is not None else 0
    share = _share(header, used)

    def change(at: int) -> Change:
        moved = sum(size for block, size in sizes.items() if block <= at) / MIB
        harm = f"the experts of {at + 1} of {total} layers ({moved:,.0f} MiB) run from RAM"
        harm += f", {used} of them a token and layer: about {moved * share:,.0f} MiB are read there" if used else ""
        return Change(name, {"experts-on-cpu": at + 1}, harm, _with("experts_on_cpu", at + 1))

    return Series("experts-on-cpu", name, total, change)


def layers(subject: Subject, name: str) -> Series | None:
    """Layers in RAM, one after the other, the output last."""
    service, header = subject.spec.services[name], subject.header(name)
    shape = subject.shapes.get(name)
    if header is None or shape is None or placed_on(subject.spec, service) is None:
        return None
    total = len(shape.layers) + 1
    now = total if service.gpu_layers == "all" else min(service.gpu_layers, total)
    share = _share(header, shape.experts_used)
    read = (
        each.size * (share if _EXPERTS in each.name else 1.0) for each in header.tensors if each.name.startswith("blk.")
    )
    mean = sum(read) / len(shape.layers) / MIB

    def change(at: int) -> Change:
        left = now - 1 - at
        harm = f"{total - left} of {total} layers run from RAM: about {(total - left) * mean:,.0f} MiB are read there"
        return Change(name, {"gpu-layers": left}, f"{harm} for each token", _with("gpu_layers", left))

    return Series("gpu-layers", name, now, change)


def _share(header: Header, used: int) -> float:
    """Experts that one token uses / experts; 1 where there are none."""
    return min(used / max(header.integer(".expert_count", 0), 1), 1.0) if used else 1.0


def _with(key: str, value: int | str) -> ServiceEdit:
    return lambda service: service.model_copy(update={key: value})
