"""`feelgood reproduce --tune`: which network an agent gets, and who is told."""

import csv
import dataclasses
import io
import math
from pathlib import Path

import numpy as np
import pytest
from commands import Command
from made_results import result

from feelgood.core.errors import FeelgoodError
from feelgood.paper import published_rows
from feelgood.paper.published_numbers import all_published
from feelgood.paper.published_rows import PublishedRow
from feelgood.paper.reproducing import plan_rows
from feelgood.paper.tuning import ARCHITECTURES, NetworkTuning, plan_tuning, with_choices
from feelgood.report.page import build_page
from feelgood.report.published_comparisons import compare_rows
from feelgood.report.published_tables import to_csv, to_markdown
from feelgood.studies import Store
from feelgood.studies.planning import Cell


@pytest.fixture
def on_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of neural agents as if the paper had run them on `digits` and nothing else."""
    moved = tuple(
        dataclasses.replace(p, testbed="digits")
        for p in all_published()
        if p.testbed == "mushroom" and p.table == "neural-cumulative"
    )
    linear = dataclasses.replace(moved[0], agent="linucb")
    monkeypatch.setattr(published_rows, "all_published", lambda: (*moved, linear))


def digits_rows(*agents: str) -> tuple[PublishedRow, ...]:
    return published_rows.rows("neural-cumulative", ["digits"], agents)


def put(store: Store, cells: tuple[Cell, ...], means: float | list[float]) -> None:
    for cell in cells:
        values = np.broadcast_to(means, len(cell.seeds)).astype(float)
        made = result(
            cell.agent, values, seeds=cell.seeds, testbed=cell.testbed, rounds=cell.rounds
        )
        store.put(cell, dataclasses.replace(made, settings=cell.settings))


def fill(store: Store, plan: NetworkTuning, regrets: dict[str, tuple[float, float]]) -> None:
    """Results of the tuning runs, by agent and network."""
    for (_, agent), networks in plan.cells.items():
        for layers, mean in zip(ARCHITECTURES, regrets[agent], strict=True):
            put(store, networks[layers], mean)


@pytest.mark.usefixtures("on_digits")
def test_every_network_has_the_same_budget_and_the_settings_of_the_comparison() -> None:
    rows = digits_rows("neural-lmcts", "neural-ucb")
    plan = plan_tuning(rows, seeds=5, rounds=1000)
    compared = plan_rows(rows, seeds=5, rounds=1000)
    budgets = set()
    for row, cells in zip(rows, compared.cells, strict=True):
        assert not isinstance(cells, str)
        networks = plan.cells[row.testbed, row.agent]
        assert tuple(networks) == ("100", "50-50-50")
        for layers, tried in networks.items():
            assert all(cell.settings == {**cells[0].settings, "layers": layers} for cell in tried)
            seeds = [seed for cell in tried for seed in cell.seeds]
            assert not {seed for cell in cells for seed in cell.seeds} & set(seeds)
            budgets.add((tuple(seeds), tried[0].rounds))
    assert budgets == {((1000, 1001, 1002), 1000)}
    # A shorter tuning run has the temperature of the whole horizon all the same.
    short = plan_tuning(rows, seeds=5, rounds=1000, tuning_rounds=50)
    beta = short.cells["digits", "neural-lmcts"]["100"][0].settings["beta"]
    assert beta == plan.cells["digits", "neural-lmcts"]["100"][0].settings["beta"]


@pytest.mark.usefixtures("on_digits")
def test_the_smaller_mean_regret_decides(tmp_path: Path) -> None:
    rows = digits_rows("neural-lmcts", "neural-ucb", "neural-eps-greedy", "neural-fglmcts")
    plan = plan_tuning(rows)
    store = Store(tmp_path)
    means = {
        "neural-lmcts": (20.0, 10.0),
        "neural-ucb": (10.0, 20.0),
        "neural-eps-greedy": (10.0, 10.0),  # equal: the smaller network
        "neural-fglmcts": (math.nan, 500.0),  # diverged
    }
    fill(store, plan, means)
    choices = {choice.agent: choice for choice in plan.choices(store)}
    assert {agent: choice.layers for agent, choice in choices.items()} == {
        "neural-lmcts": "50-50-50",
        "neural-ucb": "100",
        "neural-eps-greedy": "100",
        "neural-fglmcts": "50-50-50",
    }
    assert choices["neural-fglmcts"].reason == (
        "mean regret of 3 other seeds over 2,000 rounds: 100: –, 50-50-50: 500.0"
    )
    chosen = with_choices(rows, tuple(choices.values()))
    (cells,) = plan_rows([r for r in chosen if r.agent == "neural-lmcts"], seeds=1).cells
    assert not isinstance(cells, str)
    assert cells[0].settings["layers"] == "50-50-50"


@pytest.mark.usefixtures("on_digits")
def test_a_network_that_was_not_run_is_not_chosen(tmp_path: Path) -> None:
    plan = plan_tuning(digits_rows("neural-ucb"))
    store = Store(tmp_path)
    with pytest.raises(FeelgoodError, match="neither network of neural-ucb on digits could be run"):
        plan.choices(store)
    put(store, plan.cells["digits", "neural-ucb"]["50-50-50"], 99.0)
    (choice,) = plan.choices(store)
    assert choice.layers == "50-50-50"


@pytest.mark.usefixtures("on_digits")
def test_tables_and_page_name_the_network_and_why(tmp_path: Path) -> None:
    rows = digits_rows("neural-ucb")
    plan = plan_tuning(rows, seeds=2)
    store = Store(tmp_path)
    fill(store, plan, {"neural-ucb": (20.0, 10.0)})
    chosen = with_choices(rows, plan.choices(store))
    compared = plan_rows(chosen, seeds=2)
    (cells,) = compared.cells
    assert not isinstance(cells, str)
    put(store, cells, [140.0, 150.0])
    comparisons = compare_rows(chosen, compared.results(store))
    reason = "mean regret of 3 other seeds over 2,000 rounds: 100: 20.0, 50-50-50: 10.0"
    text = to_markdown(comparisons, "title")
    assert "neural-ucb [50-50-50]" in text
    assert "In brackets: the hidden layers, chosen by tuning." in text
    (record,) = csv.DictReader(io.StringIO(to_csv(comparisons, "title")))
    assert (record["layers"], record["tuning"]) == ("50-50-50", reason)
    page = build_page(store.results(cells), "title", comparisons)
    assert "neural-ucb [50-50-50]" in page
    assert f"network: {reason}" in page
    untuned = compare_rows(rows, [store.results(cells)[0]])
    assert "as the paper's preset has them" in to_markdown(untuned, "title")


@pytest.mark.usefixtures("on_digits")
def test_agents_without_a_network_are_not_tuned() -> None:
    rows = digits_rows("neural-ucb", "linucb")
    plan = plan_tuning(rows)
    assert plan.untuned == ("linucb",)
    assert list(plan.cells) == [("digits", "neural-ucb")]
    with pytest.raises(FeelgoodError, match=r"no agent of this table has a network .*\(linucb\)"):
        plan_tuning(digits_rows("linucb"))


@pytest.mark.usefixtures("on_digits")
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tuning_seeds": "3:6", "seeds": 5}, "seed 3 is for tuning and for the comparison"),
        ({"tuning_rounds": 50, "rounds": 40}, "--tune-rounds 50 is more than the 40 rounds"),
        ({"tuning_rounds": 0}, "rounds = 0 is not allowed"),
        ({"tuning_seeds": "x"}, "seeds = 'x' is not allowed"),
    ],
)
def test_budgets_that_make_no_sense(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(FeelgoodError, match=sentence):
        plan_tuning(digits_rows("neural-ucb"), **options)  # type: ignore[arg-type]


def test_data_that_are_not_here_are_left_to_the_comparison(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FEELGOOD_DATA", str(tmp_path))
    monkeypatch.setenv("FEELGOOD_CACHE", str(tmp_path))
    rows = published_rows.rows("neural-cumulative", ["mushroom"], ["neural-ucb"])
    plan = plan_tuning(rows)
    assert not plan.cells
    assert plan.study("s") is None


# ---- the command ----------------------------------------------------------------------------


@pytest.mark.usefixtures("on_digits")
def test_reproduce_tunes_first_and_only_once(reproduce: Command, tmp_path: Path) -> None:
    options = ("--agents", "neural-ucb,linucb", "--seeds", 2, "--store", "s")
    rows = digits_rows("neural-ucb", "linucb")
    store = Store(tmp_path / "s")
    tried = plan_tuning(rows, seeds=2)
    fill(store, tried, {"neural-ucb": (20.0, 10.0)})
    chosen = with_choices(rows, tried.choices(store))
    for cells in plan_rows(chosen, seeds=2).cells:
        assert not isinstance(cells, str)
        put(store, cells, [140.0, 150.0])
    before = len(store.present())
    done = reproduce("neural-cumulative", "--tune", *options)
    assert done.code == 0, done.err
    text = " ".join(done.out.split())
    assert "neural-ucb │ 20.0 │ 10.0 │ 50-50-50" in text
    assert "neural-ucb [50-50-50]" in text
    assert "No network to choose: linucb." in text
    assert len(store.present()) == before
    piped = reproduce("neural-cumulative", "--tune", *options, "--format", "csv")
    assert piped.out.startswith("table,testbed")
    assert "networks chosen by tuning" in piped.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("neural-simple", "--tune-rounds", 10), "--tune-rounds and --tune-seeds are for --tune"),
        (("main", "--tune", "--agents", "lints"), "no agent of this table has a network"),
    ],
)
def test_mistakes_are_one_sentence(
    reproduce: Command,
    arguments: tuple[object, ...],
    sentence: str,
) -> None:
    done = reproduce(*arguments)
    assert done.code == 2
    assert sentence in " ".join(done.err.split())
