"""Posteriors measured along a run: what is stored, what is left alone, what is refused."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feelgood
from feelgood import TESTBEDS, FeelgoodError, cli
from feelgood.core.parquet import read_parquet
from feelgood.posterior import MEASURES, matched_settings
from feelgood.studies import Cell, Store, Study, plan_cells, read_study, run_study
from feelgood.studies.batches import make_batches
from feelgood.studies.cells import from_table, to_table
from feelgood.studies.merging import merge_seeds

AGENT = {"steps": 5, "beta": [1.0, 50.0]}


def command(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["feelgood", *args])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.fixture(scope="module")
def measured() -> feelgood.RunResult:
    options: dict[str, Any] = {"rounds": 120, "seeds": 3, "settings": {"lmcts": AGENT}}
    return feelgood.run("linear-20", ["lints", "lmcts"], posterior_every=50, **options)


def test_every_chain_is_measured_every_so_many_rounds_and_at_the_end(
    measured: feelgood.RunResult,
) -> None:
    assert len(measured) == 3
    for result in measured:
        along = result.posterior
        assert along is not None
        assert along.rounds.tolist() == [50, 100, 120]
        assert list(along.value) == list(MEASURES)
        for part in (along.value, along.expected):
            assert all(v.shape == (3, 3) and np.isfinite(v).all() for v in part.values())
        assert (along.error["trace"] > 0).all()
        # Chains have their own draws and their own data.
        assert len(np.unique(along.value["trace"])) == 9


def test_the_run_is_the_same_bits_with_and_without(measured: feelgood.RunResult) -> None:
    plain = feelgood.run(
        "linear-20", ["lints", "lmcts"], rounds=120, seeds=3, settings={"lmcts": AGENT}
    )
    for with_, without in zip(measured, plain, strict=True):
        assert without.posterior is None
        assert "posterior" not in without.to_json()
        for name in ("final_regret", "curve", "arm_counts", "ess"):
            assert getattr(with_, name).tobytes() == getattr(without, name).tobytes()


@pytest.mark.slow
def test_right_temperatures_are_exact_and_wrong_ones_are_seen() -> None:
    """LinTS with the right noise and prior has variance 1; with η = 1 and no prior, four times."""
    right = matched_settings("lints", TESTBEDS["linear-20"].build(), 0.5)
    result = feelgood.run(
        "linear-20",
        ["lints"],
        rounds=200,
        seeds=4,
        settings={"lints": {"eta": [right["eta"], 1.0], "rho": right["rho"]}},
        posterior_every=100,
    )
    exact, wide = (r.posterior for r in result)
    assert exact is not None and wide is not None
    # Eight means of 200 draws each; six errors of their mean are passed by chance once in 10⁸.
    error = np.sqrt(np.mean(exact.error["trace"] ** 2) / 8)
    assert abs(exact.value["trace"].mean() - 1.0) < 6 * error
    assert abs(wide.value["trace"].mean() - 4.0) < 6 * 4 * error
    assert (wide.value["choice"] > exact.value["choice"]).mean() > 0.8


def test_results_files_hold_the_measures(
    measured: feelgood.RunResult, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out, file = tmp_path / "out", tmp_path / "results.json"
    options = ("--rounds", "120", "--seeds", "3", "--posterior-every", "50")
    where = ("--out", str(out), "--json", str(file))
    assert command(monkeypatch, "run", "linear-20", "lints", *options, *where) == 0
    (found,) = json.loads(file.read_text())["results"]
    assert found["posterior"]["rounds"] == [50, 100, 120]
    ours = measured["lints"].posterior
    assert ours is not None
    for seed, measures in enumerate(found["posterior"]["seeds"]):
        by_name = {m["measure"]: m for m in measures}
        assert by_name["trace"]["values"] == ours.value["trace"][seed].tolist()
        assert by_name["trace"]["errors"] == ours.error["trace"][seed].tolist()
        assert by_name["rhat"]["errors"] == [None] * 3
    table = read_parquet((out / "results.parquet").read_bytes()).to_pylist()
    assert [row["posterior_rounds"] for row in table] == [[50, 100, 120]] * 3
    assert table[1]["posterior"][0]["values"] == ours.value["bias"][1].tolist()


# ---- studies --------------------------------------------------------------------------------


def cells(every: int | None, seeds: Any = 3) -> list[Cell]:
    return [
        *plan_cells("linear-20", "lints", rounds=120, seeds=seeds, posterior_every=every),
        *plan_cells(
            "linear-20", "lmcts", settings=AGENT, rounds=120, seeds=seeds, posterior_every=every
        ),
    ]


def test_a_measured_cell_is_another_cell_and_plain_cells_keep_their_names() -> None:
    plain, measured = cells(None), cells(50)
    assert not {c.id for c in plain} & {c.id for c in measured}
    assert "posterior_every" not in plain[0].to_json()
    # The name of a cell in stores that exist already.
    fixed = Cell("linear-20", {"noise": 0.5}, "lints", {"eta": 1.0}, 50, (0, 1))
    assert fixed.id == "889dc556ccb2879a7ca95cfd"
    for cell in (*plain, *measured):
        assert Cell.from_json(json.loads(json.dumps(cell.to_json()))).id == cell.id
    # Cells with and without are never in one batch: they are not one program's work.
    batches = make_batches([*plain, *measured], "cpu", ())
    assert all(len({c.posterior_every for c in batch.cells}) == 1 for batch in batches)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    place = Store(tmp_path_factory.mktemp("store") / "results")
    outcome = run_study(Study("measured", tuple(cells(50))), place, workers=1)
    assert outcome.missing == 0, outcome.failures
    return place


@pytest.mark.slow
def test_the_store_keeps_the_measures(store: Store, measured: feelgood.RunResult) -> None:
    found = {(r.agent, r.settings.get("beta")): r for r in store.results(cells(50))}
    for direct in measured:
        stored = found[direct.agent, direct.settings.get("beta")]
        assert stored.posterior is not None and direct.posterior is not None
        assert stored.posterior.rounds.tolist() == [50, 100, 120]
        for part in ("value", "expected", "error"):
            a, b = getattr(stored.posterior, part), getattr(direct.posterior, part)
            for name in MEASURES:
                # A batch holds other chains than the direct run: rounding differs.
                np.testing.assert_allclose(a[name], b[name], rtol=0.05, atol=0.02, err_msg=name)
    table = store.table(cells(50))
    assert table.column("posterior_rounds").to_pylist() == [[50, 100, 120]] * 9
    first = table.column("posterior").to_pylist()[0]
    assert [m["measure"] for m in first] == list(MEASURES)


@pytest.mark.slow
def test_a_seed_run_with_and_without_is_one_run(store: Store) -> None:
    (mine,) = (r for r in store.results(cells(50)) if r.agent == "lints")
    assert mine.posterior is not None
    more = dataclasses.replace(
        mine,
        seeds=(0, 1, 2, 7),
        posterior=None,
        **{
            name: np.concatenate([getattr(mine, name), getattr(mine, name)[:1] + 1])
            for name in (
                "final_regret",
                "simple_regret",
                "best_arm_rate",
                "arm_counts",
                "curve",
                "ess",
                "diverged_at",
            )
        },
        health={},
    )
    (both,) = merge_seeds([more, mine])
    assert both.seeds == (0, 1, 2, 7)
    assert both.posterior is not None
    trace = both.posterior.value["trace"]
    assert np.array_equal(trace[:3], mine.posterior.value["trace"])
    assert np.isnan(trace[3]).all()


@pytest.mark.slow
def test_files_of_earlier_versions_are_read(store: Store) -> None:
    cell = cells(None)[0]
    (mine,) = (r for r in store.results(cells(50)) if r.agent == "lints")
    table = to_table(cell, dataclasses.replace(mine, posterior=None))
    old = table.drop_columns(["posterior_rounds", "posterior"])
    assert from_table(old).posterior is None
    assert np.array_equal(from_table(old).final_regret, mine.final_regret)


@pytest.mark.slow
def test_the_command_and_the_key_in_the_file_are_the_same(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "study.toml"
    text = 'testbeds = ["linear-20"]\nagents = ["lints"]\nrounds = 120\nseeds = 3\n'
    file.write_text(text)
    assert read_study(file).study.cells[0].posterior_every is None
    by_option = read_study(file, 50).study.cells
    file.write_text("posterior_every = 50\n" + text)
    assert read_study(file).study.cells == by_option
    assert read_study(file, 60).study.cells[0].posterior_every == 60
    # Everything is in the store already: nothing is run, and export finds it.
    out = tmp_path / "out.csv"
    where = ("--store", str(store.path))
    assert command(monkeypatch, "study", "run", str(file), *where) == 0
    file.write_text(text)
    again = ("--posterior-every", "50", "--format", "csv", "--out", str(out))
    assert command(monkeypatch, "study", "export", str(file), *where, *again) == 0
    assert "cover90" in out.read_text()


REFUSED = {
    "wheel": (("wheel-0.5", "lints"), "wheel-0.5 is not linear with Gaussian noise"),
    "logistic": (("logistic-20", "lmcts"), "logistic-20 is not linear with Gaussian noise"),
    "no draws": (("linear-20", "linucb"), "no agent of this run (linucb) draws parameters"),
    "neural": (("linear-20", "neural-lmcts"), "no agent of this run (neural-lmcts) draws"),
    "never": (("linear-20", "lints", "--posterior-every", "0"), "posterior_every = 0 is not"),
    "late": (
        ("linear-20", "lints", "--posterior-every", "99"),
        "use a whole number at least 1 and at most 50",
    ),
    "noiseless": (("linear-20", "lints", "--set", "testbed.noise=0"), "has no noise"),
    "loss": (("linear-20", "lmcts", "--set", "lmcts.likelihood=bernoulli"), "no exact posterior"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_measured_is_refused_with_one_sentence(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    args, sentence = REFUSED[name]
    every = () if "--posterior-every" in args else ("--posterior-every", "10")
    assert command(monkeypatch, "run", *args, "--rounds", "50", *every) == 2
    said = capsys.readouterr().err.replace("\n", " ")
    assert sentence in said and "Traceback" not in said


def test_a_study_that_cannot_be_measured_is_refused_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "study.toml"
    file.write_text(
        'testbeds = ["linear-20"]\nagents = ["linucb", "uniform"]\nrounds = 9\nposterior_every = 3'
    )
    assert command(monkeypatch, "study", "run", str(file)) == 2
    said = capsys.readouterr().err.strip()
    assert "no agent of this run (linucb, uniform) draws" in said.replace("\n", " ")
    assert not list(tmp_path.glob("*-results"))
    with pytest.raises(FeelgoodError, match="posterior_every = True is not allowed"):
        plan_cells("linear-20", "lints", posterior_every=True)


def test_agents_without_draws_run_unmeasured_beside_the_others(
    tmp_path: Path,
) -> None:
    options: dict[str, Any] = {"rounds": 120, "seeds": 3}
    both = feelgood.run("linear-20", ["linucb", "lints"], posterior_every=50, **options)
    assert both["linucb"].posterior is None
    assert both["lints"].posterior is not None
    file = tmp_path / "study.toml"
    file.write_text(
        'testbeds = ["linear-20"]\nagents = ["lints", "linucb"]\nrounds = 50\nposterior_every = 10'
    )
    every = {cell.agent: cell.posterior_every for cell in read_study(file).study.cells}
    assert every == {"lints": 10, "linucb": None}
    (plain,) = plan_cells("linear-20", "linucb", rounds=50, seeds=10)
    assert plain.id in {cell.id for cell in read_study(file).study.cells}
