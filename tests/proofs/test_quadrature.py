"""Two-dimensional targets with the bonus, caps that bind and caps that do not, sharp and smoothed.

Adjusted kernels of the grammar against numerical quadrature; unadjusted ones against the identities
that hold in their own stationary law.
"""

from collections.abc import Callable
from typing import Any

import pytest
from proofs.laws import bonus_agent, quadrature_checks, stationarity_checks, two_dimensional
from proofs.levels import require
from proofs.targets import WITH_BONUS, agent

ADJUSTED = [name for name in WITH_BONUS if agent(name).kernel.adjusted]
UNADJUSTED = [name for name in WITH_BONUS if not agent(name).kernel.adjusted]
USUAL = {(False, False): "disjoint-squared", (True, True): "shared-bernoulli"}
UNUSUAL = {(True, False): "shared-squared", (False, True): "disjoint-bernoulli"}


def cases(names: list[str], quick: Callable[[str, bool], bool]) -> list[Any]:
    """Every agent on every kind of target; not all of them are quick tests."""
    return [
        pytest.param(
            name,
            *target,
            id=f"{name}-{text}",
            marks=() if target in USUAL and quick(name, target[0]) else pytest.mark.slow,
        )
        for name in names
        for target, text in (USUAL | UNUSUAL).items()
    ]


@pytest.mark.parametrize(
    ("name", "shared", "bernoulli"), cases(ADJUSTED, lambda name, shared: True)
)
def test_adjusted_kernels_sample_the_target(name: str, shared: bool, bernoulli: bool) -> None:
    data = two_dimensional(shared, bernoulli)
    label = f"{name}, shared {shared}, bernoulli {bernoulli}"
    require(quadrature_checks(bonus_agent(name, data), data, label))


@pytest.mark.parametrize(
    ("name", "shared", "bernoulli"),
    cases(UNADJUSTED, lambda name, shared: shared == ("sfg" in name)),
)
def test_unadjusted_kernels_are_stationary(name: str, shared: bool, bernoulli: bool) -> None:
    """With a snapshot every step SVRG has no batch noise and is LMC."""
    data = two_dimensional(shared, bernoulli)
    label = f"{name}, shared {shared}, bernoulli {bernoulli}"
    policy = bonus_agent(name, data, snapshot=1, batch=1)
    require(stationarity_checks(policy, data, label))
