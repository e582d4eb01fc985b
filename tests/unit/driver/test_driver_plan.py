"""What apt is asked before anything is touched. Indexes and simulations are composed in apt's form; the refusal of a
SHA-1-bound key is in the words of Debian 13's apt (field report cuda-repo-management 34)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.driver_cases import MAKE_LOG, driver
from tests.support.observe.load import part

apt = part("rig_apt")
plan = part("rig_driver_plan")
log = part("rig_make_log")

INDEX = """Package: nvidia-open
Version: 590.48.01-1
Depends: nvidia-driver-cuda (= 590.48.01-1)

Package: nvidia-driver-cuda
Architecture: amd64
Version: 590.48.01-1
Depends: libcuda1 (= 590.48.01-1), libnvidia-ml1 (= 590.48.01-1) | other, libc6 (>= 2.34)
Description: words
 Package: decoy

Package: nvidia-driver-cuda
Version: 580.126.09-1
Depends: libcuda1 (= 580.126.09-1)

Package: nvidia-kernel-open-dkms
Version: 590.48.01-1
Pre-Depends: nvidia-modprobe
Depends: dkms (>= 3), firmware-nvidia-gsp (= 590.48.01-1)

Package: nvidia-kernel-open-dkms
Version: 590.48.01-10
Depends: firmware-nvidia-gsp (= 590.48.01-10)

Package: libcuda1
Version: 590.48.01-1

Package: libnvidia-ml1
Version: 590.48.01-1

Package: firmware-nvidia-gsp
Version: 590.48.01-1
"""
SHA1 = """Get:1 http://repository.invalid InRelease [1581 B]
Err:1 http://repository.invalid InRelease
  Sub-process /usr/bin/sqv returned an error code (1), error message is: Signing key on EB693B3035CD5710E231E123A4B469963BF863CC is not bound: No binding signature at time 2026-03-01T00:00:00Z because: Policy rejected non-revocation signature (PositiveCertification) requiring second pre-image resistance because: SHA1 is not considered secure since 2026-02-01T00:00:00Z
