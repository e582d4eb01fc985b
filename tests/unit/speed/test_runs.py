"""The measured runs of the catalog, the fitted parameters, and how well they tell what they have not seen."""

from __future__ import annotations

import math

import pytest

from llamarig.catalog.gpus import cards
from llamarig.catalog.speeds import Run, sources, speeds
from llamarig.gguf.tensor_types import BY_NAME
from llamarig.speed.fit import errors, fit, left_out, main, minimum, solved, start
from llamarig.speed.runs import fitted_runs, kind_of, measured, predicted, work_of_run

RUNS = speeds().runs
STACK = {run.name: run for run in RUNS if run.source == "stack"}


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.card}: {run.name}")
def test_a_run_is_whole(run: Run) -> None:
    assert run.card in cards()
    assert run.model in speeds().models
    assert run.source in sources()
    assert run.type in BY_NAME
    assert (run.decode_tok_s is None) != (run.prefill_tok_s is None)
    assert (run.prompt > 0) == (run.prefill_tok_s is not None)
    assert run.fit or run.note
    assert not run.acceptance_assumed or run.note
    assert run.n_max == 0 or run.acceptance is not None or not run.fit
    work = work_of_run(run)
    for part in (*work.dense.values(), *work.output.values(), *work.experts.values()):
        assert 2 < 8 * part.size / part.weights < 9.5


def test_names_are_told_apart() -> None:
    names = [(run.card, run.name) for run in RUNS]
    assert len(names) == len(set(names))


def test_the_catalog_holds_what_the_fit_finds() -> None:
    found = fit(fitted_runs(), speeds().fitted)
    assert found.keys() == speeds().fitted.keys()
    assert {name: pytest.approx(value, rel=0.02) for name, value in found.items()} == speeds().fitted


def test_parameters_are_fewer_than_runs_and_none_belongs_to_a_run() -> None:
    names = start(fitted_runs())
    assert len(names) < len(fitted_runs()) / 2
    assert {name.removeprefix("card:") for name in names if name.startswith("card:")} == {
        run.card for run in fitted_runs()
    }


@pytest.mark.parametrize(
    ("name", "within"),
    [
        ("Q3_K_M, no drafts", 0.08),
        ("IQ4_XS, no drafts", 0.08),
        ("Q4_0, no drafts", 0.08),
        ("Q4_K_M, no drafts", 0.08),
        ("Q4_K_M, n-max 3", 0.08),
        ("NVFP4 mix, greedy", 0.05),
        ("NVFP4 mix, n-max 3", 0.05),
        ("NVFP4 mix, n-max 4", 0.05),
        ("NVFP4 mix, n-max 8", 0.05),
        ("NVFP4 mix, 32K full, n-max 8", 0.06),
        ("NVFP4 mix, 261,500 full, n-max 8", 0.06),
        ("NVFP4 mix, prompt of 261,500", 0.06),
    ],
)
def test_published_runs_of_the_reference_stack(name: str, within: float) -> None:
    run = STACK[name]
    assert abs(math.log(predicted(run) / measured(run))) < within


def test_physical_parameters_are_physical() -> None:
    fitted = speeds().fitted
    assert all(0 < fitted[name] < 1 for name in ("bandwidth", "tiles", "cache", "tensor", "cap"))
    assert fitted["bandwidth"] > fitted["tiles"]
    assert fitted["instructions:k-low"] > fitted["instructions:k"] > fitted["instructions:plain"]


def test_a_run_left_out_is_told_by_the_others() -> None:
    few = [run for run in fitted_runs() if run.card == "rtx-5090"]
    said = left_out(few, speeds().fitted)
    assert len(said) == len(few)
    found = errors(few, said)
    assert found["decode"] < 0.15
    assert "prefill" not in found
    assert {kind_of(run) for run in few} == {"decode"}


def test_a_planted_error_is_seen() -> None:
    few = fitted_runs()[:3]
    wrong = [2 * measured(run) for run in few]
    assert errors(few, wrong)["decode"] == pytest.approx(math.log(2))


def test_equations_and_minima_are_solved() -> None:
    assert solved([[0.0, 2.0], [1.0, 1.0]], [4.0, 3.0]) == pytest.approx([1.0, 2.0])
    assert minimum(lambda at: [at[0] - 3.0, 10.0 * (at[1] - at[0] ** 2)], [0.0, 0.0]) == pytest.approx(
        [3.0, 9.0], rel=1e-3
    )


def test_the_printed_parameters_can_be_pasted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = [run for run in fitted_runs() if run.card == "rtx-4090"]
    monkeypatch.setattr("llamarig.speed.fit.fitted_runs", lambda: few)
    assert main() == 0
    said = capsys.readouterr().out
    assert said.startswith("fitted:\n  bandwidth: ")
    assert '  "card:rtx-4090": ' in said
    assert "error:\n  decode: " in said
