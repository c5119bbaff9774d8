"""The probabilities of a round, by the agent's own rule, by its law of scores, or none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rounds import drawn
from taught import DISJOINT, SHARED, contexts, taught

from feelgood import AGENTS
from feelgood.engine.propensities import propensity
from feelgood.stats.choice_probabilities import ChoiceProbabilities


def found(name: str, mask: object = None, **settings: float) -> ChoiceProbabilities | None:
    told = taught(name, SHARED, rounds=8, **settings)
    context = jnp.asarray(contexts(told.spec, 1)[0])
    after = drawn(told.policy, told.spec, jax.random.key(3), told.state)
    return propensity(told.policy, told.spec, told.state, after, context, mask)


def test_rules_laws_and_agents_without_either() -> None:
    rule = found("epsgreedy", epsilon=0.4)
    np.testing.assert_allclose(sorted(rule.pmf), [0.1, 0.1, 0.1, 0.7], atol=1e-6)
    assert not rule.error.any()
    law = found("lints")
    assert law.pmf.shape == (4,) and law.pmf.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all(law.error > 0.0) and np.max(law.error) < 1e-4
    chain = AGENTS["lmcts"].build()
    assert propensity(chain, SHARED, None, None, jnp.zeros(SHARED.context_shape)) is None


def test_masks() -> None:
    """A law of scores leaves arms out; a rule's formula is about all arms."""
    some = np.array([True, False, True, True])
    law = found("lints", mask=some)
    assert law.pmf[1] == 0.0 and law.pmf.sum() == pytest.approx(1.0, abs=1e-12)
    assert found("epsgreedy", mask=some) is None
    assert found("epsgreedy", mask=np.ones(4, bool)) is not None


def test_a_drawn_parameter_is_not_looked_at() -> None:
    """The probabilities are those before the draw, though they are asked for after it."""
    told = taught("lints", DISJOINT, rounds=8)
    context = jnp.asarray(contexts(told.spec, 1)[0])
    pmfs = []
    for seed in range(3):
        after = drawn(told.policy, told.spec, jax.random.key(seed), told.state)
        pmfs.append(propensity(told.policy, told.spec, told.state, after, context).pmf)
    np.testing.assert_array_equal(pmfs[0], pmfs[1])
    np.testing.assert_array_equal(pmfs[0], pmfs[2])