Reading package lists...
E: The repository 'http://repository.invalid InRelease' is not signed.
"""  # noqa: E501 - apt's own line
UNREACHABLE = "Err:1 http://nowhere.invalid InRelease\n  Could not resolve 'nowhere.invalid'\nE: Failed to fetch it\n"


def test_every_package_is_found_in_its_exact_version() -> None:
    pins = plan.resolve(driver(), apt.read_index([INDEX]), "the repository")
    assert pins == {
        "nvidia-driver-cuda": "590.48.01-1",
        # The highest revision of the version: 10 is above 1.
        "nvidia-kernel-open-dkms": "590.48.01-10",
        "libcuda1": "590.48.01-1",
        "libnvidia-ml1": "590.48.01-1",
        "firmware-nvidia-gsp": "590.48.01-1",
    }


def test_the_persistence_daemon_comes_along_where_the_source_has_it() -> None:
    offered = "Package: nvidia-persistenced\nVersion: {}\nDepends: libc6\n"
    wanted = driver() | {"own": [*driver()["own"], "nvidia-persistenced"]}
    for version, there in (("590.48.01-1", True), ("580.126.09-1", False)):
        pins = plan.resolve(wanted, apt.read_index([INDEX, offered.format(version)]), "the repository")
        assert pins.get("nvidia-persistenced") == (version if there else None)
    assert "nvidia-persistenced" not in plan.resolve(wanted, apt.read_index([INDEX]), "the repository")
    apart = wanted | {"apart": ["nvidia-persistenced"]}
    assert "nvidia-persistenced" not in plan.resolve(
        apart, apt.read_index([INDEX, offered.format("590.48.01-1")]), "the repository"
    )


def test_a_version_that_is_not_there_is_refused_with_what_is() -> None:
    with pytest.raises(plan.FailedError) as caught:
        plan.resolve(driver("580.126.09"), apt.read_index([INDEX]), "https://repository.invalid/")
    said = str(caught.value)
    assert "https://repository.invalid/ does not offer driver 580.126.09" in said
    assert "nvidia-kernel-open-dkms: there is 590.48.01-1, 590.48.01-10" in said
    assert "nothing was touched" in said


def test_a_revision_chooses_among_packages_of_one_version() -> None:
    pins = plan.resolve(driver() | {"revision": "1"}, apt.read_index([INDEX]), "the repository")
    assert pins["nvidia-kernel-open-dkms"] == "590.48.01-1"
    assert pins["libcuda1"] == "590.48.01-1"
    newer = plan.resolve(driver() | {"revision": "10"}, apt.read_index([INDEX]), "the repository")
    assert newer["nvidia-kernel-open-dkms"] == "590.48.01-10"
    assert newer["libcuda1"] == "590.48.01-1", "it is not offered in that revision: it may be of another source"


def test_a_revision_that_the_module_does_not_have_is_refused_with_what_is() -> None:
    with pytest.raises(plan.FailedError) as caught:
        plan.resolve(driver() | {"revision": "3"}, apt.read_index([INDEX]), "the repository")
    assert "does not offer driver 590.48.01-3" in str(caught.value)
    assert "nvidia-kernel-open-dkms: there is 590.48.01-1, 590.48.01-10" in str(caught.value)


def test_another_revision_of_the_module_is_something_to_do() -> None:
    there = {name: {"version": "590.48.01-1", "state": "installed", "held": True} for name in driver()["packages"]}
    assert plan.packages_wrong(driver() | {"revision": "1"}, there) is False
    assert plan.packages_wrong(driver() | {"revision": "2"}, there) is True


def test_a_package_that_is_not_there_at_all_is_named() -> None:
    with pytest.raises(plan.FailedError, match="nvidia-driver-cuda: not there at all"):
        plan.resolve(driver(), {}, "the repository")


def test_a_key_bound_with_sha1_is_refused_in_apts_words(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def answer(command: list[str], _timeout: int) -> tuple[int, str]:
        asked.append(command)
        return 100, SHA1

    monkeypatch.setattr(apt, "call", answer)
    with pytest.raises(plan.FailedError) as caught:
        plan.update(["-o", "X=y"], "https://repository.invalid/", 10)
    said = str(caught.value)
    assert "SHA1 is not considered secure since 2026-02-01" in said
    assert "no check is turned off" in said
    assert not any("Insecure" in word or "allow" in word.lower() for command in asked for word in command)


def test_a_repository_that_is_away_is_no_matter_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "call", lambda _command, _timeout: (100, UNREACHABLE))
    with pytest.raises(plan.FailedError) as caught:
        plan.update([], "https://nowhere.invalid/", 10)
    assert "cannot be read" in str(caught.value)
    assert "driver.key" not in str(caught.value)


def simulated(*lines: str) -> Any:
    return apt.read_simulation("Reading package lists...\n" + "\n".join(lines) + "\n")


def test_a_simulation_is_read() -> None:
    found = simulated(
        "Remv nvidia-kernel-dkms [570.1-1]",
        "Inst libcuda1 [570.1-1] (590.48.01-1 NVIDIA [amd64])",
        "Inst dkms (3.2.2-1 Debian:13 [all])",
        "Conf libcuda1 (590.48.01-1 NVIDIA [amd64])",
    )
    assert found.installs == {"libcuda1": "590.48.01-1", "dkms": "3.2.2-1"}
    assert found.removes == ("nvidia-kernel-dkms",)
    plan.judge(found, [], ["6.12.117+deb13-amd64"])


@pytest.mark.parametrize(
    ("line", "held", "words"),
    [
        ("Inst linux-image-6.12.118+deb13-amd64 (6.12.118-1 Debian [amd64])", [], "another kernel"),
        ("Remv task-desktop [3.81]", [], "remove what is none of the driver's: task-desktop"),
        ("Inst dkms [3.0] (3.2.2-1 Debian:13 [all])", ["dkms"], "on hold: dkms"),
    ],
)
def test_a_transaction_that_goes_beyond_the_driver_is_refused(line: str, held: list[str], words: str) -> None:
    with pytest.raises(plan.FailedError, match=words):
        plan.judge(simulated(line), held, ["6.12.117+deb13-amd64"])


def test_what_has_to_be_done_is_seen_from_dpkg() -> None:
    there = {name: {"version": "590.48.01-1", "state": "installed", "held": True} for name in driver()["packages"]}
    assert plan.packages_wrong(driver(), there) is False
    older = there | {"libcuda1": {"version": "580.1-1", "state": "installed", "held": True}}
    half = there | {"nvidia-driver-cuda": {"version": "590.48.01-1", "state": "unpacked", "held": True}}
    other = there | {"nvidia-kernel-dkms": {"version": "590.48.01-1", "state": "installed", "held": True}}
    for wrong in ({}, older, half, other):
        assert plan.packages_wrong(driver(), wrong) is True
    kernels = {"6.12.117+deb13-amd64": {"headers": True}, "6.12.100+deb13-cloud-amd64": {"headers": False}}
    assert plan.missing_headers(kernels) == ["linux-headers-6.12.100+deb13-cloud-amd64"]


HEADERS = """Package: linux-headers-amd64
Version: 6.12.118-1
Depends: linux-headers-6.12.118+deb13-amd64 (= 6.12.118-1)

