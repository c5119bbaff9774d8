"""Without any setting the rivals of Thompson sampling learn, at about its cost."""

import functools

import pytest

import feelgood
from feelgood import AgentResult

RIVALS = ("greedy", "squarecb", "oful", "lints-inflated", "ensemble++", "evill")
#: Draws √d times as wide as the posterior cost regret where d is 20. `ensemble++` takes rewards of
#: 0 and 1 as normal, as LinTS does.
ON_LOGISTIC = ("greedy", "squarecb", "oful", "evill")


@functools.cache
def run(testbed: str, agent: str) -> AgentResult:
    return feelgood.run(testbed, [agent], rounds=10_000, seeds=8)[0]


@pytest.mark.slow
@pytest.mark.parametrize("agent", RIVALS)
def test_on_linear_rewards(agent: str) -> None:
    """LinTS has about 70, and a uniform agent about 18,000."""
    assert run("linear-20", agent).regret.mean < 200


@pytest.mark.slow
@pytest.mark.parametrize("agent", ON_LOGISTIC)
def test_on_logistic_rewards(agent: str) -> None:
    """Below LinTS, whose model is linear, and which has about 480."""
    assert run("logistic-20", agent).regret.mean < run("logistic-20", "lints").regret.mean
