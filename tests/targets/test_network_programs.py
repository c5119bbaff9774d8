"""Gradients of networks as programs of an accelerator, beside those of operation by operation."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import slow_but
from triton_calls import triton_calls

from feelgood import AGENTS, Spec
from feelgood.core.spec import Layout
from feelgood.targets import network_programs
from feelgood.targets.network_energy import NetworkEnergy
from feelgood.targets.networks import Network
from feelgood.targets.replay import Batch, Replay

#: Arms, dimensions, layers, activation, loss, bonus and its schedule.
CASES: dict[str, tuple[int, int, tuple[int, ...], Any, Any, str | None, str]] = {
    "plain": (2, 5, (20,), "leaky", "squared", None, ""),
    "deep": (7, 9, (50, 33, 17), "relu", "bernoulli", None, ""),
    "many arms": (20, 3, (18,), "leaky", "squared", "fglmcts", "sqrt"),
    "smoothed": (4, 6, (19, 7), "relu", "squared", "sfglmcts", "constant"),
    "wide layers": (5, 60, (128, 5), "leaky", "bernoulli", "fglmcts", "constant"),
    "wide": (5, 300, (12, 5), "leaky", "squared", None, ""),
}
EVERY = pytest.mark.parametrize("case", slow_but(["deep", "many arms"], list(CASES)))
#: Rows that fill no tile.
ROWS, CHAINS = 75, 2


def energy_of(case: str, steps: Any) -> NetworkEnergy:
    arms, dim, layers, activation, likelihood, name, schedule = CASES[case]
    spec = Spec(arms=arms, dim=dim, layout=Layout(steps=steps))
    network = Network(spec=spec, layers=layers, activation=activation, exact=False)
    values = {"lam": 0.7, "b": 0.4, "lam_schedule": schedule}
    bonus: Any = AGENTS[name].build(values).bonus if name else None
    return NetworkEnergy(network, jnp.asarray(1.3), jnp.asarray(0.2), bonus, likelihood)


def data_of(network: Network) -> tuple[Batch, jax.Array]:
    """Batches of two chains, in no order; some rows count twice, some not at all."""
    rng, shape = np.random.default_rng(3), (CHAINS, ROWS)
    contexts = jnp.asarray(rng.normal(size=(*shape, network.spec.dim)), jnp.float32)
    batch = Batch(
        contexts=jax.vmap(jax.vmap(network.row))(contexts),
        arms=jnp.asarray(rng.integers(0, network.spec.arms, shape), jnp.int32),
        rewards=jnp.asarray(rng.integers(0, 2, shape), jnp.float32),
        counts=jnp.asarray(rng.integers(0, 3, shape), jnp.float32),
        numbers=jnp.asarray(rng.integers(0, 50, shape), jnp.int32),
    )
    theta = rng.normal(size=(CHAINS, network.parameters)) / np.sqrt(network.layers[0])
    return batch, jnp.asarray(theta, jnp.float32)


def apart(case: str) -> float:
    """How far the programs' value and gradient are from the others, in their own size."""
    plain, programs = energy_of(case, "together"), energy_of(case, "interpreted")
    data = data_of(plain.network)
    assert network_programs.suits_programs(programs.network, programs.bonus is not None)
    one = jax.jit(jax.vmap(plain.data_term))(*data)
    other = jax.jit(jax.vmap(programs.data_term))(*data)
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return max(float(jnp.max(jnp.abs(a - b)) / jnp.max(jnp.abs(a))) for a, b in pairs)


@EVERY
def test_programs_have_the_value_and_the_gradient(case: str) -> None:
    assert apart(case) < 3e-6


def _forgets_the_best_arm(picks: network_programs.Picks) -> network_programs.Picks:
    half = len(picks.arms) // 2
    return picks._replace(arms=jnp.tile(picks.arms[:half], 2))


MUTANTS = {
    "the first pick of a row only": _forgets_the_best_arm,
    "slopes without their sign": lambda picks: picks._replace(
        slope=lambda *numbers: jnp.abs(picks.slope(*numbers))
    ),
    "the arm before": lambda picks: picks._replace(arms=jnp.maximum(picks.arms - 1, 0)),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_comparison_sees_wrong_picks(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = network_programs.AS_PROGRAMS

    def wrong(network: Any, theta: Any, rows: Any, picks: Any) -> Any:
        return right.gradient(network, theta, rows, MUTANTS[mutant](picks))

    monkeypatch.setattr(network_programs, "AS_PROGRAMS", right._replace(gradient=wrong))
    assert apart("smoothed") > 1e-2


@pytest.mark.filterwarnings("ignore:The Pallas Triton backend is deprecated")
@EVERY
def test_they_have_a_form_in_tritons_language(case: str) -> None:
    energy = energy_of(case, "apart")
    data = jax.eval_shape(lambda: data_of(energy.network))
    traced = jax.jit(jax.vmap(energy.data_term)).trace(*data)
    assert triton_calls(traced) == (3 if energy.bonus is None else 4)


def test_rows_of_an_arm_lie_together_in_each_batch() -> None:
    """The rows are the same, each as often as it was drawn."""
    spec = Spec(arms=7, dim=2, layout=Layout(steps="interpreted"))
    network = Network(spec=spec, layers=(8,), exact=False)
    replay, rng = Replay.empty(network).reserve(50), np.random.default_rng(1)
    for t in range(50):
        arm = jnp.asarray(rng.integers(0, 7))
        replay = replay.add(network.row(jnp.full(2, 1.0 * t)), arm, jnp.asarray(float(t)))
    index = jnp.asarray(rng.integers(0, 50, 90))
    batch = replay.gather(index, 30)
    for start in (0, 30, 60):
        arms = np.asarray(batch.arms[start : start + 30])
        assert (np.diff(arms) >= 0).all()
        drawn = np.sort(np.asarray(index[start : start + 30]))
        assert (np.sort(np.asarray(batch.numbers[start : start + 30])) == drawn).all()
    assert (np.asarray(batch.rewards) == np.asarray(batch.numbers)).all()
    plain = dataclasses.replace(replay, by_arm=False)
    assert (np.asarray(plain.gather(index, 30).numbers) == np.asarray(index)).all()


OTHERS: dict[str, tuple[Any, dict[str, Any], tuple[int, ...], bool, bool]] = {
    "together": ("together", {}, (4,), False, False),
    "contexts per arm": ("apart", {"shared": True}, (4,), False, False),
    "all digits": ("apart", {}, (4,), True, False),
    "many inputs": ("apart", {"dim": 65}, (4,), False, False),
    "many inputs and a bonus": ("apart", {"dim": 300}, (4,), False, True),
    "wide layers": ("apart", {}, (4, 129), False, False),
    "a bonus and one layer": ("apart", {}, (4,), False, True),
}


@pytest.mark.parametrize("other", OTHERS)
def test_other_networks_are_left_to_the_other_way(other: str) -> None:
    steps, values, layers, exact, bonus = OTHERS[other]
    spec = Spec(**({"arms": 3, "dim": 2, "layout": Layout(steps=steps)} | values))
    assert not network_programs.suits_programs(
        Network(spec=spec, layers=layers, exact=exact), bonus
    )