Package: linux-headers-amd64
Version: 6.12.117-1
Depends: linux-headers-6.12.117+deb13-amd64 (= 6.12.117-1)
"""


def test_what_brings_kernels_gets_what_brings_their_headers() -> None:
    both = {"amd64": {"version": "6.12.117-1", "headers": False}, "rt-amd64": {"version": "6.12.1-1", "headers": True}}
    missing = plan.missing_metapackages(both)
    assert missing == {"linux-headers-amd64": "6.12.117-1"}
    index = apt.read_index([HEADERS], missing)
    assert plan.resolve_metapackages(missing, index) == ["linux-headers-amd64=6.12.117-1"]
    assert plan.resolve_metapackages({"linux-headers-amd64": "6.12.90-1"}, index) == ["linux-headers-amd64"]
    assert plan.resolve_metapackages({}, {}) == []


def test_headers_that_no_source_offers_are_refused_before_anything_is_touched() -> None:
    missing = {"linux-headers-cloud-amd64": "6.12.117-1"}
    with pytest.raises(plan.FailedError) as caught:
        plan.resolve_metapackages(missing, apt.read_index([HEADERS], missing))
    assert "no package source offers linux-headers-cloud-amd64" in str(caught.value)
    assert "remove linux-image-cloud-amd64" in str(caught.value)
    assert "nothing was touched" in str(caught.value)


def whole_plan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, simulated_: str) -> Any:
    """A preflight on a host that lacks the metapackage of its headers alone; apt is a stand-in."""
    installed = {"version": "590.48.01-1", "state": "installed", "held": True}
    nvidia = part("rig_nvidia")
    monkeypatch.setattr(plan, "STATE", str(tmp_path))
    monkeypatch.setattr(nvidia, "kernels", lambda: {"6.12.117+deb13-amd64": {"headers": True}})
    monkeypatch.setattr(nvidia, "flavours", lambda: {"amd64": {"version": "6.12.117-1", "headers": False}})
    monkeypatch.setattr(nvidia, "packages", lambda *_: dict.fromkeys(driver()["packages"], installed))
    monkeypatch.setattr(plan, "lists", lambda _state: [HEADERS])
    monkeypatch.setattr(apt, "call", lambda command, _timeout: (0, simulated_ if "-s" in command else ""))
    return plan.preflight(driver() | {"files": [], "stale": []}, [], 10)


def test_a_host_that_lacks_nothing_else_gets_the_metapackage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said = "Inst linux-headers-amd64 (6.12.117-1 Debian:13 [amd64])\n"
    found = whole_plan(monkeypatch, tmp_path, said)
    assert found == {"pins": [], "headers": ["linux-headers-amd64=6.12.117-1"], "drop": []}
    assert list(tmp_path.iterdir()) == []


def test_no_kernel_comes_along_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(plan.FailedError, match="another kernel"):
        whole_plan(monkeypatch, tmp_path, "Inst linux-image-6.12.118+deb13-amd64 (6.12.118-1 Debian:13 [amd64])\n")


@pytest.mark.parametrize("site", [[], [{"path": "/etc/apt/sources.list.d/llamarig-mirror.sources", "content": "m"}]])
def test_a_site_s_list_stands_for_all_of_the_host(
    site: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    etc, sources = tmp_path / "etc", tmp_path / "sources"
    etc.mkdir()
    sources.mkdir()
    for name in ("debian.sources", "cuda.list", "notes.txt"):
        (etc / name).write_text(name)
    monkeypatch.setattr(plan, "SOURCES", str(etc))
    own = {"path": f"{etc}/llamarig-nvidia.sources", "content": "d"}
    wanted = driver() | {"files": [own], "stale": [f"{etc}/cuda.list"]}
    plan.all_sources(wanted, site, tmp_path)
    found = {path.name for path in sources.iterdir()} - {"sources.list"}
    assert found == {"llamarig-nvidia.sources", "llamarig-mirror.sources" if site else "debian.sources"}


def test_a_host_without_a_kernel_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part("rig_nvidia"), "kernels", dict)
    with pytest.raises(plan.FailedError, match="no kernel lies in /boot"):
        plan.preflight(driver(), [], 10)


def test_the_compilers_words_come_first() -> None:
    lines = log.error_lines(MAKE_LOG)
    assert lines[0] == "nvidia/nv-pci.c:243:9: error: too few arguments to function 'pci_resize_resource'"
    assert lines[1].startswith("make[3]: ***")
    assert len(log.error_lines("x: error: y\n" + "".join(f"a{n}: error: z\n" for n in range(50)))) == log.MOST_LINES


def test_a_log_of_another_kernel_says_nothing_of_this_one(tmp_path: Any) -> None:
    place = tmp_path / "nvidia-current-open/550.163.01/build"
    place.mkdir(parents=True)
    (place / "make.log").write_text(MAKE_LOG)
    module = "nvidia-current-open/550.163.01"
    assert log.why_not_built(module, "6.12.117+deb13-amd64", str(tmp_path))
    assert log.why_not_built(module, "6.12.96+deb13-amd64", str(tmp_path)) == []
