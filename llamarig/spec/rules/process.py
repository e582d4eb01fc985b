"""What a server's process is given: environment, raw arguments, limits."""

from __future__ import annotations

from collections.abc import Iterator

from llamarig.spec.keys import opening_flag, planned_flag
from llamarig.spec.rules.base import Broken, View
from llamarig.spec.tree import Loc

_PREFIXES = ("GGML_", "LLAMA_", "MTMD_", "CUDA_", "OMP_", "GOMP_", "KMP_", "OPENBLAS_", "MALLOC_", "LC_")
_NAMES = {"LANG", "TZ"}
_PLANNED = {
    "CUDA_VISIBLE_DEVICES": "the service's `gpu`",
    "CUDA_DEVICE_ORDER": "llamarig, since cards are named by UUID",
    "MTMD_BACKEND_DEVICE": "the service's `projector-gpu`",
    "LLAMA_API_KEY": "`listen.keys`",
    "LLAMA_CACHE": "llamarig: the server runs offline",
    "LLAMA_OFFLINE": "llamarig: the server runs offline",
}
_UNDOING = {"--model", "-m", "--offline", "--no-warmup", "--api-key", "--fit", "-fit", "--sleep-idle-seconds"}
"""Raw arguments against which no plan and no proof would hold."""
_OPENING = {
    "GGML_BACKEND_PATH": "it makes the server load a library of anybody's choice",
    "GGML_RPC_SERVERS": "it hands the model to an unauthenticated network protocol",
    "CUDA_INJECTION64_PATH": "it makes the server load a library of anybody's choice",
    "CUDA_INJECTION32_PATH": "it makes the server load a library of anybody's choice",
    "OMP_TOOL_LIBRARIES": "it makes the server load a library of anybody's choice",
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "it writes what users ask to disk",
    "CUDA_COREDUMP_FILE": "it writes what users ask to disk",
}


def environment(view: View) -> Iterator[Broken]:
    """Variables that tune the engine are fine; those that plan or open it are not."""
    for name, service in view.spec.services.items():
        for variable, value in service.environment.items():
            at: Loc = ("services", name, "environment", variable)
            if variable in _PLANNED:
                yield Broken(at, f"{variable} is set by {_PLANNED[variable]}", "remove it here")
            elif variable.startswith("LLAMA_ARG_"):
                yield Broken(at, f"{variable} is an argument in disguise", "use the service's key for it")
            elif variable in _OPENING:
                yield Broken(at, f"{variable} opens the machine: {_OPENING[variable]}", "remove it")
            elif variable not in _NAMES and not variable.startswith(_PREFIXES):
                yield Broken(
                    at,
                    f"{variable} is no variable of the engine, of CUDA or of the runtime beneath",
                    "remove it; the server's environment is closed on purpose",
                )
            elif variable == "LLAMA_SPEC_CHAIN" and value in ("0", "", "false", "off"):
                yield Broken(at, "LLAMA_SPEC_CHAIN is on whenever it is set, even to 0", "remove it to turn it off")


def raw_arguments(view: View) -> Iterator[Broken]:
    """Raw arguments are shown every time; what a key sets may not be set again."""
    for name, service in view.spec.services.items():
        for index, argument in enumerate(service.unsafe_args):
            at: Loc = ("services", name, "unsafe-args", index)
            key = planned_flag(argument)
            why = opening_flag(argument)
            if key is not None and key != "unsafe-args":
                yield Broken(at, f"{argument} is set by a key of its own", f"write `{key}`")
            elif argument.split("=")[0] in _UNDOING:
                yield Broken(at, f"{argument} would undo what llamarig plans or proves", "remove it")
            else:
                opens = f", and it opens the machine: it {why}" if why else ""
                yield Broken(
                    at,
                    f"the raw argument {argument} is passed on unchecked{opens}",
                    "remove it when it is not needed",
                    warning=True,
                )


RULES = (environment, raw_arguments)
