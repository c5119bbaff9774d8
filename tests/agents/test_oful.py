"""OFUL: its radius against the formula, its arms against NumPy, its ellipsoid against chance."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from taught import EVERY_SPEC, SPECS, Taught, contexts, features, posterior, taught

from feelgood import AGENTS, Spec
from feelgood.agents.oful import OFUL
from feelgood.core.spec import Layout

LEVEL = 1e-6
NOISE, PRIOR, DELTA = 0.5, 2.0, 0.05


def formula(seen: Taught, length: float) -> float:
    """β in float64, by the determinant of V over all parameters together."""
    variance = 1.0 if seen.spec.rewards == "bernoulli" else NOISE**2
    ratio = variance / PRIOR**2
    gram = variance * posterior(seen, NOISE, PRIOR).precision  # V: the precision times σ²
    volume = np.linalg.slogdet(gram)[1] - len(gram) * np.log(ratio)
    return np.sqrt(variance * (volume - 2 * np.log(DELTA))) + np.sqrt(ratio) * length


@EVERY_SPEC
def test_the_radius_is_that_of_the_formula(name: str) -> None:
    """Exact but for rounding; for Bernoulli rewards H may be that of an earlier estimate."""
    spec = SPECS[name]
    bound = 3.0 if spec.shared else "auto"
    told = {"noise": NOISE, "prior": PRIOR, "delta": DELTA, "bound": bound, "width": 0.3}
    seen = taught("oful", spec, **told)
    assert isinstance(seen.policy, OFUL)
    length = PRIOR * np.sqrt(spec.parameters) if bound == "auto" else 3.0
    rtol = 0.02 if spec.rewards == "bernoulli" else 1e-5
    got = float(seen.policy.radius(seen.state))
    assert got == pytest.approx(0.3 * formula(seen, length), rel=rtol)


@pytest.mark.parametrize("name", ["disjoint", "shared"])
def test_the_arm_with_the_largest_bound_is_played(name: str) -> None:
    spec = SPECS[name]
    seen = taught("oful", spec, noise=NOISE, prior=PRIOR, delta=DELTA, bound=3.0)
    mean, precision = posterior(seen, NOISE, PRIOR)
    inverse, radius = np.linalg.inv(precision * NOISE**2), formula(seen, 3.0)
    checked, here = 0, contexts(spec, 200)
    for context, law in zip(here, seen.laws(here), strict=True):
        x = features(spec, context)
        bounds = x @ mean + radius * np.sqrt(np.einsum("ai,ij,aj->a", x, inverse, x))
        best, second = np.sort(bounds)[[-1, -2]]
        if best - second > 1e-2:
            np.testing.assert_array_equal(law, np.eye(spec.arms)[bounds.argmax()])
            checked += 1
    assert checked > 150


@EVERY_SPEC
def test_without_width_it_is_greedy(name: str) -> None:
    spec = SPECS[name]
    here = contexts(spec, 50)
    laws = [taught("oful", spec, width=0.0).laws(here), taught("greedy", spec).laws(here)]
    np.testing.assert_array_equal(*laws)


def test_equal_arms_are_equally_likely_and_without_data_all_are() -> None:
    shared, apart = SPECS["shared"], SPECS["disjoint"]
    alike = np.repeat(contexts(shared, 5)[:, :, :1], shared.arms, axis=2)
    np.testing.assert_allclose(taught("oful", shared).laws(alike), 1 / shared.arms)
    new = taught("oful", apart, rounds=0, noise=NOISE, prior=PRIOR, delta=DELTA)
    np.testing.assert_allclose(new.laws(contexts(apart, 5)), 1 / 3)
    assert isinstance(new.policy, OFUL)
    length = PRIOR * np.sqrt(apart.parameters)
    assert float(new.policy.radius(new.state)) == pytest.approx(formula(new, length), rel=1e-5)


def test_the_truth_is_in_the_ellipsoid_in_all_rounds() -> None:
    """4,000 chains that play by the rule for 100 rounds: at most δ of them ever lose the truth.

    ‖θ̂ − θ*‖_V ≤ β with S = ‖θ*‖ and the true σ; δ = 0.2, up to 1e-6 by luck.
    """
    chains, delta = 4_000, 0.2
    spec = dataclasses.replace(SPECS["shared"], layout=Layout(chains=chains))
    truth = np.array([0.6, -0.8, 0.5])
    told = {"noise": NOISE, "prior": 1.0, "delta": delta, "bound": np.linalg.norm(truth)}
    agent = AGENTS["oful"].build(told)
    assert isinstance(agent, OFUL)
    lost = played_outside(agent, spec, jnp.asarray(truth, jnp.float32), rounds=100)
    assert stats.binom.sf(int(lost.sum()) - 1, chains, delta) > LEVEL
    # A radius of a fifth is not enough: the test can fail.
    narrow = AGENTS["oful"].build({**told, "width": 0.2})
    assert isinstance(narrow, OFUL)
    lost = played_outside(narrow, spec, jnp.asarray(truth, jnp.float32), rounds=100)
    assert stats.binom.sf(int(lost.sum()) - 1, chains, delta) < LEVEL


def played_outside(agent: OFUL, spec: Spec, truth: jax.Array, rounds: int) -> np.ndarray:
    """In which chains the truth was ever outside of the ellipsoid."""
    shown = jax.random.normal(jax.random.key(1), (rounds, *spec.context_shape, *spec.lanes))
    normals = jax.random.normal(jax.random.key(2), (2, rounds, 1, *spec.lanes))

    def one_round(carry: tuple, given: tuple) -> tuple:
        (state, outside), (context, for_arm, for_reward) = carry, given
        arm = agent.choose(for_arm, state, context)
        means = jnp.einsum("d,dac->ac", truth, context)
        paid = jnp.take_along_axis(means, arm[None], axis=0)[0] + NOISE * for_reward[0]
        state = agent.update(state, context, arm, paid)
        mean, lower, _ = agent.estimate(state)
        error = jnp.einsum("ijbc,ibc->jbc", lower, mean - truth[:, None, None])
        distance = jnp.sqrt(jnp.sum(error**2, axis=(0, 1)))
        return (state, outside | (distance > agent.radius(state))), None

    start = (agent.init(jax.random.key(0), spec), jnp.zeros(spec.lanes, bool))
    (_, outside), _ = jax.lax.scan(one_round, start, (shown, *normals))
    return np.asarray(outside)
