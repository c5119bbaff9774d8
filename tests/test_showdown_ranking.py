"""The ranking: searches that are kept, winners that are compared, a page that says so."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_results import result

from feelgood.engine.results import AgentResult
from feelgood.stats.holm import holm
from feelgood.stats.studentised import studentised
from feelgood.studies import Cell, Store, TunedStudy, read_study
from feelgood.studies.tuned_studies import SEARCH_FOLDER
from showdown import asking, keeping, searching
from showdown.book import Book
from showdown.collecting import collect
from showdown.filling import Wanted, missing_study
from showdown.keeping import Kept
from showdown.places import places
from showdown.question import NOT_RUN, page
from showdown.questions import ranking
from showdown.shelf import Shelf
from showdown.yardsticks import Yardstick, key_of

ROOT = Path(__file__).resolve().parents[1]
NOISE = np.array([0.3, -0.2, 0.1, -0.4, 0.2, 0.0, -0.1, 0.1, 0.3, -0.3])
STUDY = """
rounds = 8
testbeds = ["linear-20"]
agents = ["linucb", "uniform"]
[tune]
budget = 3
seeds = 2
"""


def write(folder: Path, text: str = STUDY) -> TunedStudy:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ranking.toml").write_text(text)
    plan = read_study(folder / "ranking.toml").plan
    assert isinstance(plan, TunedStudy)
    return plan


def made(cell: Cell, values: Any) -> AgentResult:
    """What a run of this cell could have given."""
    out = result(cell.agent, values, testbed=cell.testbed, rounds=cell.rounds, seeds=cell.seeds)
    settings, own = dict(cell.settings), dict(cell.testbed_settings)
    return dataclasses.replace(out, settings=settings, testbed_settings=own)


def fill(plan: TunedStudy, store: Path, best: int, agents: tuple[str, ...]) -> None:
    """Searches that this candidate wins, and the comparison that follows."""
    Store(store)
    searched = Store(store / SEARCH_FOLDER)
    for search in plan.searches:
        for place, cells in enumerate(search.candidates):
            for cell in cells:
                if cell.agent in agents:
                    regret = 1.0 if place == min(best, len(search.candidates) - 1) else 5.0
                    searched.put(cell, made(cell, np.full(len(cell.seeds), regret)))
    for cell in plan.parts(store)[-1].study.cells:
        if cell.agent in agents:
            Store(store).put(cell, made(cell, 10.0 + NOISE))


def test_a_search_is_collected_and_says_what_is_compared(tmp_path: Path) -> None:
    """From two stores, one agent each; a store without the search keeps what is known."""
    studies, folder = tmp_path / "studies", tmp_path / "results"
    plan = write(studies)
    one, two, none = (tmp_path / name for name in ("one", "two", "none"))
    fill(plan, one, 2, ("linucb",))
    fill(plan, two, 0, ("uniform",))
    Store(none)
    for stores in ([one], [two], [none]):
        collect(stores, studies, folder)
    rows = searching.read(folder)
    assert [(r["agent"], r["candidate"], r["best"]) for r in rows] == [
        ("linucb", 0, False),
        ("linucb", 1, False),
        ("linucb", 2, True),
        ("uniform", 0, True),
    ]
    by_store = [r for store in (one, two) for r in plan.rows(store)]
    assert rows == [{"study": "ranking", **row} for row in by_store], "it is read as written"
    kept = {k.result.agent: k for k in keeping.read(folder)}
    assert {name: k.studies for name, k in kept.items()} == {
        "linucb": ("ranking",),
        "uniform": ("ranking",),
    }
    won = plan.searches[0].candidates[2][0].settings
    assert dict(kept["linucb"].result.settings) == dict(won)
    assert max(max(k.result.seeds) for k in kept.values()) == 9, "no seed of the search"
    assert [(a.agent, a.seeds) for a in asking.read(folder)] == [("linucb", 10), ("uniform", 10)]


@pytest.mark.slow
def test_another_winner_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    studies, folder = tmp_path / "studies", tmp_path / "results"
    plan = write(studies)
    for name, best in (("one", 2), ("two", 1)):
        fill(plan, tmp_path / name, best, ("linucb", "uniform"))
        collect([tmp_path / name], studies, folder)
    (kept,) = (k for k in keeping.read(folder) if k.result.agent == "linucb")
    assert dict(kept.result.settings) == dict(plan.searches[0].candidates[1][0].settings)


@pytest.mark.slow
def test_a_search_that_is_not_asked_for_any_more_goes(tmp_path: Path) -> None:
    studies, folder = tmp_path / "studies", tmp_path / "results"
    fill(write(studies), tmp_path / "one", 1, ("linucb", "uniform"))
    collect([tmp_path / "one"], studies, folder)
    larger = write(studies, STUDY.replace("budget = 3", "budget = 4"))
    collect([tmp_path / "one"], studies, folder)
    assert {row["agent"] for row in searching.read(folder)} == {"uniform"}
    assert searching.unfinished(larger, searching.read(folder)) == 1
    (studies / "ranking.toml").unlink()
    collect([tmp_path / "one"], studies, folder)
    assert not (folder / searching.FILE).exists()


def test_what_is_missing_follows_from_the_search(tmp_path: Path) -> None:
    studies, folder = tmp_path / "studies", tmp_path / "results"
    plan = write(studies)
    fill(plan, tmp_path / "one", 1, ("linucb",))
    collect([tmp_path / "one"], studies, folder)
    write(studies, STUDY.replace("rounds = 8", "rounds = 8\nseeds = 12"))
    said: list[str] = []
    left = missing_study(studies, folder, Wanted(), said.append)
    assert left is not None
    assert [(c.agent, c.seeds) for c in left.cells] == [("linucb", (10, 11))]
    assert "1 of 2 searches of ranking are not in" in said[0]


def runs(regrets: dict[str, np.ndarray], testbed: str = "linear-20") -> list[AgentResult]:
    return [result(agent, values, testbed=testbed) for agent, values in regrets.items()]


#: Thirty seeds, in step with each other.
WAVES = 0.3 * np.sin(np.arange(30) * 2.1)


def test_places_are_means_and_differences_are_corrected() -> None:
    shifted = {
        "a": 100.0 + WAVES,
        "b": 100.05 - WAVES,
        "c": 103.0 + 4 * WAVES[::-1],
        "d": np.where(np.arange(30) == 3, np.nan, 90.0),
    }
    results = runs(shifted)
    found = places(results)
    assert [p.result.agent for p in found] == ["a", "b", "c", "d"]
    raw = [studentised(shifted[name] - shifted["a"]).p for name in "bc"]
    np.testing.assert_allclose([p.p for p in found[1:3]], holm(np.array([*raw, np.nan]))[:2])
    assert [p.may_be_best for p in found] == [True, True, False, False]
    assert found[0].beside is None
    assert found[3].beside is not None and "diverged on 1 of 30" in found[3].beside.why
    assert places(runs({"a": NOISE, "b": NOISE})) == [], "ten seeds are too few"


def row(agent: str, candidate: int, alpha: float, best: bool, regret: float) -> searching.Row:
    return {
        **{"study": "ranking", "testbed": "linear-20", "testbed_settings": {}, "agent": agent},
        **{"candidate": candidate, "best": best, "searched": {"alpha": alpha}},
        **{"settings": {"alpha": alpha}, "rounds": 2000, "first_seed": 1_000_000, "seeds": 10},
        **{"diverged": 0, "regret": regret, "low": regret - 1, "high": regret + 1},
        **{"difference": regret - 9, "difference_low": -3.5, "difference_high": -2.5},
    }


def test_the_page() -> None:
    rows = [
        row("linucb", 0, 1.0, False, 9.0),
        row("linucb", 1, 0.1, True, 6.0),
        row("linucb", 2, 10.0, False, 12.0),
        {**row("uniform", 0, 1.0, True, 50.0), "searched": {}},
    ]
    results = []
    for testbed in ("linear-20", "linear-40"):
        results += runs({"linucb": 5.0 + WAVES, "uniform": 60.0 - WAVES}, testbed)
    results += runs({"lints": 7.0 + WAVES})
    fixed = {key_of(r): Yardstick(*key_of(r), 60.0, 50.0, np.nan) for r in results}
    book = Book(Shelf([Kept(r, ("ranking",)) for r in results]), searched=rows, yardsticks=fixed)
    text = page(book, ranking.QUESTION)
    assert "- linear-20: 1 of 3 may be the best (30 seeds); lowest mean: `linucb`." in text
    middle = [f"{np.median(mean + WAVES):.2f}" for mean in (5.0, 7.0)]
    cell = f"**5.00 ({middle[0]})**"
    assert f"| `linucb` | 1.0 | {cell} | {cell} |" in text
    assert "| `uniform` | 2.0 | 60.0† (" in text, "a fixed arm is no worse"
    assert f"| `lints` | – | 7.00 ({middle[1]}) | – |" in text
    assert "16 settings" not in text
    assert "on every testbed: 3 settings" in text
    assert "(10 seeds from 1,000,000 on, 2,000 rounds)" in text
    assert "Of 2 choices 1 lie at an end" in text
    assert "figures/ranking.svg" in book.figures
    assert NOT_RUN in page(Book(Shelf([])), ranking.QUESTION)


def test_the_study_lists_agents_one_per_line() -> None:
    """So that one more is one line; all of them are on every testbed, with one budget."""
    text = (ROOT / "studies" / "ranking.toml").read_text()
    listed = re.search(r"^agents = \[\n((?:    \"[\w+-]+\",\n)+)\]$", text, re.MULTILINE)
    assert listed is not None
    plan = read_study(ROOT / "studies" / "ranking.toml").plan
    assert isinstance(plan, TunedStudy)
    agents = re.findall(r"\"(.+)\"", listed[1])
    pairs = [(s.comparison[0].testbed, s.comparison[0].agent) for s in plan.searches]
    testbeds = dict.fromkeys(testbed for testbed, _ in pairs)
    assert pairs == [(testbed, agent) for testbed in testbeds for agent in agents]
    assert {len(s.candidates) for s in plan.searches} <= {1, 16}
