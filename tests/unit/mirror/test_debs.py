"""What apt says of packages: recorded from apt 3.0.4 on Debian 13, with another name for the archive, and cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.artifacts.onhost import load

rig_debs = load("modules/rig_debs.py")

SIMULATED = """Inst gcc-14-base (14.2.0-19 Debian:13.8/stable [amd64])
Inst libc6 (2.41-12+deb13u5 Debian:13.8/stable [amd64]) []
Conf libc6 (2.41-12+deb13u5 Debian:13.8/stable [amd64])
"""
URIS = """Reading package lists...
The following NEW packages will be installed:
  gcc-14-base libc6
'http://a.invalid/pool/main/g/gcc-14/gcc-14-base_14.2.0-19_amd64.deb' gcc-14-base_14.2.0-19_amd64.deb 49432 MD5Sum:8c82
'http://a.invalid/pool/main/g/glibc/libc6_2.41-12%2bdeb13u5_amd64.deb' libc6_2.41-12+deb13u5_amd64.deb 2850108 MD5Sum:3
"""
SHOWN = """Package: gcc-14-base
Version: 14.2.0-19
Architecture: amd64
Description: GCC, the GNU Compiler Collection (base package)
Filename: pool/main/g/gcc-14/gcc-14-base_14.2.0-19_amd64.deb
Size: 49432
SHA256: 5b6825de4263824b78c4c51f6476414f3b4e89c2ab63e81dc8b9b5501e867cf6

Package: libc6
Version: 2.41-12+deb13u5
Architecture: amd64
Filename: pool/main/g/glibc/libc6_2.41-12+deb13u5_amd64.deb
Size: 2850108
SHA256: b59b0625cd1a791375d40dab23a4d5d3d0641e3d0a773501becdc3725b7f99cf
"""


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, str]]:
    """What each call of apt answers; the last words of a command choose."""
    answers = {"update": (0, ""), "-s": (0, SIMULATED), "--print-uris": (0, URIS), "show": (0, SHOWN)}

    def call(command: list[str], _seconds: int) -> tuple[int, str]:
        if command[0] == "apt-cache":
            assert command[-2:] == ["gcc-14-base=14.2.0-19", "libc6=2.41-12+deb13u5"]
        return next(answer for word, answer in answers.items() if word in command)

    monkeypatch.setattr(rig_debs.rig_apt, "call", call)
    return answers


def test_every_package_gets_its_place_size_and_hash(apt: dict[str, Any], tmp_path: Path) -> None:
    found = rig_debs.resolve(rig_debs.update(tmp_path, {}), ["libgomp1"])
    assert [(entry["size"], entry["sha256"][:4]) for entry in found] == [(49432, "5b68"), (2850108, "b59b")]
    assert found[1]["uri"].endswith("/libc6_2.41-12%2bdeb13u5_amd64.deb")
    assert found[0]["stanza"].splitlines()[0] == "Package: gcc-14-base"


@pytest.mark.parametrize(
    ("word", "answer", "said"),
    [
        ("update", (100, "E: Failed to fetch http://archive.invalid  no route\n"), "no route"),
        ("-s", (100, "E: Unable to locate package libgomp9\n"), "Unable to locate package libgomp9"),
        ("show", (0, SHOWN.replace("SHA256: b59b", "SHA256: xyz")), "names no sha256"),
        ("show", (0, SHOWN.split("\n\n", maxsplit=1)[0]), "fetch 2 packages, and the index describes 1"),
        ("--print-uris", (0, URIS.replace("glibc/", "other/")), "where libc6 lies"),
    ],
)
def test_what_apt_does_not_tell_is_told(
    apt: dict[str, Any], tmp_path: Path, word: str, answer: tuple[int, str], said: str
) -> None:
    apt[word] = answer
    with pytest.raises(rig_debs.FailedError, match=said):
        rig_debs.resolve(rig_debs.update(tmp_path, {}), ["libgomp1"])


def test_apt_reads_a_state_of_its_own_in_which_nothing_is_installed(tmp_path: Path) -> None:
    given = {"/etc/apt/sources.list.d/x.sources": "Types: deb\n", "/etc/apt/preferences.d/x": "Package: y\n"}
    words = rig_debs.options(tmp_path, given)
    values = dict(word.split("=", 1) for word in words if "=" in word)
    assert values["Dir::State::status"] == str(tmp_path / "status")
    assert (tmp_path / "status").read_bytes() == b""
    assert (tmp_path / "sources.list.d/x.sources").read_text() == "Types: deb\n"
    assert all(value.startswith(str(tmp_path)) for name, value in values.items() if name.startswith("Dir::"))


@pytest.mark.parametrize("path", ["/etc/apt/apt.conf.d/x", "/etc/passwd", "/etc/apt/sources.list.d/../x", "x"])
def test_only_lists_and_preferences_are_laid_beside_the_host_s(tmp_path: Path, path: str) -> None:
    with pytest.raises(rig_debs.FailedError, match="no list and no preference"):
        rig_debs.options(tmp_path, {path: "x"})
