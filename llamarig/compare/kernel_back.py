"""Which kernel a rollback lets boot, and why it cannot. Pure: nothing is touched here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from llamarig.compare.driver import without_module
from llamarig.compare.reboot import newest
from llamarig.compare.text import printable
from llamarig.compare.view import View, as_map, as_text, as_texts


@dataclass(frozen=True, slots=True)
class KernelBack:
    """A kernel to go back to."""

    kernel: str
    """Empty where nobody knows of one."""
    why: str = ""
    """Why it cannot be chosen; empty when it can."""

    def __str__(self) -> str:
        return f"kernel {printable(self.kernel)}"

    def to_json(self) -> dict[str, Any]:
        """As the playbook reads it."""
        return {"kernel": self.kernel, "why": self.why}


def with_former(view: View) -> KernelBack | None:
    """The kernel on which the former state was proven; None where that is what runs and boots, or nobody knows it."""
    kernel = as_text(view.part("former").get("kernel")) or ""
    installed = as_map(view.part("driver").get("kernels"))
    if view.wanted.driver is None or not kernel or (kernel == _running(view) and kernel == newest(installed)):
        return None
    return KernelBack(kernel, next(_against(view, kernel), ""))


def alone(view: View) -> KernelBack:
    """The kernel that was proven before the one that runs."""
    if view.wanted.driver is None:
        return KernelBack("", "llamarig manages no driver on this host, so it proves no kernel of it")
    proven = as_texts(view.part("driver").get("proven-kernels"))
    kernel = next((each for each in proven if each != _running(view)), "")
    if not kernel:
        return KernelBack(
            "", "no kernel but the one that runs was proven on this host; `rebuild` proves one when it reboots"
        )
    return KernelBack(kernel, next(_against(view, kernel), ""))


def _running(view: View) -> str:
    return as_text(view.observed.get("kernel")) or ""


def _against(view: View, kernel: str) -> Iterator[str]:
    seen, name = view.part("driver"), printable(kernel)
    if kernel not in as_map(seen.get("kernels")):
        yield (
            f"kernel {name} is not installed any more; "
            f"install linux-image-{name} while an archive has it, then `llamarig apply` builds its module"
        )
    elif view.wanted.driver is not None and (why := without_module(view.wanted.driver, seen).get(kernel)):
        yield f"{why}; `llamarig apply` builds it, then roll back again"


__all__ = ["KernelBack", "alone", "with_former"]
