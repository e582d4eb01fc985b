"""How this machine's apt configuration becomes that of a lab machine. All inputs are composed."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import apt_sources
from lab.apt_sources import AptSource, for_debian_13, machine_sources, parse_deb822, parse_one_line

DEB822 = """\
# a comment
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/archive.gpg

Types: deb
URIs: http://mirror.example/debian-security/
Suites: bookworm-security
Components: main
Enabled: yes

Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb
URIs: https://third.example/apt
Suites: nodistro
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 xsFNBF
"""
ONE_LINE = """\
deb [arch=amd64 signed-by=/usr/share/keyrings/archive.gpg] http://mirror.example/debian bookworm main contrib # why
deb-src http://mirror.example/debian bookworm main
# deb http://off.example/debian bookworm main
deb http://mirror.example/debian bookworm-backports main
"""


def test_deb822_gives_one_source_a_suite_and_leaves_out_what_is_disabled() -> None:
    found = list(parse_deb822(DEB822))
    assert (
        AptSource("http://mirror.example/debian", "bookworm", ("main", "contrib"), "/usr/share/keyrings/archive.gpg")
        in found
    )
    assert [source.suite for source in found] == ["bookworm", "bookworm-updates", "bookworm-security", "nodistro"]
    assert found[2].uri == "http://mirror.example/debian-security"
    assert found[3].keyring == "", "a key inside the file is no path"


def test_one_line_form_with_options_comments_and_sources_of_source() -> None:
    found = list(parse_one_line(ONE_LINE))
    assert [(source.suite, source.keyring) for source in found] == [
        ("bookworm", "/usr/share/keyrings/archive.gpg"),
        ("bookworm-backports", ""),
    ]
    assert found[0].components == ("main", "contrib")


def test_only_the_distributions_own_suites_move_to_debian_13() -> None:
    moved = for_debian_13([*parse_deb822(DEB822), *parse_one_line(ONE_LINE)], "bookworm")
    assert [source.suite for source in moved] == ["trixie", "trixie-security", "trixie-updates"]
    assert moved[0].line() == "deb http://mirror.example/debian trixie main contrib"


def test_a_debian_13_machine_keeps_its_sources() -> None:
    own = [AptSource("http://mirror.example/debian", "trixie", ("main",))]
    assert for_debian_13(own, "trixie") == own


@pytest.mark.parametrize("sources", [[], [AptSource("https://third.example/apt", "nodistro", ("main",))]])
def test_without_a_main_archive_there_is_nothing(sources: list[AptSource]) -> None:
    assert for_debian_13(sources, "bookworm") == []


def test_the_machines_files_are_read_by_their_endings(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text("deb http://a.example/debian bookworm main\n")
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (parts / "b.sources").write_text("Types: deb\nURIs: http://b.example/debian\nSuites: bookworm\nComponents: main\n")
    (parts / "c.list").write_text("deb http://c.example/debian bookworm main\n")
    (parts / "d.list.save").write_text("deb http://d.example/debian bookworm main\n")
    assert [source.uri for source in machine_sources(tmp_path)] == [
        "http://a.example/debian",
        "http://b.example/debian",
        "http://c.example/debian",
    ]


def test_code_name_of_this_or_another_machine(tmp_path: Path) -> None:
    release = tmp_path / "os-release"
    release.write_text('ID=debian\nVERSION_CODENAME="bookworm"\nPRETTY_NAME="x"\n')
    assert apt_sources.codename(release) == ("debian", "bookworm")
