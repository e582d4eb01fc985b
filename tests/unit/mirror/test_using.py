"""What a spec's mirror changes: where things are looked for, what the host gets, and what is refused."""

from __future__ import annotations

import copy
import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from llamarig.converge import artifacts
from llamarig.converge.mirror.openpgp import sign
from llamarig.converge.mirror.pack import packed_packages
from llamarig.converge.mirror.place import Place
from llamarig.converge.refuse import refusals
from llamarig.converge.store.shelf import Shelf
from llamarig.converge.wanted import plan_for, wanted_for
from llamarig.errors import RigError
from llamarig.render.site import SOURCE, mirror_of, pushed_source
from llamarig.spec.load import LoadedHost, load_project

ROOT = Path(__file__).resolve().parents[3]
MODEL = b"GGUF" + bytes(500)
SHA = hashlib.sha256(MODEL).hexdigest()


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _mirror(place: Path, debian: bool = True) -> Path:
    (place / "sha256").mkdir(parents=True)
    (place / "sha256" / SHA).write_bytes(MODEL)
    signed = sign("Origin: x\n", "llamarig mirror", 1_700_000_000)
    held = {"directory": "debian/debian-13-amd64", "key": list(signed.key), "fingerprint": "", "packages": []}
    manifest = {"schema": 1, "files": {}, "python": {}, "debian": {"debian-13-amd64": held} if debian else {}}
    (place / "manifest.json").write_text(json.dumps(manifest))
    return place


def _host(project: Path, **keys: Any) -> LoadedHost:
    spec = copy.deepcopy(yaml.safe_load((ROOT / "inventory/demo.yml").read_text()))
    spec |= {"connection": {"address": "192.0.2.1"}, **keys}
    (project / "inventory").mkdir(parents=True, exist_ok=True)
    (project / "inventory/demo.yml").write_text(yaml.safe_dump(spec))
    return load_project(project).valid(["demo"])[0]


def _wanted_model(fetch: str, kind: str = "url") -> dict[str, Any]:
    origin = {"kind": kind, "url": "https://example.invalid/m.gguf", "path": "m.gguf"}
    return {"sha256": SHA, "size": len(MODEL), "links": ["/models/m/m.gguf"], "origin": origin, "fetch": fetch}


def test_the_host_gets_a_list_that_trusts_the_index_alone(tmp_path: Path) -> None:
    mirror = _mirror(tmp_path / "m")
    loaded = _host(tmp_path / "p", mirror={"path": str(mirror), "url": "http://cache.lan/llamarig/"})
    [file] = [file for file in wanted_for(tmp_path / "p", loaded).files if file.path == SOURCE]
    assert "URIs: http://cache.lan/llamarig/debian/debian-13-amd64/\n" in file.content
    assert "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n" in file.content
    assert "trusted" not in file.content.lower()
    assert refusals(loaded, plan_for(tmp_path / "p", loaded), tmp_path / "p") == []


@pytest.mark.parametrize("line", ["x\nTrusted: yes", "Trusted: yes", "Enabled: no\n -----BEGIN"])
def test_a_manifest_puts_nothing_but_a_key_into_the_list(tmp_path: Path, line: str) -> None:
    mirror = _mirror(tmp_path / "m")
    loaded = _host(tmp_path / "p", mirror={"path": str(mirror), "url": "http://cache.lan"})
    manifest = json.loads((mirror / "manifest.json").read_text())
    manifest["debian"]["debian-13-amd64"]["key"].insert(3, line)
    (mirror / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RigError, match="holds no key for its packages"):
        wanted_for(tmp_path / "p", loaded)


def test_what_stands_around_the_key_in_a_manifest_is_left_out(tmp_path: Path) -> None:
    mirror = _mirror(tmp_path / "m")
    loaded = _host(tmp_path / "p", mirror={"path": str(mirror), "url": "http://cache.lan"})
    manifest = json.loads((mirror / "manifest.json").read_text())
    manifest["debian"]["debian-13-amd64"]["key"].append("\nTrusted: yes")
    (mirror / "manifest.json").write_text(json.dumps(manifest))
    [file] = [file for file in wanted_for(tmp_path / "p", loaded).files if file.path == SOURCE]
    assert "Trusted" not in file.content
    assert file.content.endswith(" -----END PGP PUBLIC KEY BLOCK-----\n")


@pytest.mark.parametrize(
    ("keys", "debian"),
    [({}, True), ({"path": "m"}, True), ({"url": "http://cache.lan"}, True), ({"path": "m", "url": "http://c"}, False)],
)
def test_without_an_address_or_packages_there_is_no_list(tmp_path: Path, keys: dict[str, str], debian: bool) -> None:
    _mirror(tmp_path / "m", debian)
    loaded = _host(tmp_path, **({"mirror": keys} if keys else {}))
    assert SOURCE not in [file.path for file in wanted_for(tmp_path, loaded).files]


def test_without_an_address_the_controller_copies_the_packages(tmp_path: Path) -> None:
    _mirror(tmp_path / "m")
    spec = _host(tmp_path, mirror={"path": "m"}).spec
    assert spec is not None
    text = pushed_source(spec, tmp_path)
    assert "URIs: file:/var/lib/llamarig/mirror/\n" in text
    assert "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n" in text
    served = _host(tmp_path, mirror={"path": "m", "url": "http://cache.lan"}).spec
    assert served is not None
    assert pushed_source(served, tmp_path) == ""


