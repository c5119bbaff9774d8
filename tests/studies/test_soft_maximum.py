"""The bonus on a smoothed maximum that `studies/soft_maximum.py` has: its limits, its gradient."""

import importlib
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from feelgood import AGENTS, Spec
from feelgood.targets.bonus import FeelGood
from feelgood.targets.network_energy import NetworkEnergy
from feelgood.targets.networks import Network
from feelgood.targets.replay import Batch

FOLDER = Path(__file__).resolve().parents[2] / "studies"
SPEC = Spec(arms=3, dim=4)
NETWORK = Network(spec=SPEC, layers=(5,))
THETA = jax.random.normal(jax.random.key(1), (NETWORK.parameters,))
LAM, ROWS = 0.7, 12
ETA, NONE = jnp.asarray(1.5), jnp.asarray(0.0)


def batch() -> Batch:
    """A dozen rounds that count differently."""
    rng = np.random.default_rng(2)
    contexts = jnp.asarray(rng.normal(size=(ROWS, 4)), jnp.float32)
    rewards, counts = jnp.asarray(rng.normal(size=(2, ROWS)), jnp.float32)
    rows, numbers = jax.vmap(NETWORK.row)(contexts), jnp.arange(ROWS)
    return Batch(rows, numbers % SPEC.arms, rewards, jnp.abs(counts), numbers)


SCORES = np.asarray(NETWORK.forward(NETWORK.split(THETA), batch().contexts, None)[0])
#: A cap that binds in half of the rounds, and one that never does.
CAPS = (float(np.median(SCORES.max(axis=1))), 100.0)


@pytest.fixture
def soft(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The study's energy, of a softness and a cap; registered for as long as a test takes."""
    assert "lints" in AGENTS
    monkeypatch.setattr(AGENTS, "_families", dict(AGENTS._families))
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "soft_maximum", raising=False)
    energy = importlib.import_module("soft_maximum").SoftEnergy
    own = (NETWORK, ETA, NONE, None, "squared")

    def made(softness: float, cap: float) -> NetworkEnergy:
        told = {"softness": softness, "lam": LAM, "b": cap}
        return energy(*own, **{name: jnp.asarray(value) for name, value in told.items()})

    return made


def hard(lam: float, cap: float) -> NetworkEnergy:
    bonus = FeelGood(lam=jnp.asarray(lam), b=jnp.asarray(cap), lam_schedule="constant")
    return NetworkEnergy(NETWORK, ETA, NONE, bonus, "squared")


@pytest.mark.parametrize("cap", CAPS, ids=("binds", "free"))
def test_without_softness_it_is_the_bonus_on_the_maximum(soft: Any, cap: float) -> None:
    """The gradient is the same, and the value up to λ τ ln(arms) of each round."""
    softness = 1e-6
    (value, gradient), (want, slope) = (
        e.data_term(batch(), THETA) for e in (soft(softness, cap), hard(LAM, cap))
    )
    np.testing.assert_allclose(value, want, rtol=1e-5)
    np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-5)
    # The bonus has a part in both: without it they would differ.
    bare, plain = hard(0.0, cap).data_term(batch(), THETA)
    assert abs(float(bare - want)) > 0.1 and float(jnp.abs(plain - slope).max()) > 0.1


@pytest.mark.parametrize("cap", CAPS, ids=("binds", "free"))
@pytest.mark.parametrize("softness", (0.01, 0.1, 1.0))
def test_it_lies_below_the_maximum_and_above_the_mean(
    soft: Any, softness: float, cap: float
) -> None:
    """So its bonus does, and the gradient is that of the value."""
    energy, weight = soft(softness, cap), float(batch().counts.sum())
    value, gradient = energy.data_term(batch(), THETA)
    want = jax.grad(lambda theta: energy.data_term(batch(), theta)[0])(THETA)
    np.testing.assert_allclose(gradient, want, rtol=1e-4, atol=1e-5)
    most = float(hard(LAM, cap).data_term(batch(), THETA)[0])
    assert most <= value <= most + weight * LAM * softness * np.log(SPEC.arms)
    mean = np.minimum(SCORES.mean(axis=1), cap)
    bare = float(hard(0.0, cap).data_term(batch(), THETA)[0])
    assert value <= bare - LAM * float(np.sum(mean * np.asarray(batch().counts))) + 1e-5


def test_with_much_softness_it_is_the_mean_over_the_arms(soft: Any) -> None:
    """All arms are lifted alike: the gradient of λ times the mean score."""
    gradient = soft(1e3, 100.0).data_term(batch(), THETA)[1]

    def mean(theta: jax.Array) -> jax.Array:
        scores = NETWORK.forward(NETWORK.split(theta), batch().contexts, None)[0]
        return LAM * jnp.sum(jnp.mean(scores, axis=1) * batch().counts)

    plain = hard(0.0, 100.0).data_term(batch(), THETA)[1]
    np.testing.assert_allclose(plain - gradient, jax.grad(mean)(THETA), rtol=1e-2, atol=1e-3)
