"""``llamarig model``: look into a GGUF file, with no spec."""

from __future__ import annotations

import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llamarig.cli.context import emit_json, err, out
from llamarig.errors import ExitCode, RigError

if TYPE_CHECKING:
    from llamarig.gguf import Header
    from llamarig.memory import Estimate, Settings

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

_SHOWN_VALUE = 100
_MOST_TOKENS = (1 << 31) - 1
"""The engine keeps these numbers as int32."""


@app.command()
def header(
    file: Annotated[Path, typer.Argument(help="A GGUF file, the first shard of a model, or a header sidecar.")],
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    tensors: Annotated[bool, typer.Option("--tensors", help="List the tensors too.")] = False,
) -> None:
    """Show the keys and tensors of a model, and whether its file is whole."""
    from llamarig.compare.text import printable
    from llamarig.gguf import Omitted

    found = _read(file)
    metadata = {
        key: f"{value.length:,} x {value.element}" if isinstance(value, Omitted) else value
        for key, value in found.metadata.items()
    }
    if json_:
        emit_json(_header_json(found, metadata, tensors))
        return
    from rich.markup import escape

    out().print(f"[bold]{escape(printable(found.name))}[/], GGUF {found.version}, {len(found.tensors):,} tensors")
    out().print(f"{found.minimum_size:,} bytes in {found.shards} file(s), {_wholeness(found)}")
    for key, value in metadata.items():
        out().print(f"  {escape(printable(key))} = {escape(printable(str(value), _SHOWN_VALUE))}")
    if tensors:
        for tensor in found.tensors:
            dims = " x ".join(str(dim) for dim in tensor.dims)
            out().print(f"  {escape(printable(tensor.name))}  {tensor.type}  {dims}  {tensor.size:,} bytes")


def _wholeness(found: Header) -> str:
    """Whether all shards are here; each one's own size was compared when it was read."""
    promised = found.promised_shards
    return "whole" if found.shards >= promised else f"[yellow]not whole: {found.shards} of {promised} shards[/]"


def _header_json(found: Header, metadata: dict[str, Any], tensors: bool) -> dict[str, Any]:
    data = {
        "architecture": found.architecture,
        "name": found.name,
        "gguf-version": found.version,
        "shards": found.shards,
        "shards-promised": found.promised_shards,
        "size": found.minimum_size,
        "metadata": {key: list(value) if isinstance(value, tuple) else value for key, value in metadata.items()},
    }
    if tensors:
        data["tensors"] = [
            {"name": tensor.name, "type": tensor.type, "dims": list(tensor.dims), "size": tensor.size}
            for tensor in found.tensors
        ]
    return data


def _read(file: Path) -> Header:
    from llamarig.gguf import load_sidecar, read_shards

    _require_file(file)
    return load_sidecar(file) if file.suffix == ".json" else read_shards(file)


_FILES = "name a GGUF file, the first shard of a model, or a header below headers/"


