"""What a search tries: the agent as it is, then points spread evenly; and on which seeds."""

import math

import numpy as np
import pytest
from scipy.stats import qmc

from feelgood.core.arguments import MAX_SEEDS
from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import AGENTS
from feelgood.studies.candidates import (
    HELD_OUT,
    MAX_HELD_OUT_SEEDS,
    comparison_seeds,
    held_out_seeds,
    make_candidates,
    radical_inverse,
    searched_settings,
)

#: Whatever is registered, with at least one setting to be searched.
AGENTS_TO_TUNE = [n for n in AGENTS if any(r.tune for r in AGENTS[n].settings.values())]


def test_points_are_haltons() -> None:
    """SciPy's own sequence, in the first five dimensions."""
    theirs = qmc.Halton(5, scramble=False).random(300)
    ours = [[radical_inverse(i, p) for p in (2, 3, 5, 7, 11)] for i in range(300)]
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", AGENTS_TO_TUNE)
def test_every_agent_is_searched_where_its_parts_say(name: str) -> None:
    """Its defaults first, all values in range, and each candidate can be built."""
    entry = AGENTS[name]
    start = entry.resolve()
    ranges = searched_settings(name, start)
    candidates = make_candidates(name, start, 8)
    assert candidates[0] == start
    assert len(candidates) == len({str(c) for c in candidates}) == 8
    for setting, (low, high) in ranges.items():
        assert low <= start[setting] <= high, "a default outside the range is not where to search"
        assert all(low <= c[setting] <= high for c in candidates)
    others = start.keys() - ranges.keys()
    assert ranges and all(c[k] == start[k] for c in candidates for k in others)
    for candidate in candidates[:3]:
        assert entry.resolve(candidate) == candidate
        entry.build(candidate)


def test_values_are_even_in_the_logarithm() -> None:
    """The first 2^k − 1 points cut the range of one setting into 2^k equal parts."""
    values = sorted(c["alpha"] for c in make_candidates("linucb", {"alpha": 3.0}, 16)[1:])
    low, high = AGENTS["linucb"].settings["alpha"].tune or (0.0, 0.0)
    parts = np.diff(np.log([low, *values, high])) / (math.log(high / low) / 16)
    np.testing.assert_allclose(parts, 1.0, atol=0.03)  # three digits


def test_a_larger_budget_begins_with_a_smaller_one() -> None:
    start = AGENTS["fglmcts"].resolve()
    assert make_candidates("fglmcts", start, 30)[:7] == make_candidates("fglmcts", start, 7)


def test_what_is_given_or_switched_off_is_not_searched() -> None:
    start = AGENTS["fglmcts"].resolve()
    every = set(searched_settings("fglmcts", start))
    assert "lam" in every
    assert set(searched_settings("fglmcts", start, ["lam"])) == every - {"lam"}
    assert set(searched_settings("fglmcts", {**start, "lam": 0.0})) == every - {"lam"}
    assert make_candidates("uniform", {}, 5) == [{}]


def test_a_point_that_is_the_default_is_not_tried_twice() -> None:
    """The middle of a range is the first point of the sequence."""
    low, high = AGENTS["linucb"].settings["alpha"].tune or (0.0, 0.0)
    middle = float(f"{math.sqrt(low * high):.3g}")
    values = [c["alpha"] for c in make_candidates("linucb", {"alpha": middle}, 6)]
    assert len(set(values)) == 6 and values[0] == middle


def test_seeds_of_searches_and_of_comparisons_are_disjoint() -> None:
    """Whatever either of the two accepts."""
    held_out = held_out_seeds(MAX_HELD_OUT_SEEDS)
    assert HELD_OUT == 1_000_000, "as the documentation says"
    assert min(held_out) == HELD_OUT and len(set(held_out)) == MAX_HELD_OUT_SEEDS
    assert max(comparison_seeds(MAX_SEEDS)) < HELD_OUT
    assert max(comparison_seeds([HELD_OUT - 1])) < HELD_OUT
    for seeds in (f"{HELD_OUT - 1}:{HELD_OUT + 1}", [0, HELD_OUT]):
        with pytest.raises(FeelgoodError, match=r"seed 1000000 is held out for tuning: compare on"):
            comparison_seeds(seeds)


@pytest.mark.parametrize("wrong", [0, -1, 1001, 2.5, "8", True, None])
def test_bad_numbers_get_one_sentence(wrong: object) -> None:
    with pytest.raises(FeelgoodError, match=r"budget = .* use a whole number at least 1"):
        make_candidates("uniform", {}, wrong)
    with pytest.raises(FeelgoodError, match=r"seeds of the search = .* at most 1,000"):
        held_out_seeds(wrong)
