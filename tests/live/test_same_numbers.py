"""A live bandit is the simulated agent: the same seed, contexts and rewards give the same arms."""

import grids
import numpy as np
import pytest
from playable import live_plays

import feelgood
from feelgood.api.agent_case import (
    CHECKED_ROUNDS,
    CHECKED_SEEDS,
    AgentCase,
)
from feelgood.core.policy import AGENTS
from feelgood.core.testbed import Testbed
from feelgood.engine.environment import environment
from feelgood.engine.simulation import simulate
from feelgood.testbeds import Linear, Logistic

QUICK = [
    ("lints", "disjoint"),
    ("squarecb", "disjoint"),
    ("lmcts", "disjoint"),
]


def live(agent: str, testbed: Testbed, seed: int, **more: object) -> feelgood.Bandit:
    spec = testbed.spec
    size = {"arm_features" if spec.shared else "features": spec.dim}
    return feelgood.Bandit(agent, spec.arms, **size, seed=seed, rewards=spec.rewards, **more)


def replay(bandit: feelgood.Bandit, contexts: np.ndarray, rewards: np.ndarray) -> list[int]:
    """The arms that are played when every reward comes at once."""
    arms = []
    for context, paid in zip(contexts, rewards, strict=True):
        decision = bandit.act(context.T)
        bandit.update(decision.id, float(paid[decision.arm]))
        arms.append(decision.arm)
    return arms


@pytest.mark.parametrize(
    ("agent", "problem"),
    grids.slow_but(
        QUICK,
        live_plays(),
    ),
)
def test_the_arms_are_those_of_the_simulated_agent(agent: str, problem: str) -> None:
    case = AgentCase(AGENTS[agent])
    seed = CHECKED_SEEDS[1]
    simulated = case.played(problem, CHECKED_SEEDS).arms[:, 1]
    block = case.block(problem, CHECKED_SEEDS)
    bandit = live(agent, case.problems[problem], seed)
    arms = replay(bandit, np.asarray(block.contexts)[..., 1], np.asarray(block.rewards)[..., 1])
    assert arms == simulated.tolist() and len(arms) == CHECKED_ROUNDS
    assert bandit.version == CHECKED_ROUNDS


@pytest.mark.parametrize(
    ("agent", "testbed"),
    [("lints", Linear(parameters=6, arms=3)), ("lmcts", Logistic(dim=3, arms=4))],
)
@pytest.mark.slow
def test_a_long_run_is_that_of_the_engine(agent: str, testbed: Testbed) -> None:
    """Over many rounds a tie in the last digit may fall the other way, and then all differs.

    There was none here. The logistic agent outgrows the first room of its history.
    """
    rounds, seed = 700, 3
    outcome = simulate(testbed, AGENTS[agent].build(), rounds=rounds, seeds=[seed])
    block = environment(testbed, (seed,), rounds)
    bandit = live(agent, testbed, seed)
    arms = replay(bandit, np.asarray(block.contexts)[..., 0], np.asarray(block.rewards)[..., 0])
    assert (
        np.bincount(arms, minlength=testbed.spec.arms).tolist() == outcome.arm_counts[0, 0].tolist()
    )
