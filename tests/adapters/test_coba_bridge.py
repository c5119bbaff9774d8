"""Our agents in the real coba, and its environments as our testbeds."""

from typing import Any

import numpy as np
import pytest

import feelgood
from feelgood import FeelgoodError

coba = pytest.importorskip("coba", reason="coba is not installed")

from feelgood.adapters.coba_bridge import (  # noqa: E402
    CobaLearner,
    coba_testbed,
    plain_numbers,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # of coba itself


def experiment(learners: list[Any], features: int, rounds: int = 400) -> dict[str, float]:
    """Mean reward of each learner on a linear problem of coba."""
    worlds = coba.Environments.from_linear_synthetic(
        rounds, n_actions=4, n_context_features=3, n_action_features=features, seed=3
    )
    result = coba.Experiment(worlds, learners).run(quiet=True)
    names = dict(zip(result.learners["learner_id"], result.learners["family"], strict=True))
    rewards: dict[str, list[float]] = {name: [] for name in names.values()}
    for learner, reward in zip(
        result.interactions["learner_id"], result.interactions["reward"], strict=True
    ):
        rewards[names[learner]].append(float(reward))
    assert all(len(own) == rounds for own in rewards.values())
    return {name: float(np.mean(own)) for name, own in rewards.items()}


@pytest.mark.parametrize("features", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_an_agent_learns_in_an_experiment_of_coba(features: int) -> None:
    """Beside coba's own player at random, on 400 rounds with rewards in 0 … 1."""
    got = experiment([CobaLearner("linucb"), coba.RandomLearner()], features)
    assert got["feelgood-linucb"] > got["Random"] + 0.05


@pytest.mark.slow
def test_predictions_have_probabilities_and_learn_by_their_ids() -> None:
    learner = CobaLearner("epsgreedy", settings={"epsilon": 0.2})
    answer = learner.predict((0.5, 1.0), ["a", "b", "c"])
    action, probability = answer["action_prob"]
    assert action in ("a", "b", "c")
    assert 0.0 < probability <= 1.0
    learner.learn((0.5, 1.0), action, 1.0, probability)
    assert learner._bandit is not None
    assert learner._bandit.version == 1
    learner.learn((0.5, 1.0), "b", 0.0, 0.5)  # of a log
    assert learner._bandit.version == 2


@pytest.mark.slow
def test_actions_come_and_go_and_may_have_features() -> None:
    learner = CobaLearner("lints")
    learner.predict(None, [(1, 0), (0, 1)])
    answer = learner.predict(None, [(0, 1)])
    assert tuple(answer.get("action", answer.get("action_prob", [None])[0])) == (0, 1)
    learner.predict(None, [(0, 1), (1, 1)])
    own = CobaLearner("lints", by_features=True)
    own.predict(None, [(0.1, 0.9), (0.7, 0.2), (0.3, 0.3)])
    own.learn(None, (0.1, 0.9), 1.0, None)
    with pytest.raises(FeelgoodError, match="a log cannot be learned by_features"):
        own.learn(None, (0.1, 0.9), 1.0, None)


def test_an_environment_is_a_testbed() -> None:
    worlds = coba.Environments.from_linear_synthetic(300, 3, n_action_features=0, seed=1)
    world = worlds[0]
    testbed = coba_testbed(world, name="synthetic")
    assert (testbed.spec.arms, testbed.rounds) == (3, 300)
    paid = sorted(round(float(v), 5) for v in np.asarray(testbed.payoffs).reshape(-1))
    theirs = []
    for interaction in world.read():
        reward = interaction["rewards"]
        theirs += [reward(a) for a in interaction["actions"]] if callable(reward) else list(reward)
    np.testing.assert_allclose(paid, sorted(theirs), atol=1e-4)
    result = feelgood.run(testbed, ["linucb", "uniform"], rounds=300, seeds=3)
    assert result["linucb"].regret.mean < result["uniform"].regret.mean


def test_what_cannot_be_a_testbed_gets_one_sentence() -> None:
    class World:
        def __init__(self, *rows: dict[str, Any]) -> None:
            self.rows = rows

        def read(self) -> Any:
            return iter(self.rows)

    good = {"context": (1.0,), "actions": ["a", "b"], "rewards": [0, 1]}
    with pytest.raises(FeelgoodError, match="no interactions"):
        coba_testbed(World())
    with pytest.raises(FeelgoodError, match="interaction 2 has 1 actions"):
        coba_testbed(World(good, {**good, "rewards": [1]}))
    with pytest.raises(FeelgoodError, match="not a log"):
        coba_testbed(World({"context": 1, "action": "a", "reward": 1}))
    with pytest.raises(FeelgoodError, match="features that change"):
        coba_testbed(coba.Environments.from_linear_synthetic(9, 3, seed=1)[0])
    with pytest.raises(FeelgoodError, match="is no sequence of numbers"):
        plain_numbers({"a": 1}, "context")
