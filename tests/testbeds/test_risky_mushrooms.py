"""Mushrooms as a gamble. All seeds are fixed; the level of the statistical test is 1e-6."""

import numpy as np
from real_data import built, check_testbed
from scipy import stats

from feelgood.engine.environment import environment

LEVEL = 1e-6


def test_the_testbed() -> None:
    check_testbed("mushroom-risky", arms=2, paper=22, standard=117, rounds=10_000)


def test_risky_mushrooms_pay_as_the_text_says() -> None:
    testbed = built("mushroom-risky")
    _, rewards, means = environment(testbed, range(5), 8_124)
    eat, leave = np.moveaxis(np.asarray(means), 1, 0)
    np.testing.assert_array_equal(leave, 0)
    edible = eat == 5
    np.testing.assert_array_equal(edible.sum(axis=0), 4208)
    np.testing.assert_array_equal(eat[~edible], -15)
    got, left = np.moveaxis(np.asarray(rewards), 1, 0)
    np.testing.assert_array_equal(left, 0)
    np.testing.assert_array_equal(got[edible], 5)
    poisoned = got[~edible]
    assert set(np.unique(poisoned)) == {5, -35}
    count = poisoned.size
    assert stats.binomtest(int((poisoned == 5).sum()), count, 0.5).pvalue > LEVEL
