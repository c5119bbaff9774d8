"""Parameters too many to be packed among the words of a state are still those that decide."""

import numpy as np
import pytest

from feelgood import Bandit
from feelgood.live.state_words import MOST_WORDS


@pytest.mark.slow
def test_an_ensemble_with_many_parameters_finds_the_arm_that_pays() -> None:
    arms, features, members = 60, 5, 64
    assert arms * features * members > MOST_WORDS
    bandit = Bandit("lints", arms=arms, features=features, members=members)
    contexts = np.ones((5 * arms, features), np.float32)
    played = [bandit.arms[k % arms] for k in range(len(contexts))]
    best = bandit.arms[7]
    bandit.learn(contexts, played, [10.0 * (arm == best) for arm in played])
    decision = bandit.act(contexts[0])
    assert decision.arm == best and decision.probability > 0.9
