"""The law of the exact agents is that of its definition, for every kind of class and of bonus."""

import itertools

import pytest
from grids import slow_but
from proofs.exact_laws import (
    BONUSES,
    NORMAL_BONUSES,
    clip_checks,
    copy_checks,
    extreme_checks,
    finite_checks,
    many_checks,
    pair_checks,
)
from proofs.levels import require

#: Numbers of arms and of rounds.
CASES = ((2, 30), (3, 0), (3, 20), (3, 400), (6, 60))


@pytest.mark.parametrize("kind", slow_but(["falling", "smoothed"], BONUSES))
def test_a_finite_class_is_enumerated(kind: str) -> None:
    require(finite_checks(kind))


@pytest.mark.parametrize("kind", slow_but(["constant", "capped"], NORMAL_BONUSES))
def test_two_arms_of_a_linear_model(kind: str) -> None:
    """On a grid of values, by the definition."""
    require(pair_checks(kind))


@pytest.mark.parametrize(
    ("kind", "case"),
    slow_but([("none", CASES[3]), ("capped", CASES[4])], itertools.product(NORMAL_BONUSES, CASES)),
)
def test_independent_arms(kind: str, case: tuple[int, int]) -> None:
    require(many_checks(kind, [case]))


@pytest.mark.parametrize("kind", slow_but(["falling"], NORMAL_BONUSES))
def test_copies_are_apart(kind: str) -> None:
    require(copy_checks(kind))


def test_rare_arms_are_left_out() -> None:
    require(clip_checks("constant"))


@pytest.mark.parametrize("arms", [2, 4])
def test_weights_and_deviations_of_all_sizes(arms: int) -> None:
    require(extreme_checks(arms))
