"""Noise, regression and widths of agents with a network, and what several networks see and play.

Quick mutants (`test_mutants.py`) make one comparison of each kind before they break anything.
"""

import pytest
from proofs.levels import require
from proofs.network_models import (
    bootstrap_checks,
    ensemble_checks,
    noise_checks,
    playing_checks,
    regression_checks,
    width_checks,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("batch", ["0", "6"])
def test_the_noise_is_that_of_a_regression_on_the_last_layer(batch: str) -> None:
    require(noise_checks(batch))


@pytest.mark.parametrize("temperature", ["1", "2"])
def test_neural_linear_draws_a_student_t(temperature: str) -> None:
    require(regression_checks(temperature))


@pytest.mark.parametrize("likelihood", ["squared", "bernoulli"])
def test_the_widths_of_neural_ts(likelihood: str) -> None:
    require(width_checks(likelihood))


def test_members_of_an_ensemble_fit_what_their_priors_leave() -> None:
    require(ensemble_checks("2"))


@pytest.mark.parametrize("resampling", ["double-or-nothing", "poisson"])
def test_how_often_a_reward_counts(resampling: str) -> None:
    require(bootstrap_checks(resampling))


@pytest.mark.parametrize("name", ["neural-ensemble", "neural-bootstrap"])
def test_the_probabilities_are_shares_of_members(name: str) -> None:
    require(playing_checks(name))
