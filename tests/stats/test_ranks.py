"""Rankings under the null and in clear cases.

Statistical tests draw with fixed seeds; false-alarm rates, had they been drawn anew, are stated.
"""

import math

import numpy as np
import pytest

from feelgood.core.errors import FeelgoodError
from feelgood.stats.ranks import average_ranks, rank, rank_across


def false_winners(contenders: int, best: int, trials: int = 1_500, seeds: int = 10) -> float:
    """How often a winner is named when `best` contenders are equally good."""
    rng = np.random.default_rng(11)
    named = 0
    for _ in range(trials):
        luck = rng.normal(0.0, 5.0, seeds)
        values = {
            f"agent {i}": luck + rng.normal(0.0 if i < best else 50.0, 1.0, seeds)
            for i in range(contenders)
        }
        named += rank(values, level=0.05).winner is not None
    return named / trials


@pytest.mark.slow
@pytest.mark.parametrize(
    ("contenders", "best"), [(4, 4), pytest.param(4, 2, marks=pytest.mark.slow)]
)
def test_false_winners_are_as_rare_as_stated(contenders: int, best: int) -> None:
    """At most 0.05 plus four standard errors of a share of 1,500: false alarm below 1e-4."""
    assert false_winners(contenders, best) <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 1_500)


@pytest.mark.slow
def test_a_best_agent_stays_in_the_set_of_possible_bests() -> None:
    """It may leave with probability 0.025; four standard errors of a share of 800 above that are
    passed with probability below 1e-4. Without the correction it would leave in one of eight."""
    rng = np.random.default_rng(17)
    left = 0
    for _ in range(800):
        values = {str(i): rng.normal(0.0, 1.0, 10) for i in range(8)}
        (first,) = (s for s in rank(values).standings if s.name == "0")
        left += not first.may_be_best
    assert left / 800 <= 0.025 + 4 * math.sqrt(0.025 * 0.975 / 800)


def test_two_equal_agents_are_told_apart_at_the_level_and_not_below() -> None:
    """With two contenders the rule's error is the level itself."""
    assert abs(false_winners(2, 2) - 0.05) <= 4 * math.sqrt(0.05 * 0.95 / 1_500)


def test_a_clear_winner_is_named_and_a_close_race_is_not() -> None:
    rng = np.random.default_rng(5)
    luck = rng.normal(0.0, 10.0, 20)
    good, close = luck + rng.normal(0.0, 1.0, 20), luck + rng.normal(0.1, 1.0, 20)
    bad = luck + rng.normal(9.0, 1.0, 20)
    clear = rank({"bad": bad, "good": good})
    assert clear.winner == "good"
    assert [s.name for s in clear.standings] == ["good", "bad"]
    assert "good is the best" in clear.verdict
    open_race = rank({"bad": bad, "good": good, "close": close})
    assert open_race.winner is None
    assert {s.name for s in open_race.standings if s.may_be_best} == {"good", "close"}
    assert "no winner" in open_race.verdict


def test_an_agent_that_diverged_cannot_win() -> None:
    values = {"wild": np.array([0.0, 0.0, np.nan, 0.0]), "tame": np.array([5.0, 6.0, 7.0, 6.0])}
    ranking = rank(values)
    assert ranking.winner == "tame"
    assert [s.diverged for s in ranking.standings] == [0, 1]
    nobody = rank({name: np.full(3, np.nan) for name in "ab"})
    assert nobody.winner is None
    assert "none of them" in nobody.verdict


def test_ranks_share_ties() -> None:
    assert average_ranks(np.array([3.0, 1.0, 3.0, np.inf])).tolist() == [2.5, 1, 2.5, 4]


def test_ranking_across_testbeds_is_free_of_their_scales() -> None:
    rng = np.random.default_rng(9)
    small = {"a": rng.normal(1.0, 0.1, 20), "b": rng.normal(2.0, 0.1, 20)}
    large = {"a": rng.normal(2e4, 1e2, 20), "b": rng.normal(1e4, 1e2, 20)}
    assert rank_across({"small": small, "large": large}).winner is None
    assert rank_across({"small": small, "tiny": small}).winner == "a"


@pytest.mark.slow
def test_across_testbeds_a_winner_by_chance_is_as_rare_as_stated() -> None:
    """As above; ranks of four equal contenders on three testbeds."""
    rng = np.random.default_rng(13)
    named = 0
    for _ in range(400):
        testbeds = {t: {a: rng.exponential(1.0, 10) for a in "wxyz"} for t in "123"}
        named += rank_across(testbeds).winner is not None
    assert named / 400 <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "nothing to rank"),
        ({"a": np.zeros(3), "b": np.zeros(4)}, "3, 4 seeds"),
        ({"a": np.zeros(1)}, "too few"),
    ],
)
def test_rankings_refuse(values: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(FeelgoodError, match=message):
        rank(values)


def test_rankings_across_refuse_missing_contenders() -> None:
    zeros = np.zeros(3)
    with pytest.raises(FeelgoodError, match="different contenders"):
        rank_across({"t": {"a": zeros}, "u": {"b": zeros}})


def test_rounding_makes_no_winner() -> None:
    """The same run twice, rounded otherwise: always a little lower, and yet no better."""
    values = np.random.default_rng(0).uniform(50.0, 100.0, 30)
    ranking = rank({"a": values, "b": values * (1.0 - 1e-7)})
    assert ranking.winner is None
    assert [s.rank for s in ranking.standings] == [1.5, 1.5]
