"""The driver as data: what is asked of apt, with which key, and what keeps it as it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from llamarig.errors import RigError
from llamarig.render import driver as rendered
from llamarig.render.openpgp import KeyFormatError, armoured, binary, fingerprints
from llamarig.render.wanted import WantedDriver
from llamarig.spec.unbuilt import refused_by_apply
from tests.support.docs.refusals import spec_of
from tests.support.rendering.systemd_reader import settings, values

KEY = Path(__file__).resolve().parents[2] / "fixtures/driver/repository-key.asc"
FINGERPRINT = "D39629B7EE82DFA92138EF496F58C3EEA7EA0732"
"""As gpg tells it (tests/fixtures/driver/README.md)."""


def render(fragment: str, root: Path) -> WantedDriver:
    spec, _ = spec_of("cuda", fragment)
    made = rendered.driver(spec, root)
    assert made is not None
    return made


def content(made: WantedDriver, path: str) -> str:
    return next(file.content for file in made.files if file.path == path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "keys").mkdir()
    shutil.copyfile(KEY, tmp_path / "keys/nvidia.asc")
    return tmp_path


KEYED = f"driver: {{key: keys/nvidia.asc, key-fingerprint: {FINGERPRINT}}}\n"


def test_the_repository_is_written_with_its_key_inside(root: Path) -> None:
    made = render(KEYED, root)
    text = content(made, rendered.SOURCE)
    assert "URIs: https://" in text
    assert "/debian13/x86_64/\n" in text
    assert "\nSuites: /\n" in text
    lines = text.partition("Signed-By:\n")[2].splitlines()
    assert lines[0] == " -----BEGIN PGP PUBLIC KEY BLOCK-----"
    assert lines[1] == " ."
    assert lines[-1] == " -----END PGP PUBLIC KEY BLOCK-----"
    unfolded = "\n".join("" if line == " ." else line.removeprefix(" ") for line in lines)
    assert fingerprints(unfolded.encode()) == (FINGERPRINT,)


def test_a_key_with_another_fingerprint_is_refused(root: Path) -> None:
    other = FINGERPRINT[:-1] + ("0" if FINGERPRINT[-1] != "0" else "1")
    with pytest.raises(RigError) as caught:
        render(KEYED.replace(FINGERPRINT, other), root)
    assert FINGERPRINT in caught.value.why
    assert other in caught.value.why


def test_a_key_that_cannot_be_read_is_named(root: Path) -> None:
    (root / "keys/nvidia.asc").write_text("no key\n")
    with pytest.raises(RigError) as caught:
        render(KEYED, root)
    assert caught.value.where.endswith("keys/nvidia.asc")


def test_without_a_pinned_key_it_is_rendered_and_not_applied(root: Path) -> None:
    spec, _ = spec_of("cuda", "{}")
    assert "BEGIN PGP" not in content(render("{}", root), rendered.SOURCE)
    assert any("names no key" in error.what for error in refused_by_apply(spec))
    keyed, _ = spec_of("cuda", KEYED)
    assert not any("driver" in error.what for error in refused_by_apply(keyed))


@pytest.mark.parametrize(
    ("system", "installed"), [("debian, release: '12'", True), ("ubuntu, release: '24.04'", False)]
)
def test_a_driver_is_installed_where_the_tests_install_one(system: str, installed: bool) -> None:
    spec, _ = spec_of("cuda", f"{KEYED}os: {{distribution: {system}}}\n")
    refused = [error.what for error in refused_by_apply(spec) if "`driver` on" in error.what]
    assert bool(refused) is not installed
    assert all("proven on Debian 12 and 13 alone" in each for each in refused)


def test_the_flavour_chooses_the_packages(root: Path) -> None:
    made = render(KEYED, root)
    assert "nvidia-kernel-open-dkms" in made.packages
    assert "nvidia-kernel-dkms" in made.other
    proprietary = render("driver: {source: debian, version: 550.163.01, flavour: proprietary}", root)
    assert "nvidia-kernel-dkms" in proprietary.packages
    assert "nvidia-open-kernel-dkms" in proprietary.other


def test_debians_own_packages_come_from_the_hosts_own_lists(root: Path) -> None:
    made = render("driver: {source: debian, version: 550.163.01, flavour: open}", root)
    assert made.uri == ""
    assert rendered.SOURCE not in [file.path for file in made.files]
    assert made.stale == (rendered.SOURCE,)
    assert "Pin: origin" not in content(made, rendered.PIN)


def test_a_mirror_and_a_directory_are_flat_repositories(root: Path) -> None:
    key = f"key: keys/nvidia.asc, key-fingerprint: {FINGERPRINT}"
    mirror = render(f"driver: {{source: mirror, location: 'http://mirror.lan/nvidia/', {key}}}", root)
    assert mirror.uri == "http://mirror.lan/nvidia/"
    assert 'Pin: origin "mirror.lan"' in content(mirror, rendered.PIN)
    directory = render(f"driver: {{source: directory, location: /srv/nvidia, {key}}}", root)
    assert directory.uri == "file:/srv/nvidia/"


def test_the_nodes_are_made_before_every_service(root: Path) -> None:
    unit = content(render(KEYED, root), f"/etc/systemd/system/{rendered.NODES}")
    assert "\nBefore=llama-" in unit
    assert "\nAfter=systemd-modules-load.service\n" in unit
    assert "nvidia-modprobe -c 0 -u" in unit


HINDERS_NODES = (
    "DeviceAllow",
    "DevicePolicy",
    "NoNewPrivileges",
    "PrivateDevices",
    "PrivateNetwork",
    "PrivateTmp",
    "PrivateUsers",
    "ProtectClock",
    "ProtectKernelLogs",
    "ProtectKernelModules",
    "ProtectKernelTunables",
    "ProtectProc",
    "UMask",
    "User",
)
"""Settings that take devices, modules, /proc or rights from what makes the nodes, or may."""
LOADS = {
    "SYS_MODULE",
    "MKNOD",
    "CHOWN",
    "FOWNER",
    "FSETID",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "SYS_ADMIN",
    "SYS_RAWIO",
}
CALLS = ("@module", "@raw-io", "@privileged", "@resources", "@mount")


def hindrances(unit: str) -> set[str]:
    """What in a unit may keep modprobe, its install lines or mknod from their work."""
    found = {setting.key for setting in settings(unit)} & set(HINDERS_NODES)
    for value in values(unit, "CapabilityBoundingSet"):
        names = {name.removeprefix("~").removeprefix("CAP_") for name in value.split()}
        found |= names & LOADS if value.startswith("~") else LOADS - names
    for value in values(unit, "SystemCallFilter"):
        found |= {call for call in CALLS if call in value} if value.startswith("~") else {value}
    found |= {value for value in values(unit, "ProtectSystem") if value == "strict"}
    return found


def test_what_confines_the_nodes_unit_leaves_modules_and_nodes_alone(root: Path) -> None:
    unit = content(render(KEYED, root), f"/etc/systemd/system/{rendered.NODES}")
    assert values(unit, "ProtectSystem") == ["full"]
    assert hindrances(unit) == set()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("PrivateDevices=yes", {"PrivateDevices"}),
        ("ProtectSystem=strict", {"strict"}),
        ("CapabilityBoundingSet=~CAP_MKNOD CAP_LEASE", {"MKNOD"}),
        ("CapabilityBoundingSet=", LOADS),
        ("SystemCallFilter=~@module @clock", {"@module"}),
        ("SystemCallFilter=@system-service", {"@system-service"}),
    ],
)
def test_a_setting_that_hinders_modules_or_nodes_is_seen(line: str, found: set[str]) -> None:
    assert hindrances(f"[Service]\n{line}\n") == found


def test_an_upgrade_at_night_passes_the_driver_by(root: Path) -> None:
    made = render(KEYED, root)
    assert '"^libnvidia-";' in content(made, rendered.UPGRADES)
    assert f"Pin: version {made.version}-*\nPin-Priority: 1001\n" in content(made, rendered.PIN)


def test_armour_comes_off_and_on_again() -> None:
    data = KEY.read_bytes()
    again = "\n".join(armoured(data)).encode()
    assert binary(again) == binary(data)
    assert fingerprints(binary(data)) == (FINGERPRINT,)


@pytest.mark.parametrize("data", [b"", b"\x00rubbish", b"\x99\xff\xff\x04", b"\xc6\xe0", binary(KEY.read_bytes())[:40]])
def test_what_is_no_key_is_refused(data: bytes) -> None:
    with pytest.raises(KeyFormatError):
        fingerprints(data)
