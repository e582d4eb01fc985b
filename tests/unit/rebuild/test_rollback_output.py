"""What `llamarig rollback` says of the kernel."""

from __future__ import annotations

import pytest

from llamarig.cli.rollback import _say
from llamarig.compare.kernel_back import KernelBack
from llamarig.converge.rollback import RolledBack
from llamarig.errors import RigError

KERNEL = "6.12.107+deb13-amd64"


@pytest.mark.parametrize(
    ("done", "words", "chosen"),
    [
        (RolledBack("box", "a-1", 3), ["runs a-1 again", "3 checks passed"], None),
        (
            RolledBack("box", "a-1", 3, KernelBack(KERNEL)),
            ["runs a-1 again", f"kernel {KERNEL} boots from now on"],
            True,
        ),
        (RolledBack("box", kernel=KernelBack(KERNEL)), [f"kernel {KERNEL} boots from now on", "reboot the host"], True),
        (RolledBack("box", "a-1", 3, KernelBack(KERNEL, "it is gone")), ["was not chosen: it is gone"], False),
        (RolledBack("box", kernel=KernelBack(KERNEL), chooses=False), ["GRUB does not decide here"], False),
    ],
)
def test_the_kernel_is_told(
    done: RolledBack, words: list[str], chosen: bool | None, capsys: pytest.CaptureFixture[str]
) -> None:
    _say(done)
    said = capsys.readouterr().out
    assert [word for word in words if word not in said] == []
    assert ("kernel" in said) == (done.kernel is not None)
    told = done.to_json()["kernel"]
    assert (None if told is None else told["chosen"]) is chosen


def test_a_failed_rollback_has_chosen_none() -> None:
    failed = RolledBack("box", kernel=KernelBack(KERNEL), error=RigError("it broke", "box"))
    assert failed.to_json()["kernel"]["chosen"] is False
    assert failed.to_json()["ok"] is False
