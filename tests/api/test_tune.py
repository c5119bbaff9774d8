"""`feelgood.tune`: it finds what is known to be best, as one program, on seeds of its own."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Command

import feelgood
from feelgood import AGENTS, TESTBEDS, FeelgoodError
from feelgood.api import running
from feelgood.core.plugins import load_plugins
from feelgood.studies.candidates import BUDGET, HELD_OUT, HELD_OUT_SEEDS
from feelgood.studies.searches import OPTIMISTIC

PLUGIN = Path(__file__).parents[1] / "leaning.py"
BEST_WIDTH = 0.05


@pytest.fixture(scope="module")
def leaning() -> Iterator[None]:
    """The agent whose regret is known; forgotten after the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for registry in (AGENTS, TESTBEDS):
            registry.families()
            patch.setattr(registry, "_families", dict(registry._families))
            patch.setattr(registry, "_digests", dict(registry._digests))
        load_plugins([str(PLUGIN)])
        yield


def regret(width: float) -> float:
    return 2.0 * min(40, math.ceil(10 * abs(math.log(width / BEST_WIDTH))))


@pytest.mark.usefixtures("leaning")
@pytest.mark.parametrize("budget", [1, 2, 9, 33])
def test_it_finds_the_setting_that_is_known_to_be_best(budget: int) -> None:
    """Exact: the regret of every candidate is known beforehand."""
    found = feelgood.tune("leaning", "coins", budget=budget, seeds=2)
    widths = [r.settings["width"] for r in found.candidates]
    assert widths[0] == 1.0 and len(set(widths)) == budget
    for r in found.candidates:
        np.testing.assert_allclose(r.final_regret, regret(r.settings["width"]))
        assert r.seeds == (HELD_OUT, HELD_OUT + 1)
    best = min(widths, key=regret)
    assert found.best == ({"width": best} if budget > 1 else {})
    assert found.result.settings["width"] == best
    assert budget < 9 or regret(best) < regret(1.0)


def test_all_candidates_are_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """And each is what it is alone, on the same seeds."""
    calls: list[int] = []
    simulate = running.simulate

    def counting(testbed: Any, policies: Any, **options: Any) -> Any:
        calls.append(len(policies))
        return simulate(testbed, policies, **options)

    monkeypatch.setattr(running, "simulate", counting)
    found = feelgood.tune("linucb", "linear-20", budget=5, rounds=60, seeds=3)
    assert calls == [5]
    third = found.candidates[2]
    alone = feelgood.run(
        "linear-20",
        "linucb",
        rounds=60,
        seeds=[HELD_OUT, HELD_OUT + 1, HELD_OUT + 2],
        settings={"linucb": dict(third.settings)},
    )
    np.testing.assert_allclose(third.final_regret, alone[0].final_regret, rtol=1e-3)


def test_settings_that_make_no_grid() -> None:
    """`run` takes several dictionaries of an agent."""
    pairs = [{"alpha": 0.5, "rho": 0.1}, {"alpha": [2.0, 3.0]}]
    ran = feelgood.run("linear-20", "linucb", rounds=20, seeds=2, settings={"linucb": pairs})
    assert [(r.settings["alpha"], r.settings["rho"]) for r in ran] == [
        (0.5, 0.1),
        (2.0, 0.01),
        (3.0, 0.01),
    ]
    with pytest.raises(FeelgoodError, match="twice with the same settings"):
        feelgood.run("linear-20", "linucb", rounds=20, settings={"linucb": [{}, {}]})
    for wrong in ([], [3], [{}, None, 3]):
        with pytest.raises(FeelgoodError, match="use a dictionary of names and values"):
            feelgood.run("linear-20", "linucb", rounds=20, settings={"linucb": wrong})
    with pytest.raises(FeelgoodError, match="use a dictionary of names and values"):
        feelgood.run("linear-20", "linucb", rounds=20, settings={"testbed": [{"noise": 1.0}]})


@pytest.mark.usefixtures("leaning")
def test_what_it_shows(command: Command, tmp_path: Path) -> None:
    found = feelgood.tune("leaning", "coins", budget=3, seeds=2, settings={"leaning": {"size": 2}})
    lines = repr(found).splitlines()
    assert lines[0].startswith("leaning on coins, 40 rounds, 2 seeds")
    assert lines[2].split()[0] == f"width={found.best['width']:g}" and lines[2].endswith("best")
    assert lines[-1] == OPTIMISTIC and "as it is" in repr(found)
    assert OPTIMISTIC in found._repr_html_()
    frame = found.to_pandas()
    assert list(frame["width"]) == [r.settings["width"] for r in found.candidates]
    file = tmp_path / "search.csv"
    words = ("tune", "leaning", "coins", "--budget", 3, "--seeds", 2, "--set", "leaning.size=2")
    done = command(*words, "--save", file)
    assert done.code == 0 and OPTIMISTIC in done.out
    assert file.read_text() == found.to_csv()
    with file.open() as text:
        assert [line["candidate"] for line in csv.DictReader(text)] == ["0", "1", "2"]
    follow = "feelgood run coins leaning --rounds 40 --set leaning.size=2 --set leaning.width="
    assert f"{follow}{found.best['width']:g}" in done.out
    again = command(*words, "--save", file)
    assert again.code == 2 and "exists already" in again.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["uniform", "linear-20"], "uniform has no setting left to tune (those that it has: none)"),
        (["linucb", "linear-20", "--set", "linucb.alpha=1"], "left to tune (those that it has: al"),
        (["linucb", "linear-20", "--budget", "0"], "budget = 0 is not allowed"),
        (["linucb", "linear-20", "--seeds", "0"], "seeds of the search = 0 is not allowed"),
        (["linucb", "linear-20", "--rounds", "0"], "rounds = 0 is not allowed"),
        (["linucb", "linear-20", "--set", "linucb.rho=1,2"], "is a list: give one value"),
        (["linucb", "linear-20", "--set", "lints.eta=1"], "settings are given for 'lints'"),
        (["linucb", "linear-20", "--preset", "papr"], "unknown preset 'papr'"),
        (["linucc", "linear-20"], "unknown agent 'linucc': did you mean 'linucb'"),
        (["linucb", "linear"], "unknown testbed 'linear'"),
    ],
)
def test_misuse_gets_one_sentence(command: Command, words: list[str], said: str) -> None:
    done = command("tune", *words)
    assert done.code == 2 and said in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_a_list_in_python_is_refused_too() -> None:
    with pytest.raises(FeelgoodError, match="settings of linucb hold a list: give one value"):
        feelgood.tune("linucb", "linear-20", settings={"linucb": {"rho": [1.0, 2.0]}})


def test_a_preset_is_where_the_search_starts() -> None:
    found = feelgood.tune("lmcts", "linear-20", budget=2, rounds=20, seeds=1, preset="paper")
    (paper,) = feelgood.run("linear-20", "lmcts", rounds=20, seeds=1, preset="paper")
    assert dict(found.candidates[0].settings) == dict(paper.settings)
    assert found.candidates[1].settings["schedule"] == paper.settings["schedule"]


def test_the_command_has_the_defaults_of_the_function(command: Command) -> None:
    told = command("tune", "--help").out
    assert f"[default: {BUDGET}]" in told and f"[default: {HELD_OUT_SEEDS}]" in told
    assert f"from {HELD_OUT:,} on" in " ".join(told.replace("│", " ").split())
