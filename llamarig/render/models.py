"""Model files by content, with the names under which the services know them."""

from __future__ import annotations

from dataclasses import replace

from llamarig.plan.places import model_path
from llamarig.render.wanted import WantedModelFile
from llamarig.spec.host import HostSpec
from llamarig.spec.models import Model, ModelFile
from llamarig.spec.service import Service


def origin_of(file: ModelFile) -> dict[str, str]:
    """Where a file comes from, in the form that the role and the controller read."""
    if file.repo is not None:
        return {"kind": "hub", "repo": file.repo, "revision": str(file.revision), "file": str(file.file)}
    if file.url is not None:
        return {"kind": "url", "url": file.url}
    if file.wheel is not None:
        return {"kind": "wheel", "wheel": file.wheel, "member": str(file.member)}
    if file.host_path is not None:
        return {"kind": "host-path", "path": file.host_path}
    return {"kind": "controller-path", "path": str(file.controller_path)}


def files_of(model: Model) -> tuple[ModelFile, ...]:
    """A model's files: itself, its further shards, its projector."""
    return (model, *model.shards, *((model.projector,) if model.projector is not None else ()))


def models_of(service: Service) -> set[str]:
    """Every model that a service reads."""
    return service.models_read


def _services_with(spec: HostSpec, model: str) -> tuple[str, ...]:
    return tuple(sorted(name for name, service in spec.services.items() if model in models_of(service)))


def _content(models_dir: str, model: str, index: int, file: ModelFile) -> str:
    known = file.sha256 if file.sha256 != "unlocked" else f"unlocked-{model}-{index}"
    return f"{models_dir}/sha256/{known}"


def wanted_models(spec: HostSpec) -> tuple[WantedModelFile, ...]:
    """Every model file of the host once, by content; the same content under two names is one file."""
    found: dict[str, WantedModelFile] = {}
    for name, model in spec.models.items():
        restarts = _services_with(spec, name)
        for index, file in enumerate(files_of(model)):
            path = _content(spec.models_dir, name, index, file)
            link = model_path(spec, name, file)
            known = found.get(path)
            if known is None:
                found[path] = WantedModelFile(
                    sha256=file.sha256,
                    size=file.size if isinstance(file.size, int) else 0,
                    path=path,
                    links=(link,),
                    origin=origin_of(file),
                    fetch=model.fetch,
                    restarts=restarts,
                )
                continue
            found[path] = replace(
                known,
                links=tuple(sorted({*known.links, link})),
                restarts=tuple(sorted({*known.restarts, *restarts})),
            )
    return tuple(found.values())
