"""The engine's build: sources, architectures for every card, options that are llamarig's own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llamarig.catalog.gpus import card as find_card
from llamarig.catalog.gpus import cards as all_cards
from llamarig.catalog.gpus import near_cards
from llamarig.catalog.toolkits import first_rewriting_build, rewrites_plain, system, takes_family_suffix
from llamarig.spec.rules.base import Broken, View, near
from llamarig.spec.tree import Loc

_FULL_COMMIT = 40
_MTP_ASSERTS = range(10741, 10749)
"""Builds that assert on every file with an MTP head."""
_PLANNED_OPTIONS = {
    "GGML_CUDA": "engine.backend",
    "GGML_NATIVE": "llamarig: a build must run on more than the machine that made it",
    "GGML_CUDA_NCCL": "llamarig",
    "GGML_BACKEND_DL": "llamarig: what runs is proven by the libraries that are mapped",
    "LLAMA_BUILD_NUMBER": "engine.build-number",
    "LLAMA_BUILD_COMMIT": "llamarig: it is how the running binary is recognised",
    "LLAMA_BUILD_APP": "llamarig",
    "LLAMA_BUILD_EXAMPLES": "llamarig",
    "LLAMA_BUILD_TESTS": "llamarig",
    "LLAMA_BUILD_UI": "llamarig: the interface is a download at build time",
    "LLAMA_USE_PREBUILT_UI": "llamarig: the interface is a download at build time",
    "LLAMA_OPENSSL": "engine.build.openssl",
    "GGML_CUDA_CUB_3DOT2": "llamarig: it is a download at build time",
}
_GIT = re.compile(r"(https?|ssh|git|file)://[^\s@]*(@[^\s]*)?|[\w.-]+@[\w.-]+:[\w./~-]+|/[^\s]*")
_URL = re.compile(r"https?://[^/@\s]+/\S+")


def _near_card(name: str) -> str:
    close = near_cards(name)
    return f"did you mean {' or '.join(f'`{each}`' for each in close)}?" if close else near(name, list(all_cards()))


def source(view: View) -> Iterator[Broken]:
    """A source is an address of a known kind, and git needs the whole commit."""
    engine = view.spec.engine
    at: Loc = ("engine", "source")
    git = engine.source.git
    if git is not None and (not _GIT.fullmatch(git) or "::" in git):
        yield Broken((*at, "git"), f"`{git}` is no address that git may fetch from", "write an https:// address")
    elif git is not None and _has_password(git):
        yield Broken((*at, "git"), "the address holds a password", "take it out; use an ssh key or a git credential")
    if git is not None and len(engine.commit) < _FULL_COMMIT:
        yield Broken(
            ("engine", "commit"),
            f"git needs the whole commit, and this has {len(engine.commit)} digits",
            "write all 40 hex digits",
            rests_on=(at,),
        )
    archive = engine.source.archive
    if archive is not None and "://" in archive and not _URL.fullmatch(archive):
        yield Broken((*at, "archive"), f"`{archive}` is no http address", "write an https:// address or a path")


def _has_password(address: str) -> bool:
    return bool(re.match(r"[a-z]+://[^/@]*:[^/@]*@", address))


def architectures(view: View) -> Iterator[Broken]:
    """Machine code for every card that is used, and nothing for the CPU backend."""
    engine = view.spec.engine
    at: Loc = ("engine", "architectures")
    if engine.backend == "cpu":
        if engine.architectures:
            yield Broken(
                at,
                "the cpu backend has no CUDA architectures",
                "remove `architectures`, or set `backend: cuda`",
                rests_on=(("engine", "backend"),),
            )
        return
    built = {each.removesuffix("-real").removesuffix("-virtual"): each for each in engine.architectures}
    real = {name for name, each in built.items() if not each.endswith("-virtual")}
    yield from _spelling(view, at)
    for name, card in view.spec.gpus.items():
        known = find_card(card.model)
        if known is None or known.architecture in real:
            continue
        bare = known.architecture.rstrip("af")
        if bare in real and known.architecture != bare:
            continue  # said by _spelling
        if f"{bare}f" in real:
            continue
        yield Broken(
            at,
            f"no machine code for `{name}` ({known.name}): "
            + (f"the build has {', '.join(engine.architectures)}" if engine.architectures else "none is named"),
            f"add {known.architecture}-real",
            rests_on=(at, ("gpus", name, "model"), ("engine", "backend")),
        )


def _spelling(view: View, at: Loc) -> Iterator[Broken]:
    engine = view.spec.engine
    runs = f"{view.spec.os.distribution} {view.spec.os.release}"
    known = system(runs)
    for index, each in enumerate(engine.architectures):
        name = each.removesuffix("-real").removesuffix("-virtual")
        if re.fullmatch(r"12[0-9]", name):
            old = not rewrites_plain(engine.build_number)
            yield Broken(
                (*at, index),
                f"a bare {name} lacks the instructions that NVFP4 needs"
                + (
                    f"; builds before {first_rewriting_build()} fail on it or lose them in silence"
                    if old
                    else f" (this build's CMake makes {name}a of it)"
                ),
                f"write {name}a-real",
                rests_on=(("engine", "build-number"),),
                warning=not old,
            )
        elif name.endswith("f") and known is not None and not takes_family_suffix(runs):
            yield Broken(
                (*at, index),
                f"{each} needs CMake 3.31.8 or 4.0.2, and {runs} has {known.cmake}",
                f"write {name[:-1]}a-real",
                rests_on=(("os",),),
            )
        if engine.architectures.index(each) != index:
            yield Broken((*at, index), f"{each} is named twice", "name each architecture once")


def known_cards(view: View) -> Iterator[Broken]:
    """A card is one that the catalog knows."""
    for name, card in view.spec.gpus.items():
        if find_card(card.model) is None:
            yield Broken(
                ("gpus", name, "model"),
                f"the catalog has no card `{card.model}`",
                _near_card(card.model),
            )


def options(view: View) -> Iterator[Broken]:
    """Options that llamarig sets itself, and one that opens the machine."""
    for name in view.spec.engine.build.options:
        at: Loc = ("engine", "build", "options", name)
        if name == "GGML_RPC":
            yield Broken(at, "GGML_RPC builds an unauthenticated network protocol into the engine", "remove it")
        elif name in _PLANNED_OPTIONS:
            yield Broken(at, f"{name} is set by {_PLANNED_OPTIONS[name]}", "remove it here")


def known_bad(view: View) -> Iterator[Broken]:
    """Builds that are known not to serve what is asked of them."""
    engine = view.spec.engine
    if engine.build_number in _MTP_ASSERTS:
        first, last = _MTP_ASSERTS[0], _MTP_ASSERTS[-1]
        yield Broken(
            ("engine", "build-number"),
            f"builds {first} to {last} end with an assertion on every model that has an MTP head",
            f"take a commit before {first} or after {last}",
        )


def patches(view: View) -> Iterator[Broken]:
    """Each patch once."""
    seen: dict[object, int] = {}
    for index, patch in enumerate(view.spec.engine.patches):
        key: object = patch.file or patch.pr
        if seen.setdefault(key, index) != index:
            yield Broken(("engine", "patches", index), f"the patch {key} is listed twice", "list each patch once")


_PLACES = {"builder": "builder", "container": "image"}
"""Where a build runs, and the key that says which."""
_EXAMPLES = {"builder": "name a host of this project", "image": "name an image of the host's system, `debian:13` say"}


def place(view: View) -> Iterator[Broken]:
    """A build elsewhere says where exactly; what says so for another kind of place is not used.

    The builder itself may have its own name from the defaults of the fleet that it builds for.
    """
    build = view.spec.engine.build
    at: Loc = ("engine", "build")
    where: Loc = (*at, "where")
    for kind, key in _PLACES.items():
        given = getattr(build, key)
        if build.where == kind and given is None:
            fix = f"add `{key}:` below `build`: {_EXAMPLES[key]}"
            yield Broken(where, f"`where: {kind}` needs `{key}`", fix, rests_on=((*at, key),))
        elif build.where != kind and given is not None and given != view.spec.host:
            fix = f"write `where: {kind}`, or remove `{key}`"
            message = f"`{key}` is not used with `where: {build.where}`"
            yield Broken((*at, key), message, fix, rests_on=(where,), warning=True)


RULES = (source, architectures, known_cards, options, known_bad, patches, place)
