"""Inverse gap weighting against its formula, its limits and the inequality behind it."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special
from taught import EVERY_SPEC, SPECS, contexts, features, posterior, taught

from feelgood.agents.squarecb import inverse_gap_weights


@EVERY_SPEC
def test_probabilities_are_those_of_the_formula(name: str) -> None:
    """40 rounds: γ_t = γ √(K/D) 40^e / σ with σ = 0.5, which is also the Bernoulli rewards' σ."""
    spec = SPECS[name]
    seen = taught("squarecb", spec, noise=0.5, prior=2.0, gamma=3.0, exponent=0.4)
    mean = posterior(seen, 0.5, 2.0).mean
    gamma = 3.0 * np.sqrt(spec.arms / spec.parameters) * 40**0.4 / 0.5
    situations = contexts(spec, 50)
    for context, law in zip(situations, seen.laws(situations), strict=True):
        scores = features(spec, context) @ mean
        rewards = special.expit(scores) if spec.rewards == "bernoulli" else scores
        best = int(np.argmax(rewards))
        want = 1.0 / (spec.arms + gamma * (rewards[best] - rewards))
        want[best] = 0.0
        want[best] = 1.0 - want.sum()
        np.testing.assert_allclose(law, want, atol=2e-4)


def test_closed_forms_and_limits() -> None:
    two = inverse_gap_weights(jnp.array([0.25, 1.0]), jnp.asarray(4.0))
    np.testing.assert_allclose(two, [1 / (2 + 3), 1 - 1 / 5], rtol=1e-6)
    equal = inverse_gap_weights(jnp.array([0.0, 0.5, 0.0, 0.0]), jnp.asarray(6.0))
    np.testing.assert_allclose(equal, [1 / 7, 4 / 7, 1 / 7, 1 / 7], rtol=1e-6)
    rewards = jnp.array([0.1, 0.7, 0.7, -2.0])
    np.testing.assert_allclose(inverse_gap_weights(rewards, jnp.asarray(0.0)), 0.25)
    greedy = inverse_gap_weights(rewards, jnp.asarray(1e12))
    np.testing.assert_allclose(greedy, [0.0, 0.5, 0.5, 0.0], atol=1e-6)


def test_with_a_large_gamma_it_is_greedy_and_at_first_uniform() -> None:
    spec = SPECS["disjoint"]
    told = {"noise": 0.5, "prior": 2.0}
    sharp = taught("squarecb", spec, gamma=1e9, **told)
    greedy = taught("greedy", spec, **told)
    here = contexts(spec, 50)
    np.testing.assert_allclose(sharp.laws(here), greedy.laws(here), atol=1e-4)
    np.testing.assert_allclose(taught("squarecb", spec, rounds=0).laws(here), 1 / 3)


def test_no_unit_of_the_rewards_matters() -> None:
    """With learned noise and prior, times 1,024: a power of 2, which rounds as before."""
    spec = SPECS["shared"]
    one, other = taught("squarecb", spec), taught("squarecb", spec, scale=1024.0)
    here = contexts(spec, 20)
    np.testing.assert_allclose(one.laws(here), other.laws(here), rtol=1e-4)


def test_the_minimax_inequality_holds() -> None:
    """Σ_a p_a [f*_j − f*_a − (γ/4)(f̂_a − f*_a)²] ≤ 2K/γ for the worst f*, which is explicit.

    Foster and Rakhlin 2020, Lemma 3. f*_a = f̂_a − (2/γ)(1 − 1{a = j}/p_a).
    """
    rng = np.random.default_rng(0)
    weights = jax.jit(inverse_gap_weights)
    for _ in range(300):
        arms = int(rng.choice([2, 3, 8]))
        gamma = float(10 ** rng.uniform(-1, 3))
        estimate = rng.normal(size=arms)
        rewards = jnp.asarray(estimate, jnp.float32)
        law = np.asarray(weights(rewards, jnp.asarray(gamma)), np.float64)
        assert law.min() >= 0 and law.max() >= 1 / arms - 1e-6
        for j in range(arms):
            truth = estimate - (2 / gamma) * (1 - (np.arange(arms) == j) / law)
            gain = law @ (truth[j] - truth - gamma / 4 * (estimate - truth) ** 2)
            assert gain <= 2 * arms / gamma * (1 + 1e-5)
