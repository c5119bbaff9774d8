"""Rows that need one block of the first layer, one after the other, beside all blocks at once."""

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import covering
from proofs.targets import agent

from feelgood import Spec
from feelgood.core.spec import Layout
from feelgood.targets import network_energy, networks, picked_blocks
from feelgood.targets.network_energy import NetworkEnergy
from feelgood.targets.networks import Network
from feelgood.targets.replay import Batch

ARMS, DIM, ROWS = 6, 5, 40
BONUSES: dict[str, Any] = {
    "none": None,
    "hard": agent("fglmcts", lam=0.5, b=0.3).bonus,
    "smoothed, falling": agent("sfglmcts", lam=2.0, b=0.3, lam_schedule="sqrt").bonus,
}


def energy_of(layers: tuple[int, ...], bonus: str, likelihood: Any) -> NetworkEnergy:
    network = Network(spec=Spec(arms=ARMS, dim=DIM), layers=layers)
    return NetworkEnergy(network, jnp.asarray(0.7), jnp.ones(()), BONUSES[bonus], likelihood)


def on_accelerator(energy: NetworkEnergy) -> NetworkEnergy:
    """The same with products of all blocks."""
    network = energy.network
    spec = dataclasses.replace(network.spec, layout=Layout(reads_all=True))
    return dataclasses.replace(energy, network=dataclasses.replace(network, spec=spec))


def some_rows(network: Network) -> Batch:
    rng = np.random.default_rng(4)
    contexts = jnp.asarray(rng.normal(size=(ROWS, DIM)), jnp.float32)
    return Batch(
        contexts=jax.vmap(network.row)(contexts),
        arms=jnp.asarray(rng.integers(0, ARMS, ROWS)),
        rewards=jnp.asarray(rng.integers(0, 2, ROWS), jnp.float32),
        counts=jnp.asarray(rng.integers(0, 3, ROWS), jnp.float32),
        numbers=jnp.arange(ROWS),
    )


def gap(layers: tuple[int, ...], bonus: str, likelihood: str) -> float:
    """Between the two ways: of value and gradient, relative to the largest entry."""
    one = energy_of(layers, bonus, likelihood)
    other = on_accelerator(one)
    assert one.network.row_by_row and not other.network.row_by_row
    batch, theta = some_rows(one.network), 2.0 * one.network.init(jax.random.key(3))
    found = [
        jax.jit(lambda b, t, e=energy: e.data_term(b, t))(batch, theta) for energy in (one, other)
    ]
    assert np.abs(found[1][1]).max() > 0.1, "nothing to compare"
    pairs = zip(*found, strict=True)
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)


CASES = itertools.product([(7,), (7, 4), (6, 5, 4)], BONUSES, ("squared", "bernoulli"))


@pytest.mark.parametrize(("layers", "bonus", "likelihood"), covering(CASES))
def test_energies_are_the_same_either_way(
    layers: tuple[int, ...], bonus: str, likelihood: str
) -> None:
    assert gap(layers, bonus, likelihood) < 3e-6


def test_products_with_own_blocks_by_hand() -> None:
    rng = np.random.default_rng(0)
    blocks, rows = rng.normal(size=(5, 3, 4)), rng.normal(size=(9, 5))
    deltas, arms = rng.normal(size=(9, 4)), rng.integers(0, 3, 9)
    numbers = [jnp.asarray(x, jnp.float32) for x in (blocks, rows, deltas)]
    product = picked_blocks.block_products(numbers[0], numbers[1], jnp.asarray(arms))
    outer = picked_blocks.block_sums(numbers[1], numbers[2], jnp.asarray(arms), 3)
    np.testing.assert_allclose(product, np.einsum("rd,drh->rh", rows, blocks[:, arms]), rtol=1e-5)
    onehot = np.eye(3)[arms]
    np.testing.assert_allclose(
        outer, np.einsum("rd,ra,rh->dah", rows, onehot, deltas), rtol=1e-4, atol=1e-6
    )


def _next_arm(real: Any) -> Any:
    def wrong(first: Any, second: Any, arms: Any, *others: Any) -> Any:
        return real(first, second, (arms + 1) % ARMS, *others)

    return wrong


MUTANTS = [
    ("block_products", _next_arm(picked_blocks.block_products)),
    ("block_sums", _next_arm(picked_blocks.block_sums)),
]


@pytest.mark.parametrize(("name", "wrong"), MUTANTS, ids=["product", "outer"])
def test_another_arms_block_is_noticed(
    name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(networks.picked_blocks, name, wrong)
    assert gap((7, 4), "hard", "squared") > 1e-2


def test_a_forgotten_best_arm_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        network_energy, "first_arm", lambda scores, best: jnp.zeros(ROWS, jnp.int32)
    )
    assert gap((7, 4), "hard", "squared") > 1e-2
