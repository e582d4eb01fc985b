"""The index of packages and its signature; what apt makes of them is shown on a host (tests/hosts/mirror)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from llamarig.converge.mirror import apt_index
from llamarig.converge.mirror.openpgp import sign
from llamarig.render.openpgp import armoured, fingerprints

# Composed after what apt-cache 3.0.4 prints of a package.
STANZA = """Package: libssl3t64
Version: 1:3.5.1-1+deb13u1
Architecture: amd64
Description: Secure Sockets Layer toolkit
Description-md5: 00000000000000000000000000000000
Filename: pool/main/o/openssl/libssl3t64_3.5.1-1+deb13u1_amd64.deb
Size: 12
MD5sum: 11111111111111111111111111111111
SHA256: 2222222222222222222222222222222222222222222222222222222222222222"""


def test_a_stanza_keeps_its_fields_and_gets_its_place_here() -> None:
    name = apt_index.file_name(STANZA)
    text = apt_index.packages_text({name: STANZA, "other.deb": STANZA.replace("libssl3t64\n", "other\n")})
    assert name == "libssl3t64_3.5.1-1+deb13u1_amd64.deb"
    first, second = text.split("\n\n")
    assert first.splitlines()[-1] == f"Filename: ./{name}"
    assert "pool/" not in text
    assert "MD5sum" not in text
    assert "Description-md5" not in text
    assert apt_index.field(second, "SHA256") == "2" * 64


@pytest.mark.parametrize("version", ["../../etc/x", "1 2", ""])
def test_a_stanza_whose_name_is_no_file_name_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match="is no package"):
        apt_index.file_name(STANZA.replace("1:3.5.1-1+deb13u1", version))


def test_an_index_of_the_same_packages_is_known_again() -> None:
    text = apt_index.packages_text({"a.deb": STANZA})
    assert apt_index.same_packages(text, [STANZA])
    assert not apt_index.same_packages(text, [STANZA.replace("2222", "3333")])
    assert not apt_index.same_packages(None, [STANZA])


def test_release_names_size_and_hash_of_each_file() -> None:
    text = apt_index.release_text("debian-13-amd64", {"Packages": b"x"}, 1_800_000_000)
    assert " 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881 1 Packages\n" in text
    assert "Date: Fri, 15 Jan 2027 08:00:00 UTC\n" in text
    assert "Valid-Until" not in text


def test_each_index_has_a_key_of_its_own_which_is_read_as_one() -> None:
    one, two = (sign("Origin: x\n", "llamarig mirror", 1_800_000_000) for _ in range(2))
    assert one.fingerprint != two.fingerprint
    key = "\n".join(one.key).encode()
    assert fingerprints(key) == (one.fingerprint,)
    # A driver's list that names the same repository writes the key in the same form; apt takes no two forms for one.
    assert armoured(key) == one.key


@pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is not on this machine; a host test asks apt")
def test_gnupg_takes_the_signature_and_refuses_a_changed_text(tmp_path: Path) -> None:
    signed = sign("Origin: x\n- a dash\nSHA256:\n 00 1 Packages\n", "llamarig mirror", 1_700_000_000)
    (tmp_path / "key.asc").write_text("\n".join(signed.key) + "\n")

    def verify(text: str) -> int:
        (tmp_path / "InRelease").write_text(text)
        gpg = ["gpg", "--batch", "--quiet", "--homedir", str(tmp_path)]
        return subprocess.run(
            [*gpg, "--verify", str(tmp_path / "InRelease")], capture_output=True, check=False
        ).returncode

    tmp_path.chmod(0o700)
    imported = ["gpg", "--batch", "--quiet", "--homedir", str(tmp_path), "--import", str(tmp_path / "key.asc")]
    assert subprocess.run(imported, capture_output=True, check=False).returncode == 0
    assert verify(signed.text) == 0
    assert verify(signed.text.replace("Origin: x", "Origin: y")) != 0
