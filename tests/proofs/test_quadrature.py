"""Two-dimensional targets with the bonus, caps that bind and caps that do not, sharp and smoothed.

Adjusted kernels of the grammar against numerical quadrature; unadjusted ones against the identities
that hold in their own stationary law.
"""

import itertools

import pytest
from grids import covering
from proofs.laws import bonus_agent, quadrature_checks, stationarity_checks, two_dimensional
from proofs.levels import require
from proofs.targets import WITH_BONUS, Problem, kinds_of, parts_of

ADJUSTED = [name for name in WITH_BONUS if ("adjusted", True) in kinds_of(name)]
UNADJUSTED = [name for name in WITH_BONUS if ("adjusted", False) in kinds_of(name)]
TARGETS = ("disjoint", "shared"), ("squared", "bernoulli")


def features(name: str, contexts: str, loss: str) -> set[object]:
    """Quick are all kernels, and with some of them each cap, preconditioner, context and loss."""
    return {*parts_of(name), contexts, loss}


def problem_of(name: str, contexts: str, loss: str) -> tuple[Problem, str]:
    """The data, and a label for them and the agent."""
    shared, bernoulli = contexts == "shared", loss == "bernoulli"
    label = f"{name}, shared {shared}, bernoulli {bernoulli}"
    return two_dimensional(shared, bernoulli), label


@pytest.mark.parametrize(
    ("name", "contexts", "loss"), covering(itertools.product(ADJUSTED, *TARGETS), features)
)
def test_adjusted_kernels_sample_the_target(name: str, contexts: str, loss: str) -> None:
    data, label = problem_of(name, contexts, loss)
    require(quadrature_checks(bonus_agent(name, data), data, label))


@pytest.mark.parametrize(
    ("name", "contexts", "loss"), covering(itertools.product(UNADJUSTED, *TARGETS), features)
)
def test_unadjusted_kernels_are_stationary(name: str, contexts: str, loss: str) -> None:
    """With a snapshot every step SVRG has no batch noise and is LMC."""
    data, label = problem_of(name, contexts, loss)
    policy = bonus_agent(name, data, snapshot=1, batch=1)
    require(stationarity_checks(policy, data, label))
