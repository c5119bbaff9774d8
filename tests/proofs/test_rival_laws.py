"""Draws around an estimate have the laws that their agents say."""

import pytest
from proofs.levels import require
from proofs.rival_laws import ensemble_checks, member_checks, slope_checks, wide_checks


@pytest.mark.parametrize(("problem", "dim"), [("disjoint", 2), ("shared", 3)])
def test_inflated_draws_are_as_much_wider_as_they_say(problem: str, dim: int) -> None:
    """By √d of the contexts' dimension; by a factor that is told, and times the temperature."""
    require(wide_checks("lints-inflated", problem, variance=dim))
    require(wide_checks("lints-inflated", problem, variance=9 / 4, inflation=3.0, temperature=0.25))


@pytest.mark.parametrize("problem", ["disjoint", "shared"])
def test_without_inflation_and_with_normal_rewards_it_is_linear_thompson_sampling(
    problem: str,
) -> None:
    require(wide_checks("lints-inflated", problem, inflation=1.0))
    require(wide_checks("evill", problem))
    require(wide_checks("lints", problem))


@pytest.mark.parametrize(
    ("problem", "rounds"),
    [
        ("shared, Bernoulli", 40),
        pytest.param("disjoint, Bernoulli", 40, marks=pytest.mark.slow),
        pytest.param("shared, Bernoulli", 0, marks=pytest.mark.slow),
    ],
)
def test_the_slope_of_the_loss_at_the_draws_of_evill_is_normal(problem: str, rounds: int) -> None:
    """∇L(θ) ~ N(0, τH), without data too; L is that of NumPy."""
    require(slope_checks(problem, rounds, temperature=0.5))


@pytest.mark.parametrize("problem", ["disjoint", "shared"])
def test_an_ensemble_has_the_posterior_as_its_law(problem: str) -> None:
    """Over all its random numbers, for a fixed design: any one draw; few members suffice."""
    require(member_checks(problem, members=3))


@pytest.mark.slow
def test_a_large_ensemble_is_thompson_sampling() -> None:
    require(ensemble_checks(members=512))