def _require_file(file: Path) -> None:
    """A plain file, for a device or pipe would be read without end; says what it is otherwise."""
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        raise RigError(what="there is no such file", where=str(file), fix=_FILES) from None
    except OSError as error:
        raise RigError(what="the file cannot be looked at", where=str(file), why=error.strerror or "") from None
    kinds = {
        stat.S_IFDIR: "a directory",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    if not stat.S_ISREG(mode):
        raise RigError(
            what=f"this is {kinds.get(stat.S_IFMT(mode), 'something else')}, not a file",
            where=str(file),
            fix=_FILES,
        )


@app.command()
def memory(
    file: Annotated[Path, typer.Argument(help="A GGUF file, the first shard of a model, or a header sidecar.")],
    *,
    context: Annotated[
        int, typer.Option("--context", min=1, max=_MOST_TOKENS, help="Tokens in the window, over all slots.")
    ],
    ubatch: Annotated[int, typer.Option("--ubatch", min=1, max=_MOST_TOKENS, help="Tokens of one pass.")] = 512,
    batch: Annotated[int, typer.Option("--batch", min=1, max=_MOST_TOKENS, help="Tokens of one batch.")] = 2048,
    parallel: Annotated[int, typer.Option("--parallel", min=1, max=256, help="Slots.")] = 1,
    cache_k: Annotated[str, typer.Option("--cache-k", help="Type of the K cache.")] = "f16",
    cache_v: Annotated[str, typer.Option("--cache-v", help="Type of the V cache.")] = "f16",
    spec_type: Annotated[str | None, typer.Option("--spec-type", help="Kind of speculation.")] = None,
    n_max: Annotated[int, typer.Option("--n-max", min=0, max=64, help="Longest draft.")] = 0,
    draft_cache: Annotated[str, typer.Option("--draft-cache", help="Type of the draft's cache.")] = "f16",
    backend: Annotated[str, typer.Option("--backend", help="cuda or cpu: memory on a card, or in RAM.")] = "cuda",
    flash_attn: Annotated[str, typer.Option("--flash-attn", help="on or off.")] = "on",
    kv_unified: Annotated[bool, typer.Option("--kv-unified", help="One KV cache for all slots.")] = False,
    engine: Annotated[
        str | None, typer.Option("--engine", help="Build, release or commit: b10454, 0.4.0, 4df29be4f.")
    ] = None,
    gpu: Annotated[
        str | None, typer.Option("--gpu", help="A card of the catalog, rtx-4090: say whether it fits there.")
    ] = None,
    gpu_layers: Annotated[
        int | None,
        typer.Option("--gpu-layers", min=0, max=_MOST_TOKENS, help="Layers on the card; all when not given."),
    ] = None,
    experts_on_cpu: Annotated[
        int, typer.Option("--experts-on-cpu", min=0, max=_MOST_TOKENS, help="Layers whose experts stay in RAM.")
    ] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compute a server's memory for any GGUF, with no spec: on a CUDA card, or in RAM with --backend cpu.

    With --gpu it says whether that card holds it, with 512 MiB to spare, and exits 1 where it does not.
    --n-max alone means the file's own MTP head.
    """
    from llamarig.memory import TERMS, Settings, estimate
    from llamarig.memory.engines import of_version

    model = of_version(engine)
    _choice("--backend", backend, ("cuda", "cpu"))
    _choice("--flash-attn", flash_attn, ("on", "off"))
    kind = spec_type if spec_type not in (None, "none") else ("draft-mtp" if n_max else None)
    if kind is not None:
        _choice("--spec-type", kind, ("draft-mtp", "draft-model", "eagle3", "dflash", "ngram-mod", "ngram-simple"))
    if kind in _WITH_DRAFTER:
        raise RigError(
            what=f"--spec-type {kind} needs a drafter, a file of its own, which this command is not given",
            fix="name both in a spec (speculation.model) and run `llamarig plan HOST`",
        )
    settings = Settings(
        context=context,
        backend="cpu" if backend == "cpu" else "cuda",
        parallel=parallel,
        kv_unified=kv_unified,
        batch=batch,
        ubatch=ubatch,
        cache_k=cache_k,
        cache_v=cache_v,
        flash_attention=flash_attn == "on",
        speculation=kind,
        n_max=(n_max or _DEFAULT_N_MAX) if kind else 0,
        draft_k=draft_cache,
        draft_v=draft_cache,
        era=model.era,
        gpu_layers=gpu_layers,
        cpu_experts=experts_on_cpu,
    )
    card = None if gpu is None else _card(gpu, backend)
    try:
        found = estimate(_read(file), settings)
    except RigError as error:
        raise error if error.where else replace(error, where=str(file)) from error
    if model.note:
        err().print(f"[yellow]note[/] {model.note}")
    _print_memory(settings, found, list(TERMS), json_, card)
    if card is not None and not card.fits(found.device_mib):
        raise typer.Exit(int(ExitCode.FINDING))


_WITH_DRAFTER = frozenset({"draft-model", "eagle3", "dflash"})
_DEFAULT_N_MAX = 3
"""The engine's own default of --spec-draft-n-max."""


def _choice(flag: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise RigError(what=f"{flag} is {value!r}", fix=f"use one of {', '.join(known)}")


@dataclass(frozen=True)
class _Card:
    """A card of the catalog that nothing else uses; MiB."""

    name: str
    usable_mib: float
    measured: bool
    margin_mib: float

    def fits(self, used: float) -> bool:
        return self.usable_mib - used >= self.margin_mib

    def to_json(self, used: float) -> dict[str, Any]:
        return {
            "gpu": self.name,
            "usable-mib": round(self.usable_mib, 2),
            "free-mib": round(self.usable_mib - used, 2),
            "margin-mib": self.margin_mib,
            "fits": self.fits(used),
        }

    def words(self, used: float) -> str:
        assumed = "" if self.measured else " (assumed)"
        free = self.usable_mib - used
        left = f"{free:,.0f} free" if free >= 0 else f"{-free:,.0f} too many"
        kept = f"margin {self.margin_mib:,.0f}{'' if free < 0 or self.fits(used) else ' not kept'}"
        verdict = "[green]fits[/]" if self.fits(used) else "[bold red]does not fit[/]"
        return f"{self.name} {verdict}: {used:,.0f} of {self.usable_mib:,.0f} MiB usable{assumed}, {left}, {kept}"


def _card(name: str, backend: str) -> _Card:
    from llamarig.catalog.gpus import cards, near_cards
    from llamarig.plan.devices import room_of
    from llamarig.spec.hardware import Gpu
    from llamarig.spec.service import Service

    if backend == "cpu":
        raise RigError(what="--gpu is given with --backend cpu", fix="leave one of them out")
    if name not in cards():
        near = near_cards(name)
        fix = f"did you mean {' or '.join(near)}?" if near else "use a name of llamarig/catalog/gpus.yml"
        raise RigError(what=f"the catalog has no card {name!r}", fix=fix)
    room = room_of(Gpu.model_validate({"model": name}))
    if room is None:
        raise RuntimeError(f"the catalog has {name} and no room for it")
    return _Card(name, room.usable_mib, room.measured, float(Service.model_fields["margin_mib"].default))


def _print_memory(
    settings: Settings, found: Estimate, terms: list[str], json_: bool, card: _Card | None = None
) -> None:
    place = found.host if settings.backend == "cpu" else found.device
    components = {term: round(place.get(term, 0.0), 2) for term in terms}
    total = round(sum(place.values()), 2)
    if not found.known:
        err().print(
            f"[yellow]warning[/] the architecture {found.architecture!r} is not known: plain attention is assumed"
        )
    if json_:
        report = {"architecture": found.architecture, "components": components, "total-mib": total}
        if settings.backend == "cuda":
            report["ram"] = {term: round(mib, 2) for term, mib in found.host.items()}
        emit_json(report if card is None else report | {"card": card.to_json(found.device_mib)})
        return
    cuda = settings.backend == "cuda"
    where = "on the card" if cuda else "in RAM"
    out().print(f"[bold]{found.architecture}[/], {settings.context:,} tokens, {where}")
    _show_place(found, "card" if cuda else "RAM", place)
    if cuda:
        out().print("and in RAM")
        _show_place(found, "RAM", found.host)
    if card is not None:
        out().print(card.words(found.device_mib))


def _show_place(found: Estimate, name: str, terms: dict[str, float]) -> None:
    """A bar and a table of what is on the card or in RAM."""
    from llamarig.cli.plan_view.table import show_terms
    from llamarig.cli.plan_view.terminal import show_bar

    def told(term: str, _services: tuple[str, ...]) -> str:
        if term == "process":
            return "fitted" if name == "card" else "assumed"
        if not found.known:
            return "guessed"
        return "approximate" if "compute" in term and not found.compute_checked else ""

    show_bar(terms, sum(terms.values()))
    show_terms({name: terms}, told, {name: found.host_detail} if name == "RAM" else {})
