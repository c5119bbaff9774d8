"""Two-dimensional targets with the bonus, caps that bind and caps that do not, sharp and smoothed.

Adjusted kernels of the grammar against numerical quadrature; unadjusted ones against the identities
that hold in their own stationary law.
"""

import itertools

import pytest
from proofs.grids import slow_but
from proofs.laws import bonus_agent, quadrature_checks, stationarity_checks, two_dimensional
from proofs.levels import require
from proofs.targets import WITH_BONUS, Problem, agent

ADJUSTED = [name for name in WITH_BONUS if agent(name).kernel.adjusted]
UNADJUSTED = [name for name in WITH_BONUS if not agent(name).kernel.adjusted]
TARGETS = ("disjoint", "shared"), ("squared", "bernoulli")


def problem_of(name: str, contexts: str, loss: str) -> tuple[Problem, str]:
    """The data, and a label for them and the agent."""
    shared, bernoulli = contexts == "shared", loss == "bernoulli"
    label = f"{name}, shared {shared}, bernoulli {bernoulli}"
    return two_dimensional(shared, bernoulli), label


# Every kernel is quick on two kinds of target. Of the two, one has a sharp and one a smoothed cap,
# and, where there is a preconditioner, one has it.
@pytest.mark.parametrize(
    ("name", "contexts", "loss"),
    slow_but(
        {
            ("fgmalats", "disjoint", "squared"),
            ("psfgmalats", "shared", "bernoulli"),
            ("pfghmcts", "disjoint", "squared"),
            ("sfghmcts", "shared", "bernoulli"),
        },
        itertools.product(ADJUSTED, *TARGETS),
    ),
)
def test_adjusted_kernels_sample_the_target(name: str, contexts: str, loss: str) -> None:
    data, label = problem_of(name, contexts, loss)
    require(quadrature_checks(bonus_agent(name, data), data, label))


@pytest.mark.parametrize(
    ("name", "contexts", "loss"),
    slow_but(
        {
            ("fglmcts", "disjoint", "squared"),
            ("psfglmcts", "shared", "bernoulli"),
            ("ufglmcts", "disjoint", "squared"),
            ("usfglmcts", "shared", "bernoulli"),
            ("svrgfglmcts", "disjoint", "squared"),
            ("svrgsfglmcts", "shared", "bernoulli"),
        },
        itertools.product(UNADJUSTED, *TARGETS),
    ),
)
def test_unadjusted_kernels_are_stationary(name: str, contexts: str, loss: str) -> None:
    """With a snapshot every step SVRG has no batch noise and is LMC."""
    data, label = problem_of(name, contexts, loss)
    policy = bonus_agent(name, data, snapshot=1, batch=1)
    require(stationarity_checks(policy, data, label))
