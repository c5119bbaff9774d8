"""One table says what is measured: whatever reads or writes results follows it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feelgood
from feelgood.engine import schema
from feelgood.engine.columns import RUN_TABLE, SHOWDOWN, arrow_columns
from feelgood.engine.results import has_field
from feelgood.engine.schema import QUANTITIES, Axes, Quantity
from feelgood.engine.simulation import Outcome
from feelgood.engine.tally import Tally
from feelgood.studies.cells import cell_schema
from feelgood.testbeds import Linear
from showdown import keeping

DOCS = Path(__file__).parents[2] / "docs"
TINY = Linear(parameters=6, arms=3)
#: Two cells of a study.
SEEDS = 12
ONE_PER_SEED = Quantity("surprise", "how surprised the agent was")
MORE = (
    ONE_PER_SEED,
    Quantity("pulls", "changes of the arm", whole=True, none=-1),
    Quantity("doubts", "doubts about each arm", Axes.ARM),
    Quantity("path", "surprise along the run", Axes.POINT),
    Quantity("moods", "moods along the run", Axes.DIAGNOSTIC),
)


def measured_more(numbers: dict[str, Any]) -> dict[str, Any]:
    """As if the engine measured some numbers more."""
    chains, curve = len(numbers["curve"]), numbers["curve"]
    return numbers | {
        "surprise": numbers["final_regret"] / 7.0,
        "pulls": np.arange(chains) % 2 - 1,
        "doubts": np.arange(3.0 * chains).reshape(chains, 3),
        "path": curve / 8.0,
        "moods": {"acceptance": curve / 2.0},
    }


def play(monkeypatch: pytest.MonkeyPatch, *more: Quantity) -> feelgood.RunResult:
    """A run that measures these numbers, too: a line of the table, and a value of the tally."""
    numbers = Tally.numbers
    monkeypatch.setattr(schema, "QUANTITIES", (*QUANTITIES, *more))
    monkeypatch.setattr(Tally, "numbers", lambda tally: measured_more(numbers(tally)))
    return feelgood.run(TINY, "uniform", rounds=20, seeds=SEEDS)


def test_the_engine_and_results_have_every_number() -> None:
    for quantity in QUANTITIES:
        assert quantity.name in Outcome._fields and has_field(quantity)
        assert quantity.meaning


def test_a_new_number_is_one_line_of_the_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """JSON, Arrow, frames, summaries, a store's cells, the showdown's files, and back."""
    run = play(monkeypatch, ONE_PER_SEED)
    expected = run[0].final_regret / 7.0
    np.testing.assert_array_equal(run[0].values_of(ONE_PER_SEED), expected)
    assert run[0].to_json()["surprise"] == expected.tolist()
    assert run.to_arrow()["surprise"].to_pylist() == expected.tolist()
    assert run.to_pandas()["surprise"].tolist() == expected.tolist()
    assert run.summary()[0]["surprise"] == pytest.approx(expected.mean())
    back = feelgood.load(run.save(tmp_path / "run"))
    np.testing.assert_array_equal(back[0].values_of(ONE_PER_SEED), expected)
    assert "surprise" in feelgood.studies.Store(tmp_path / "run").table([]).column_names
    rows = keeping.to_rows(keeping.Kept(run[0]))
    keeping.write(tmp_path / "small", rows)
    (kept,) = keeping.read(tmp_path / "small")
    np.testing.assert_array_equal(kept.result.values_of(ONE_PER_SEED), expected)


def test_numbers_of_every_kind_come_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = play(monkeypatch, *MORE)
    back = feelgood.load(run.save(tmp_path / "run"))
    for quantity in MORE:
        before, after = (r[0].values_of(quantity) for r in (run, back))
        np.testing.assert_equal(after, before)
    assert run[0].to_json()["pulls"][:2] == [None, 0]
    keeping.write(tmp_path / "small", keeping.to_rows(keeping.Kept(run[0])))
    (kept,) = keeping.read(tmp_path / "small")
    assert kept.result.values_of(MORE[3]).shape == kept.result.curve.shape
    assert list(kept.result.values_of(MORE[4])) == ["acceptance"]


def test_files_without_a_new_number_are_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Files that were written before a number existed are read without it."""
    run = feelgood.run(TINY, "uniform", rounds=20, seeds=SEEDS)
    run.save(tmp_path / "run")
    keeping.write(tmp_path / "small", keeping.to_rows(keeping.Kept(run[0])))
    monkeypatch.setattr(schema, "QUANTITIES", (*QUANTITIES, *MORE))
    (kept,) = keeping.read(tmp_path / "small")
    for result in (feelgood.load(tmp_path / "run")[0], kept.result):
        np.testing.assert_array_equal(result.final_regret, run[0].final_regret)
        assert np.isnan(result.values_of(ONE_PER_SEED)).all()
        assert result.values_of(MORE[1]).tolist() == [-1] * SEEDS
        assert result.values_of(MORE[2]).shape == (SEEDS, 0)
        assert result.values_of(MORE[4]) == {}


def test_the_layout_of_files_is_as_it_was() -> None:
    """Files that exist have these columns in this order."""
    measured = "final_regret simple_regret best_arm_rate arm_counts status diverged_at ess "
    measured += "curve_rounds curve_regret health posterior_rounds posterior"
    cell = f"cell testbed agent settings testbed_settings rounds seed {measured} feelgood jax "
    cell += "python device commit started duration_s compile_s run_s batch batch_chains"
    assert cell_schema().names == cell.split()
    left_out = {"arm_counts", "status"}
    small = [name for name in measured.split() if name not in left_out]
    assert [name for name, _ in arrow_columns(SHOWDOWN)] == small
    shown = [name for name in measured.split() if name not in ("ess", "health")]
    assert [name for name, _ in arrow_columns(RUN_TABLE)] == shown


def test_the_documentation_names_every_column() -> None:
    text = (DOCS / "studies.md").read_text(encoding="utf-8")
    for name in cell_schema().names:
        assert f"`{name}`" in text, name