def test_packages_are_packed_the_same_way_each_time(tmp_path: Path) -> None:
    with Place.opened(tmp_path / "m") as place:
        for name in ("InRelease", "a_1_amd64.deb"):
            place.file(f"debian/debian-13-amd64/{name}", "package", name, name.encode())
        place.file("debian/debian-12-amd64/x.deb", "package", "x.deb", b"x")
        place.manifest.debian["debian-13-amd64"] = {"directory": "debian/debian-13-amd64"}
        place.save()
    one, two = (packed_packages(tmp_path / "m", "debian-13-amd64", Shelf.default()) for _ in range(2))
    assert one == two
    with tarfile.open(one.path) as tar:
        assert tar.getnames() == ["InRelease", "a_1_amd64.deb"]
    with pytest.raises(RigError, match="holds no packages of this system"):
        packed_packages(tmp_path / "m", "ubuntu-24.04-amd64", Shelf.default())
    (tmp_path / "m/debian/debian-13-amd64/InRelease").unlink()
    with pytest.raises(RigError, match="a package of the mirror cannot be read"):
        packed_packages(tmp_path / "m", "debian-13-amd64", Shelf.default())


def test_a_mirror_that_is_not_there_is_planned_with_and_refused_by_apply(tmp_path: Path) -> None:
    loaded = _host(tmp_path, mirror={"path": "gone", "url": "http://cache.lan"})
    assert wanted_for(tmp_path, loaded).files
    [error] = refusals(loaded, plan_for(tmp_path, loaded), tmp_path)
    assert error.what == "there is no mirror with a readable manifest"
    assert error.where == str(tmp_path / "gone/manifest.json")


def test_the_controller_takes_from_the_mirror_before_anything_else(tmp_path: Path) -> None:
    shelf = Shelf.default().with_mirror(_mirror(tmp_path / "m"))
    found = artifacts.model(_wanted_model("controller"), tmp_path, shelf=shelf)
    assert found.path == tmp_path / "m/sha256" / SHA
    assert not (tmp_path / "cache").exists()


def test_a_damaged_file_of_the_mirror_is_told_and_not_taken(tmp_path: Path) -> None:
    shelf = Shelf.default().with_mirror(_mirror(tmp_path / "m"))
    victim = tmp_path / "m/sha256" / SHA
    victim.write_bytes(MODEL[:-1] + b"x")
    with pytest.raises(RigError, match="a file of the mirror is damaged"):
        artifacts.model(_wanted_model("controller"), tmp_path, shelf=shelf)
    assert victim.exists()


def test_a_host_fetches_from_the_mirror_by_content() -> None:
    assert artifacts.address_of(_wanted_model("mirror"), "http://cache.lan/x/") == f"http://cache.lan/x/sha256/{SHA}"
    assert artifacts.address_of(_wanted_model("host"), "http://cache.lan/x") == "https://example.invalid/m.gguf"


@pytest.mark.parametrize(
    ("fetch", "kind", "url", "controller"),
    [
        ("mirror", "url", "http://cache.lan", False),
        ("mirror", "url", "", True),
        ("mirror", "wheel", "http://cache.lan", False),
        ("mirror", "wheel", "", True),
        ("host", "url", "http://cache.lan", False),
        ("host", "wheel", "http://cache.lan", True),
        ("controller", "url", "http://cache.lan", True),
        ("host", "host-path", "", False),
    ],
)
def test_who_hands_a_model_over(fetch: str, kind: str, url: str, controller: bool) -> None:
    model = _wanted_model(fetch, kind)
    assert artifacts.from_controller(model, url) is controller
    assert _by_role(model, url) == ("controller" if controller else "nobody" if kind == "host-path" else "host")


def _by_role(model: dict[str, Any], url: str) -> str:
    """Whom the tasks of the role let hand the file over, by their own conditions."""
    from jinja2.nativetypes import NativeEnvironment

    role = ROOT / "roles/models"
    values = {"__models_file": model, "models_mirror": url, "__models_found": {"present": False}}
    environment = NativeEnvironment()
    named = yaml.safe_load((role / "vars/main.yml").read_text())
    values |= {name: environment.from_string(text).render(**values) for name, text in named.items()}
    tasks = {task["name"]: task for task in yaml.safe_load((role / "tasks/install.yml").read_text())}
    who = {"Let the host download it": "host", "Copy it from the controller": "controller"}
    does = [
        giver
        for name, giver in who.items()
        if all(environment.compile_expression(condition)(**values) for condition in tasks[name]["when"])
    ]
    assert len(does) <= 1
    return does[0] if does else "nobody"


def test_the_paths_of_a_mirror_are_the_project_s(tmp_path: Path) -> None:
    loaded = _host(tmp_path, mirror={"path": "../mirror", "url": "http://cache.lan/"}, transfer={"limit-mib-s": 40})
    assert loaded.spec is not None
    assert mirror_of(loaded.spec, tmp_path) == {"path": f"{tmp_path}/../mirror", "url": "http://cache.lan"}
    assert loaded.spec.transfer.limit_mib_s == 40


def test_no_password_of_an_address_is_printed(tmp_path: Path) -> None:
    from llamarig.errors import RigErrors

    with pytest.raises((RigError, RigErrors)) as caught:
        _host(tmp_path, mirror={"url": "http://anna:secret@cache.lan/llamarig"})
    assert "carries a user or a password" in str(caught.value)
    assert "secret" not in str(caught.value)
