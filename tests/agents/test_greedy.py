"""The greedy agent against NumPy, and the exact law by which it locks in."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats
from taught import EVERY_SPEC, SPECS, contexts, features, posterior, taught

from feelgood import AGENTS, Spec
from feelgood.core.spec import Layout

LEVEL = 1e-6


@EVERY_SPEC
def test_the_best_arm_of_the_estimate_is_certain(name: str) -> None:
    spec = SPECS[name]
    seen = taught("greedy", spec, noise=0.5, prior=2.0)
    mean = posterior(seen, 0.5, 2.0).mean
    situations = contexts(spec, 200)
    checked = 0
    for context, law in zip(situations, seen.laws(situations), strict=True):
        scores = features(spec, context) @ mean
        best, second = np.sort(scores)[[-1, -2]]
        if best - second > 1e-2:  # nearer than that, float32 may decide either way
            np.testing.assert_array_equal(law, np.eye(spec.arms)[scores.argmax()])
            checked += 1
    assert checked > 150


def test_ties_are_shared_and_the_first_rounds_go_round_the_arms() -> None:
    spec = SPECS["disjoint"]
    here = contexts(spec, 1)
    np.testing.assert_allclose(taught("greedy", spec, rounds=0, pulls=0).laws(here), 1 / 3)
    for name, first in (("disjoint", 6), ("shared", 2)):
        spec = SPECS[name]
        seen = taught("greedy", spec)
        here = contexts(spec, 100)
        for count in range(first):
            state = dataclasses.replace(seen.state, count=jnp.asarray(count, jnp.int32))
            laws = seen._replace(state=state).laws(here)
            np.testing.assert_array_equal(laws, np.eye(spec.arms)[[count % spec.arms] * 100])
        state = dataclasses.replace(seen.state, count=jnp.asarray(first, jnp.int32))
        np.testing.assert_array_equal(seen._replace(state=state).laws(here), seen.laws(here))


def never_negative(length: int, drift: float) -> float:
    """P(S_1 > 0, …, S_n > 0) of a random walk with steps N(drift, 1), by Spitzer's identity.

    n p_n = Σ_{k=1}^n P(S_k > 0) p_{n−k}, p_0 = 1.
    """
    positive = stats.norm.cdf(np.sqrt(np.arange(1, length + 1)) * drift)
    p = [1.0]
    for n in range(1, length + 1):
        p.append(sum(positive[k - 1] * p[n - k] for k in range(1, n + 1)) / n)
    return p[-1]


def test_a_good_arm_is_kept_as_often_as_spitzer_says() -> None:
    """Arm 0 pays N(0.3, 1) and arm 1 pays 0: arm 0 is left with its first negative mean.

    20,000 chains; the exact binomial law at 1e-6. Ridge does not matter: it changes no sign.
    """
    chains, length = 20_000, 40
    agent = AGENTS["greedy"].build({"pulls": 1, "noise": 1.0, "prior": 1.0})
    spec = Spec(arms=2, dim=1)
    spec = dataclasses.replace(spec, layout=Layout(chains=chains))
    pays = 0.3 + jax.random.normal(jax.random.key(2), (length + 2, chains))
    normals = jax.random.normal(jax.random.key(3), (length + 2, 1, chains))
    context = jnp.ones((1, chains))

    def one_round(state: object, given: tuple[jax.Array, jax.Array]) -> tuple[object, jax.Array]:
        paid, noise = given
        arm = agent.choose(noise, state, context)
        return agent.update(state, context, arm, jnp.where(arm == 0, paid, 0.0)), arm

    _, arms = jax.lax.scan(one_round, agent.init(jax.random.key(0), spec), (pays, normals))
    assert np.all(arms[0] == 0) and np.all(arms[1] == 1)
    kept = int(np.sum(np.all(np.asarray(arms[2:]) == 0, axis=0)))
    assert stats.binomtest(kept, chains, never_negative(length, 0.3)).pvalue > LEVEL
