"""Two-dimensional targets with the bonus, caps that bind and caps that do not, sharp and smoothed.

Adjusted kernels of the grammar against numerical quadrature; unadjusted ones against the identities
that hold in their own stationary law.
"""

import pytest
from proofs.laws import bonus_agent, quadrature_checks, stationarity_checks, two_dimensional
from proofs.levels import require
from proofs.targets import WITH_BONUS, agent

ADJUSTED = [name for name in WITH_BONUS if agent(name).kernel.adjusted]
UNADJUSTED = [name for name in WITH_BONUS if not agent(name).kernel.adjusted]
#: Parameters by arm or shared, squared or Bernoulli loss. The usual pairs of the two are quick
#: tests, the unusual ones slow tests.
TARGETS = [
    pytest.param(False, False, id="disjoint-squared"),
    pytest.param(True, True, id="shared-bernoulli"),
    pytest.param(True, False, id="shared-squared", marks=pytest.mark.slow),
    pytest.param(False, True, id="disjoint-bernoulli", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("shared", "bernoulli"), TARGETS)
@pytest.mark.parametrize("name", ADJUSTED)
def test_adjusted_kernels_sample_the_target(name: str, shared: bool, bernoulli: bool) -> None:
    data = two_dimensional(shared, bernoulli)
    label = f"{name}, shared {shared}, bernoulli {bernoulli}"
    require(quadrature_checks(bonus_agent(name, data), data, label))


@pytest.mark.parametrize(("shared", "bernoulli"), TARGETS)
@pytest.mark.parametrize("name", UNADJUSTED)
def test_unadjusted_kernels_are_stationary(name: str, shared: bool, bernoulli: bool) -> None:
    """With a snapshot every step SVRG has no batch noise and is LMC."""
    data = two_dimensional(shared, bernoulli)
    label = f"{name}, shared {shared}, bernoulli {bernoulli}"
    policy = bonus_agent(name, data, snapshot=1, batch=1)
    require(stationarity_checks(policy, data, label))
