"""The page of the worlds: what it reads from runs, and sentences that follow from the numbers."""

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
from made_results import result

from feelgood.engine.results import AgentResult
from showdown import world_runs, world_samplers, worlds
from showdown.book import Book
from showdown.keeping import Kept
from showdown.shelf import Shelf
from showdown.world_runs import beaten_by, largest_regrets, on_frontier, points_of

NOISE = np.linspace(-0.5, 0.5, 20)


def run(agent: str, mean: float, testbed: str = "trap-0.25", **more: Any) -> AgentResult:
    """Twenty seeds around a mean; settings of the testbed are `world`, `gap`, `loss`, `prior`."""
    told = {"noise": 1.0} | {
        name: more.pop(name) for name in ("world", "gap", "loss", "prior") if name in more
    }
    own = {"temperature": 1.0, "clip": 0.0} | more
    made = result(agent, mean + NOISE, testbed=testbed)
    return dataclasses.replace(made, settings=own, testbed_settings=told)


def both(agent: str, bad: float, mirror: float, **more: Any) -> list[AgentResult]:
    """In the bad world and in its mirror."""
    return [run(agent, bad, world="bad", **more), run(agent, mirror, world="mirror", **more)]


def bonus(bad: float, mirror: float, lam: float, schedule: str = "sqrt") -> list[AgentResult]:
    return both("exact-fgts", bad, mirror, lam=lam, lam_schedule=schedule)


FRONTIER = [
    *both("exact-ts", 100.0, 4.0),
    *both("exact-ts", 30.0, 20.0, temperature=4.0),
    *bonus(10.0, 30.0, 1.0),
    *bonus(40.0, 31.0, 0.1, "constant"),
]


def test_the_prior_of_a_trap_is_averaged_without_a_draw() -> None:
    plain = points_of(FRONTIER)[0]
    assert (plain.kind, plain.name) == ("plain", "plain")
    assert plain.bayes_mean == pytest.approx(0.25 * 100.0 + 0.75 * 4.0)


def test_worlds_that_are_drawn_give_their_own_average() -> None:
    drawn = [dataclasses.replace(r, testbed="superarm-40") for r in FRONTIER[:2]]
    assert points_of(drawn) == []
    prior = dataclasses.replace(run("exact-ts", 7.0, world="prior"), testbed="superarm-40")
    assert points_of([*drawn, prior])[0].bayes_mean == pytest.approx(7.0)


def test_the_frontier_and_who_is_beaten() -> None:
    """Averages are 28, 22.5, 25 and 33.25: the constant weight and plain Thompson sampling lose."""
    points = points_of(FRONTIER)
    assert [p.name for p in points] == ["plain", "temperature 4", "0.1", "1/√s"]
    assert [p.name for p in on_frontier(points)] == ["temperature 4", "1/√s"]
    constant = points[2]
    assert [p.name for p in beaten_by(constant, points)] == ["temperature 4", "1/√s"]
    assert largest_regrets(points)[0] == ("temperature 4", pytest.approx(30.0))


def test_differences_within_the_intervals_beat_nobody() -> None:
    rng = np.random.default_rng(0)
    a, b = points_of([*both("exact-ts", 10.0, 10.0), *bonus(10.0, 10.0, 1.0)])
    near = dataclasses.replace(b, bad=a.bad - 0.05 + rng.normal(size=20), bayes=a.bayes - 1.0)
    assert beaten_by(a, [near]) == []


def test_the_price_of_a_run() -> None:
    made = run("exact-fgts", 8.0, lam=0.1, lam_schedule="constant", gap=0.2, loss=0.8)
    assert world_runs.price(made) == pytest.approx(2 * 0.1 * 0.2 * 0.8)
    # The curve is straight: a quarter of the regret per round, from any round on.
    np.testing.assert_allclose(world_runs.late_rates(made, 2), made.final_regret / 4)


def test_a_power_law_has_its_power() -> None:
    x = np.array([0.0, 1.0, 2.0, 4.0])
    fit = world_runs.slope(x, [np.exp(0.3 * at) * (1.0 + 0.1 * NOISE) for at in x])
    assert fit.low < 0.3 < fit.high
    assert fit.high - fit.low < 0.05


def test_from_where_a_run_is_ahead() -> None:
    early, late = run("exact-fgts", 8.0), run("exact-ts", 8.0)
    crossed = dataclasses.replace(late, curve=early.curve + np.array([-1.0, 1.0, 2.0]))
    assert world_runs.ahead_from(early, crossed) == 2
    assert world_runs.ahead_from(crossed, early) is None


def test_shares_of_the_worse_arm() -> None:
    """A regret of 1 after 4 rounds with a gap of ½: half of the plays."""
    made = dataclasses.replace(run("exact-ts", 1.0), final_regret=np.ones(20))
    made = dataclasses.replace(made, curve=np.outer(np.ones(20), made.curve_rounds / 4))
    rounds, shares = world_runs.shares(made)
    assert rounds[-1] == 4
    np.testing.assert_allclose(shares, 0.5)


def even(agent: str, regret: float, world: str = "bad") -> AgentResult:
    """Twenty seeds with a straight curve on a linear trap of 16 coordinates."""
    made = result(agent, np.full(20, float(regret)), testbed="linear-trap-16")
    own = {"temperature": 1.0} | ({} if agent == "exact-ts" else worlds.FALLING)
    return dataclasses.replace(made, settings=own, testbed_settings={"world": world, "noise": 1.0})


def test_the_mirror_of_a_linear_trap_has_its_own_gap() -> None:
    """−√d/2 beside √d/2 − ½."""
    assert world_runs.arm_gap(even("exact-ts", 1.0)) == 0.5
    assert world_runs.arm_gap(even("exact-ts", 1.0, "mirror")) == 3.5
    assert world_runs.stuck(even("exact-ts", 7.5, "mirror")) == 20
    assert world_runs.stuck(even("exact-ts", 6.5, "mirror")) == 0


def test_where_the_schedule_was_run_elsewhere_it_is_said() -> None:
    def other(agent: str, testbed: str, mean: float, **own: Any) -> AgentResult:
        return dataclasses.replace(run(agent, mean, testbed, **own), testbed_settings={})

    falls = other("neural-fglmcts", "adult", 30.0, b=10.0, **worlds.FALLING)
    runs = [falls, other("neural-lmcts", "adult", 20.0)]
    text = worlds.page(Book(Shelf([Kept(r, ("question-stuck",)) for r in runs])))
    assert "On adult it adds +10.0 [+10.0, +10.0] to a regret of 20.0 (`neural-fglmcts`" in text
    assert "**Not run**: this schedule in logistic bandits." in text
    none = other("fglmcts", "logistic-20", 20.0, lam=0.0, lam_schedule="constant")
    runs += [none, other("fglmcts", "logistic-20", 21.0, **worlds.FALLING)]
    text = worlds.page(Book(Shelf([Kept(r, ("question-stuck",)) for r in runs])))
    assert "On logistic-20 it adds +1.00" in text and "**Not run**" not in text
    few = [dataclasses.replace(r, seeds=tuple(range(i, i + 20))) for i, r in enumerate(runs[:2])]
    text = worlds.page(Book(Shelf([Kept(r, ("question-stuck",)) for r in few])))
    assert "On adult" not in text


def test_without_runs_nothing_is_claimed() -> None:
    book = Book(Shelf([]))
    text = worlds.page(book)
    assert text.count(worlds.NOT_RUN) == 6
    assert world_samplers.NOT_RUN in world_samplers.page(book)
    assert book.figures == {}
    assert not re.search(r"\d %.*interval.*\[", text)
