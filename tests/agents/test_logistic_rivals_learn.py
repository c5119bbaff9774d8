"""Without any setting, agents that know a logistic posterior otherwise than by a kernel learn."""

import functools

import pytest

import feelgood
from feelgood import AgentResult

RIVALS = ("laplace-ts", "pg-ts", "vits")


@functools.cache
def run(testbed: str, agent: str) -> AgentResult:
    """All rounds of a testbed, 16 seeds."""
    return feelgood.run(testbed, [agent], seeds=16)[0]


@pytest.mark.slow
@pytest.mark.parametrize("agent", RIVALS)
def test_on_linear_rewards(agent: str) -> None:
    """LinTS has about 70, and a uniform agent about 18,000."""
    assert run("linear-20", agent).regret.mean < 200


@pytest.mark.slow
@pytest.mark.parametrize("agent", RIVALS)
def test_on_logistic_rewards(agent: str) -> None:
    """Below LinTS, whose model is linear: about 550, with a standard deviation of 200."""
    assert run("logistic-20", agent).regret.mean < run("logistic-20", "lints").regret.mean
