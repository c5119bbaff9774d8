"""Sums over the played rounds by strips, against the formula in float64.

No test here is statistical. Tolerances are a few units of float32 rounding of the terms' sizes.
"""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from feelgood import Spec
from feelgood.core.spec import Layout
from feelgood.targets import strips
from feelgood.targets.energy import Energy
from feelgood.targets.history import Rows
from feelgood.targets.losses import loss

ROUNDING = 32 * 2.0**-24
#: Around the ends of strips, at the end of the room, and one more than there is room for.
FILLED = (0, 1, 127, 128, 129, 640, 699, 700, 701)
ROOM = 700


def problem(shared: bool, chains: int) -> tuple[Energy, Rows, jax.Array]:
    """A full store whose size is no multiple of a strip, and parameters near and far."""
    spec = Spec(arms=3, dim=5, shared=shared, rewards="bernoulli", layout=Layout(chains=chains))
    rng = np.random.default_rng(7)
    played = jnp.asarray(rng.normal(size=(spec.dim, *spec.lanes, ROOM)), jnp.float32)
    rows = Rows(
        contexts=None if shared else played,
        features=played if shared else None,
        arms=jnp.asarray(rng.integers(0, spec.arms, (*spec.lanes, ROOM)), jnp.int32),
        rewards=jnp.asarray(rng.integers(0, 2, (*spec.lanes, ROOM)), jnp.float32),
        filled=jnp.zeros((), jnp.int32),
        spec=spec,
    )
    one = jnp.ones(())
    energy = Energy(eta=one, rho=one, bonus=None, likelihood="bernoulli", spec=spec)
    theta = rng.normal(size=(spec.dim, spec.blocks, *spec.lanes)) * 3.0
    return energy, rows, jnp.asarray(theta, jnp.float32)


def formula(rows: Rows, theta: jax.Array) -> tuple[np.ndarray, ...]:
    """Σℓ and its gradient, and the sums of the sizes of their terms, in float64."""
    n = min(int(rows.filled), ROOM)
    x = np.asarray(rows.played_features(), np.float64)[..., :n]
    arms, r = np.asarray(rows.arms)[..., :n], np.asarray(rows.rewards, np.float64)[..., :n]
    at = np.asarray(theta, np.float64)
    blocks = np.arange(at.shape[1]).reshape(-1, *(1,) * arms.ndim)
    hot = np.ones((1, *arms.shape)) if rows.spec.shared else 1.0 * (arms == blocks)
    scores = np.einsum("db...,d...t,b...t->...t", at, x, hot)
    losses = np.logaddexp(0.0, scores) - r * scores
    sizes = np.einsum("db...,d...t,b...t->...t", np.abs(at), np.abs(x), hot)
    slopes = special.expit(scores) - r
    gradient = np.einsum("...t,d...t,b...t->db...", slopes, x, hot)
    steep = np.einsum("...t,d...t,b...t->db...", 1.0 + sizes, np.abs(x), hot)
    return losses.sum(-1), gradient, (losses + sizes).sum(-1), steep


@pytest.mark.parametrize(("shared", "chains"), [*itertools.product((True, False), (0, 3))])
def test_sum_and_gradient(shared: bool, chains: int) -> None:
    energy, rows, theta = problem(shared, chains)
    assert strips.suits(rows)
    total = eqx.filter_jit(Energy.total_loss)
    for filled in FILLED:
        here = Rows(**{**vars(rows), "filled": jnp.asarray(filled, jnp.int32)})
        value, gradient = total(energy, here, theta)
        want, slope, size, steep = formula(here, theta)
        assert np.all(np.abs(np.asarray(value) - want) <= ROUNDING * size), filled
        assert np.all(np.abs(np.asarray(gradient) - slope) <= ROUNDING * steep), filled


@pytest.mark.parametrize("shared", [True, False])
def test_one_pass_over_the_whole_store_is_the_same(shared: bool) -> None:
    """On an accelerator, and with very many parameters, the sum is taken in one pass."""
    energy, rows, theta = problem(shared, 3)
    everything = Layout(chains=3, reads_all=True)
    spec = Spec(arms=3, dim=5, shared=shared, rewards="bernoulli", layout=everything)
    rows = Rows(**{**vars(rows), "filled": jnp.asarray(300, jnp.int32)})
    other = Rows(**{**vars(rows), "spec": spec})
    assert strips.suits(rows) and not strips.suits(other)
    _, _, size, steep = formula(rows, theta)
    value, gradient = energy.total_loss(rows, theta)
    whole, slope = energy.total_loss(other, theta)
    assert np.all(np.abs(np.asarray(value - whole)) <= ROUNDING * size)
    assert np.all(np.abs(np.asarray(gradient - slope)) <= ROUNDING * steep)


def test_bernoulli_loss_to_float32() -> None:
    """Relative errors of a few units of float32 rounding; exp alone has two of them."""
    scores = np.linspace(-80.0, 80.0, 200_001).astype(np.float32)
    exact = scores.astype(np.float64)
    for reward in (0.0, 1.0):
        got = np.asarray(loss("bernoulli", jnp.asarray(scores), jnp.full(scores.shape, reward)))
        want = np.logaddexp(0.0, exact) - reward * exact
        size = np.logaddexp(0.0, exact) + reward * np.abs(exact)
        assert np.all(np.abs(got - want) <= 8 * 2.0**-24 * size)
