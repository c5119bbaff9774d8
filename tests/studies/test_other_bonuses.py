"""The bonuses that `studies/other_bonuses.py` has: their limits, their gradients."""

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
def bonuses(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The study's plug-in; its agents are registered for as long as a test takes."""
    assert "lints" in AGENTS
    monkeypatch.setattr(AGENTS, "_families", dict(AGENTS._families))
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "other_bonuses", raising=False)
    return importlib.import_module("other_bonuses")


def made(kind: Any, **told: float) -> NetworkEnergy:
    own = {name: jnp.asarray(value) for name, value in told.items()}
    return kind(NETWORK, ETA, NONE, None, "squared", **own)


@pytest.fixture
def soft(bonuses: Any) -> Any:
    """The energy of a softness and a cap."""
    return lambda softness, cap: made(bonuses.SoftEnergy, softness=softness, lam=LAM, b=cap)


@pytest.fixture
def parted(bonuses: Any) -> Any:
    """The energy of both weights and a cap."""
    return lambda lam, lift, cap: made(bonuses.PartedEnergy, lam=lam, lift=lift, b=cap)


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


def bonus_gradient(energy: NetworkEnergy) -> np.ndarray:
    """What the bonus adds to the gradient of the energy."""
    plain = hard(0.0, 100.0).data_term(batch(), THETA)[1]
    return np.asarray(energy.data_term(batch(), THETA)[1] - plain)


@pytest.mark.parametrize("cap", CAPS, ids=("binds", "free"))
def test_without_lift_the_parted_bonus_is_that_on_the_maximum(parted: Any, cap: float) -> None:
    (value, gradient), (want, slope) = (
        e.data_term(batch(), THETA) for e in (parted(LAM, 0.0, cap), hard(LAM, cap))
    )
    np.testing.assert_allclose(value, want, rtol=1e-5)
    np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-5)
    assert np.abs(bonus_gradient(parted(LAM, 0.0, cap))).max() > 0.1


@pytest.mark.parametrize("cap", CAPS, ids=("binds", "free"))
def test_the_gradient_of_the_parted_bonus_is_that_of_its_value(parted: Any, cap: float) -> None:
    energy = parted(0.3, LAM, cap)
    want = jax.grad(lambda theta: energy.data_term(batch(), theta)[0])(THETA)
    np.testing.assert_allclose(energy.data_term(batch(), THETA)[1], want, rtol=1e-4, atol=1e-5)


def test_the_lift_is_on_the_other_arms_alone(parted: Any) -> None:
    """Which arm is the best is a constant in it, so no part of the gradient is its."""
    best = jnp.asarray(SCORES.argmax(axis=1))

    def lifted(theta: jax.Array) -> jax.Array:
        scores = NETWORK.forward(NETWORK.split(theta), batch().contexts, None)[0]
        others = jnp.where(jnp.arange(SPEC.arms) == best[:, None], 0.0, scores)
        return LAM * jnp.sum(jnp.sum(others, axis=1) / (SPEC.arms - 1) * batch().counts)

    want = -np.asarray(jax.grad(lifted)(THETA))
    np.testing.assert_allclose(bonus_gradient(parted(0.0, LAM, 100.0)), want, rtol=1e-4, atol=1e-5)


def test_both_parts_by_their_shares_are_the_mean_over_the_arms(parted: Any, soft: Any) -> None:
    """As the maximum with much softness is."""
    shares = LAM / SPEC.arms, LAM * (SPEC.arms - 1) / SPEC.arms
    np.testing.assert_allclose(
        bonus_gradient(parted(*shares, 100.0)),
        bonus_gradient(soft(1e3, 100.0)),
        rtol=2e-2,
        atol=2e-3,
    )
