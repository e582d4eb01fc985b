"""Which kernel a rollback lets boot, and when it says that it cannot."""

from __future__ import annotations

import pytest

from llamarig.compare.kernel_back import KernelBack, alone, with_former
from llamarig.compare.view import View
from llamarig.converge.way_back import kernel_way, whole_way
from llamarig.errors import RigError
from tests.support.compare.cases import Case
from tests.support.compare.driver_case import driver_case
from tests.support.compare.driver_seen import KERNEL

OLDER, NEWER = "6.12.107+deb13-amd64", "6.12.120+deb13-amd64"
BUILT = {"headers": True, "dkms": {"nvidia/610.57.04": "installed"}}


@pytest.fixture
def case() -> Case:
    """A host that runs the newer of two kernels, and was proven on both."""
    made = driver_case()
    made.observed["kernel"] = KERNEL
    made.observed["driver"]["kernels"] = {OLDER: BUILT, KERNEL: BUILT}
    made.observed["driver"]["proven-kernels"] = [KERNEL, OLDER]
    made.observed["former"] = {"release": "a-1", "at": "2026-11-29T16:00:00Z", "kernel": OLDER}
    return made


def view(case: Case) -> View:
    return View(case.wanted, case.observed)


def test_the_kernel_of_the_former_state_comes_back_with_it(case: Case) -> None:
    assert with_former(view(case)) == KernelBack(OLDER)
    way = whole_way("box", view(case))
    assert str(way) == f"files of 2026-11-29T16:00:00Z, release a-1, kernel {OLDER} from the next boot on"


@pytest.mark.parametrize("kernel", [KERNEL, None])
def test_a_state_of_the_kernel_that_runs_and_of_an_unknown_one_change_none(case: Case, kernel: str | None) -> None:
    case.observed["former"]["kernel"] = kernel
    assert with_former(view(case)) is None


def test_the_kernel_that_runs_is_chosen_where_another_would_boot(case: Case) -> None:
    case.observed["former"]["kernel"] = KERNEL
    case.observed["driver"]["kernels"][NEWER] = BUILT
    assert with_former(view(case)) == KernelBack(KERNEL)


def test_a_kernel_that_is_gone_and_one_without_a_module_are_not_chosen(case: Case) -> None:
    case.observed["driver"]["kernels"][OLDER] = {"headers": False, "dkms": {}}
    assert f"the headers of kernel {OLDER} are not installed, so it has no module" in alone(view(case)).why
    del case.observed["driver"]["kernels"][OLDER]
    said = with_former(view(case))
    assert said is not None
    assert said.why.startswith(f"kernel {OLDER} is not installed any more; install linux-image-{OLDER}")
    assert str(whole_way("box", view(case))) == "files of 2026-11-29T16:00:00Z, release a-1"
    with pytest.raises(RigError, match="no kernel to go back to"):
        kernel_way("box", view(case))


def test_alone_it_is_the_one_that_was_proven_before(case: Case) -> None:
    assert kernel_way("box", view(case)) == KernelBack(OLDER)
    case.observed["driver"]["proven-kernels"] = [KERNEL]
    assert "no kernel but the one that runs was proven" in alone(view(case)).why
    case.observed["driver"]["proven-kernels"] = "hostile"
    assert alone(view(case)).kernel == ""


def test_without_a_driver_no_kernel_is_known() -> None:
    plain = Case()
    plain.observed["former"] = {"release": "a-1", "kernel": OLDER}
    assert with_former(View(plain.wanted, plain.observed)) is None
    assert "manages no driver" in alone(View(plain.wanted, plain.observed)).why


def test_a_held_lock_stops_it(case: Case) -> None:
    case.observed["lock"] = {"who": "ada", "from": "desk", "machine": "x", "pid": 7, "started": "1", "age-s": 3.0}
    with pytest.raises(RigError, match="ada on desk"):
        kernel_way("box", view(case))
    assert kernel_way("box", view(case), break_lock=True).kernel == OLDER
