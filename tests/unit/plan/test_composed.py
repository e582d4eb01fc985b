"""Plans without a model's header: composed ones of known files, what they leave open, and refusals beside memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer import Exit

from llamarig.catalog.known_files import Table, table
from llamarig.cli.plan_view.pages import page
from llamarig.cli.plan_view.terminal import headline
from llamarig.cli.plan_view.words import change_words, change_yaml
from llamarig.cli.solve import show_solutions
from llamarig.errors import RigError
from llamarig.memory.units import MIB
from llamarig.plan import Plan, plan_host, plan_project
from llamarig.plan.as_json import plan_json
from llamarig.plan.curves import curves
from llamarig.plan.headers import gather_headers
from llamarig.plan.host import planned_subject
from llamarig.plan.measured import Measured, write_measured
from llamarig.plan.solve import solve, solve_project
from llamarig.spec.host import HostSpec
from llamarig.spec.read_yaml import read_file
from tests.unit.plan.test_alternatives import QWEN

ROOT = Path(__file__).resolve().parents[3]
SIZE = 17_917_000_000
CONTROLLER = {"controller-path": "x.gguf", "sha256": "unlocked", "size": 17_000_000_123}


def guide(service: dict[str, Any] | None = None, model: dict[str, Any] | None = None, **top: Any) -> HostSpec:
    below, _ = read_file(ROOT / "inventory/rtx-4090.yml")
    assert below is not None
    data: dict[str, Any] = below.data()
    data["services"]["chat"] |= service or {}
    data["models"]["qwen"] |= model or {}
    return HostSpec.model_validate(data | top)


def planned(found: HostSpec, tmp_path: Path) -> Plan:
    return plan_project(found, tmp_path, cache=tmp_path)


def codes(plan: Plan) -> dict[str, str]:
    return {finding.code: finding.severity for finding in plan.findings}


def test_a_known_file_is_planned_without_its_header(tmp_path: Path) -> None:
    plan = planned(guide(), tmp_path)
    assert codes(plan)["header-composed"] == "warning"
    assert "header-unknown" not in codes(plan)
    assert plan.fits
    assert plan.known
    assert "fits[/], [yellow]with a composed header" in headline(plan)
    [file] = [each for each in table().files if each.file == "Qwen3.8-27B-UD-Q4_K_XL.gguf"][:1]
    weights = plan.devices[0].components["weights"] + plan.ram.components["weights"]
    head = sum(each.size for each in _header(tmp_path).tensors if "nextn" in each.name) / MIB
    assert file.size is not None
    assert weights <= file.size / MIB + 1
    assert weights >= file.size / MIB * 0.97 - head


def _header(tmp_path: Path) -> Any:
    header = gather_headers(guide(), tmp_path, tmp_path, known=table())["qwen"]
    assert header is not None
    assert header.composed
    return header


def test_a_pinned_size_is_what_is_planned(tmp_path: Path) -> None:
    sha256 = next(each.sha256 for each in table().files if each.file == "Qwen3.8-27B-UD-Q4_K_XL.gguf")
    found = guide(model={"size": SIZE, "sha256": sha256})
    header = gather_headers(found, tmp_path, tmp_path, known=table())["qwen"]
    assert header is not None
    assert header.data_size == SIZE


@pytest.mark.parametrize("file", ["Qwen3.8-27B-Mine.gguf", "mmproj-F16.gguf"])
def test_a_file_that_nobody_listed_stays_unknown(file: str, tmp_path: Path) -> None:
    plan = planned(guide(model={"file": file}), tmp_path)
    assert "header-unknown" in codes(plan)
    assert plan.fits
    assert not plan.known
    assert "not known" in headline(plan)


def test_without_a_table_no_header_is_composed(tmp_path: Path) -> None:
    assert gather_headers(guide(), tmp_path, tmp_path)["qwen"] is None


def test_what_only_the_exact_header_decides_is_no_yes(tmp_path: Path) -> None:
    plan = planned(guide({"context": 190_000}), tmp_path)
    assert codes(plan)["header-undecided"] == "warning"
    assert "does-not-fit" not in codes(plan)
    assert not plan.known
    assert "the model's exact header is missing" in headline(plan)
    assert "does-not-fit" in codes(planned(guide({"context": 240_000}), tmp_path))


def reference() -> HostSpec:
    below, _ = read_file(ROOT / "inventory/dual-gpu-256k.yml")
    assert below is not None
    return HostSpec.model_validate(below.data())


def test_the_reference_spec_as_it_lies_there_is_planned_as_published(tmp_path: Path) -> None:
    plan = planned(reference(), tmp_path)
    assert {"header-composed", "thin-margin"} <= set(codes(plan))
    assert "header-undecided" not in codes(plan)
    assert plan.fits
    assert plan.known
    assert "fits[/], [yellow]with a composed header" in headline(plan)
    card = plan.devices[0]
    assert card.used_mib == pytest.approx(23_952, rel=0.01)
    assert card.doubt_mib == 0
    assert plan.ram.components["weights"] == pytest.approx(994.63, abs=0.01)
    said = next(finding.message for finding in plan.findings if finding.code == "header-composed")
    assert "published type" in said


def without_recipe() -> Table:
    files = tuple(replace(each, embedding_type=None, output_type=None) for each in table().files)
    return replace(table(), files=files)


def test_without_its_recipe_the_reference_spec_is_not_known_in_every_form(tmp_path: Path) -> None:
    found = reference()
    headers = gather_headers(found, tmp_path, tmp_path, known=without_recipe())
    plan = plan_host(found, headers)
    assert codes(plan)["header-undecided"] == "warning"
    said = plan_json(plan)
    assert (said["fits"], said["known"]) == (False, False)
    card = said["devices"][0]
    assert card["free-mib"] < 0 <= card["free-mib"] + card["doubt-mib"]
    text = page(plan, found, headers)
    assert "not known: the model&#39;s exact header is missing" in text
    assert "MiB too many with the composed header" in text
    assert "does not fit</span>" not in text
    assert '<span class="pill small note">not known</span>' in text


def test_a_margin_that_only_the_exact_header_decides_is_no_yes_on_the_page(tmp_path: Path) -> None:
    found = guide({"context": 190_000})
    headers = gather_headers(found, tmp_path, tmp_path, known=table())
    text = page(plan_host(found, headers), found, headers)
    assert "172 MiB free, margin 512, which is not kept with the composed header" in text
    assert '<span class="pill small note">not known</span>' in text
    assert "margin not kept</span>" not in text


def test_a_card_that_is_too_small_for_certain_is_badged_so(tmp_path: Path) -> None:
    found = guide({"context": 240_000})
    headers = gather_headers(found, tmp_path, tmp_path, known=table())
    text = page(plan_host(found, headers), found, headers)
    assert '<span class="pill small bad">does not fit</span>' in text
    assert "with the composed header" not in text


def test_a_solved_window_fits_for_certain(tmp_path: Path) -> None:
    found = solve_project(guide(), tmp_path, "context")
    assert isinstance(found.value, int)
    plan = planned(guide({"context": found.value}), tmp_path)
    assert plan.fits
    assert plan.known
    assert not planned(guide({"context": found.value + 256}), tmp_path).known
    assert found.bound.by == "gpu"


def test_a_solved_window_warns_of_what_it_leaves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drafting = {"speculation": {"type": "draft-mtp", "n-max": 8}}
    found = solve_project(guide(drafting), tmp_path, "context")
    assert [(each["code"], each["severity"]) for each in found.to_json()["findings"]] == [("memory-grows", "warning")]
    with pytest.raises(Exit) as ended:
        show_solutions([("rtx-4090", found)], json_=False)
    assert ended.value.exit_code == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "warning memory-grows: with speculation" in printed
    assert "fix: restart the service in a quiet hour" in printed
    assert solve_project(guide(), tmp_path, "context").findings == ()
    more = solve_project(guide(drafting | {"margin-mib": 1024}), tmp_path, "context")
    assert more.value is not None
    assert more.findings == ()


@pytest.mark.parametrize("what", ["quant", "context"])
def test_what_is_printed_for_the_spec_can_be_pasted_there(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = guide({"context": 65_536})
    found = solve_project(asked, tmp_path, what)
    with pytest.raises(Exit):
        show_solutions([("rtx-4090", found)], json_=False)
    piece = yaml.safe_load(capsys.readouterr().out.partition("in the spec:\n")[2])
    data = asked.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for part, name in (("models", "qwen"), ("services", "chat")):
        data[part][name] |= piece.get(part, {}).get(name, {})
    changed = HostSpec.model_validate(data)
    assert piece == ({"models": found.change["models"]} if what == "quant" else {"services": {"chat": found.change}})
    assert planned(changed, tmp_path).fits
    if what == "quant":
        qwen = changed.models["qwen"]
        assert f"{qwen.repo}/{qwen.file}" == found.value


def test_every_offer_is_written_as_a_spec_takes_it(tmp_path: Path) -> None:
    plan = planned(guide({"context": 262_144}), tmp_path)
    assert any("models" in each["change"] for each in plan.alternatives)
    for each in plan.alternatives:
        assert yaml.safe_load(f"{{{change_words(each['change'])}}}") == each["change"]


def test_a_hash_that_looks_like_a_number_stays_text() -> None:
    change = {"models": {"qwen": {"sha256": "1" * 64, "revision": "2e10", "size": 5}}}
    assert yaml.safe_load(f"{{{change_words(change)}}}") == change
    assert yaml.safe_load(change_yaml("chat", change)) == change


BEYOND = {"context": 262_144, "expect": {"decode-tok-s": 900}}


def test_alternatives_are_found_beside_an_error_that_memory_does_not_cure(tmp_path: Path) -> None:
    plan = planned(guide(BEYOND), tmp_path)
    assert {"does-not-fit", "beyond-bandwidth"} <= set(codes(plan))
    assert plan.alternatives
    assert "does not fit, and is refused: beyond-bandwidth" in headline(plan)
    solved = solve_project(guide(BEYOND), tmp_path, "context")
    assert solved.value is not None
    assert solved.bound.by == "gpu"


def test_curves_speak_of_memory_alone(tmp_path: Path) -> None:
    found = guide(BEYOND | {"context": 32_768})
    headers = gather_headers(found, tmp_path, tmp_path, known=table())
    plan = plan_host(found, headers)
    assert not plan.fits
    assert "[bold red]refused: beyond-bandwidth[/]" in headline(plan)
    [window] = [each for each in curves(found, headers, steps=3) if each.setting == "context"]
    assert window.here.fits


def test_where_no_alternative_is_there_none_is_spoken_of(tmp_path: Path) -> None:
    cards = {"upper": {"model": "rtx-4090", "bus-id": "01:00.0", "reserve-mib": 23_900}}
    plan = planned(guide(model={"file": "x.gguf"}, gpus=cards), tmp_path)
    [said] = [finding for finding in plan.findings if finding.code == "does-not-fit"]
    assert not plan.alternatives
    assert "alternatives" not in said.fix


def test_a_narrow_fit_names_the_shares_that_were_reported(tmp_path: Path) -> None:
    plan = planned(guide({"context": 181_248}), tmp_path)
    [said] = [finding for finding in plan.findings if finding.code == "process-unmeasured"]
    assert said.severity == "note"
    assert said.message.startswith("upper fits by 2 MiB, and processes of 299 to 368 MiB were reported")
    assert "process-unmeasured" not in codes(planned(guide(), tmp_path))
    seen = {"cards": {"upper": {"driver-mib": 18_000.0, "planned-mib": 17_707.7}}}
    told = {"host": "rtx-4090", "release": "x", "date": "2026-11-30", "services": {"chat": seen}}
    write_measured(tmp_path, Measured.model_validate(told))
    found = codes(planned(guide({"context": 181_248}), tmp_path))
    assert "process-measured" in found
    assert "process-unmeasured" not in found


@pytest.mark.parametrize(("model", "fix"), [({}, "lock --known-files"), (CONTROLLER, "give the model's `repo`")])
def test_a_quant_that_cannot_be_named_says_what_would_help(model: dict[str, Any], fix: str) -> None:
    data = guide().model_dump(mode="json", by_alias=True, exclude_unset=True)
    data["models"]["qwen"] = model or data["models"]["qwen"] | {"repo": "me/mine"}
    found = HostSpec.model_validate(data)
    with pytest.raises(RigError) as caught:
        solve(*planned_subject(found, {"qwen": QWEN}), "quant")
    assert fix in caught.value.fix
