"""Metropolis kernels on a network small enough for quadrature have the law exp(−βL).

Two arms that show one number each share a network of one leaky hidden unit: a weight, a bias and an
output weight, three parameters. Independent chains start in the law, drawn from the grid, and must
keep it; most must have moved and the filter must have had work.
"""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import slow_but
from proofs import levels
from proofs.levels import Check, require
from proofs.targets import QUICKLY

from feelgood import AGENTS, Spec
from feelgood.agents.neural_mcmc import NeuralThompson, NeuralThompsonState

SPEC = Spec(arms=2, dim=1, shared=True)
CHAINS = 8_192
CELLS, EDGE = 110, 5.5
BETA, RHO, LAMBDA = 1.0, 0.5, 0.6
VALUES = {"layers": "1", "activation": "leaky", "likelihood": "squared", "updates": 10}
#: Large steps: the filter has work to do.
STEPS = {"mala": 0.1, "hmc": 0.25}
CAPS: dict[str, dict[str, float]] = {"": {}, "fg": {"b": 0.4}, "sfg": {"b": 0.4, "s": 2.0}}
CONTEXTS = np.array([[0.9, -0.4], [-1.2, 0.3], [0.5, 1.4], [-0.2, -0.8], [1.1, 0.6]])
ARMS = np.array([0, 1, 1, 0, 0])
REWARDS = np.array([0.8, 0.1, 0.9, -0.3, 0.5])


def policy(bonus: str, kernel: str) -> NeuralThompson:
    values = {"beta": BETA, "rho": RHO, "schedule": "constant", "lr": STEPS[kernel], **VALUES}
    more = {"lam": LAMBDA, "lam_schedule": "constant", **CAPS[bonus]} if bonus else {}
    agent = AGENTS[f"neural-{bonus}{kernel}ts"].build(values | more)
    assert isinstance(agent, NeuralThompson)
    return agent


def learned(agent: NeuralThompson) -> NeuralThompsonState:
    state = agent.reserve(agent.init(jax.random.key(0), SPEC), len(ARMS))
    for x, arm, reward in zip(CONTEXTS, ARMS, REWARDS, strict=True):
        context = jnp.asarray(x, jnp.float32)[None]
        state = agent.update(state, context, jnp.asarray(arm), jnp.asarray(reward, jnp.float32))
    return state


@functools.cache
def law(bonus: str) -> tuple[np.ndarray, np.ndarray]:
    """Edges of the cells, the same along every axis, and the mass of every cell."""
    edges = np.linspace(-EDGE, EDGE, CELLS + 1)
    centre = (edges[1:] + edges[:-1]) / 2.0
    w, b, v = np.meshgrid(centre, centre, centre, indexing="ij", sparse=True)
    energy = RHO * (w**2 + b**2 + v**2)
    for x, arm, reward in zip(CONTEXTS, ARMS, REWARDS, strict=True):
        before = [w * number + b for number in x]
        scores = [v * np.where(z > 0, z, 0.01 * z) for z in before]
        energy = energy + (scores[arm] - reward) ** 2
        if bonus:
            best, cap = np.maximum(*scores), CAPS[bonus]["b"]
            phi = np.minimum(best, cap)
            if bonus == "sfg":
                s = CAPS[bonus]["s"]
                phi = cap - np.logaddexp(0.0, s * (cap - best)) / s
            energy = energy - LAMBDA * phi
    mass = np.exp(-BETA * (energy - energy.min()))
    return edges, mass / mass.sum()


def checks(bonus: str, kernel: str, agent: NeuralThompson | None = None) -> list[Check]:
    label = f"neural-{bonus}{kernel}ts"
    edges, mass = law(bonus)
    rng = levels.generator_for(label)
    cell = rng.choice(mass.size, size=CHAINS, p=mass.reshape(-1))
    index = np.stack(np.unravel_index(cell, mass.shape), axis=1)
    start = edges[index] + (edges[1] - edges[0]) * rng.random((CHAINS, 3))
    agent = agent or policy(bonus, kernel)
    state = learned(agent)

    @functools.partial(jax.jit, compiler_options=QUICKLY)
    @jax.vmap
    def run(key: jax.Array, theta: jax.Array) -> tuple[jax.Array, jax.Array]:
        chain = agent.kernel.init(theta[:, None], None)
        fresh = dataclasses.replace(state, chain=chain)
        after = agent.moved(key, fresh)
        return after.chain.theta[:, 0], after.info.acceptance

    keys = jax.random.split(levels.key_for(label), CHAINS)
    theta, acceptance = run(keys, jnp.asarray(start, jnp.float32))
    ends = np.asarray(theta, np.float64)
    assert 0.2 < float(np.mean(acceptance)) < 0.97, "the filter had nothing to do"
    stayed = np.mean(np.all(ends == start.astype(np.float32), axis=1))
    out = [levels.close(f"{label}, share that never moved", stayed, 0.0, 0.1)]
    centre = (edges[1:] + edges[:-1]) / 2.0
    for axis in range(3):
        others = tuple(i for i in range(3) if i != axis)
        marginal = mass.sum(axis=others)
        for power in (1, 2):
            mean = float(marginal @ centre**power)
            spread = float(np.sqrt(marginal @ centre ** (2 * power) - mean**2))
            moment = ends[:, axis] ** power
            out.append(levels.mean_is(f"{label}, E θ_{axis}^{power}", moment, mean, spread))
        cumulative = np.cumsum(marginal)
        for q in (0.05, 0.25, 0.5, 0.75, 0.95):
            cut = int(np.searchsorted(cumulative, q))
            hits = ends[:, axis] < edges[cut + 1]
            text = f"{label}, θ_{axis} below {edges[cut + 1]:.2f}"
            out.append(levels.share_is(text, hits, float(cumulative[cut])))
    for i, j in ((0, 1), (0, 2), (1, 2)):
        (rest,) = {0, 1, 2} - {i, j}
        pair = mass.sum(axis=rest)
        products = np.outer(centre, centre)
        mean = float(np.sum(pair * products))
        spread = float(np.sqrt(np.sum(pair * products**2) - mean**2))
        moment = ends[:, i] * ends[:, j]
        out.append(levels.mean_is(f"{label}, E θ_{i}θ_{j}", moment, mean, spread))
    return out


# Quick: one, with a bonus. The kernels are those of the other proofs; the target is the news.
@pytest.mark.parametrize(
    ("bonus", "kernel"), slow_but({("sfg", "mala")}, itertools.product(CAPS, STEPS))
)
def test_neural_metropolis_kernels_sample_the_target(bonus: str, kernel: str) -> None:
    require(checks(bonus, kernel))


def test_a_bonus_left_out_is_noticed() -> None:
    """The same comparisons, of a chain that does not know the bonus, fail."""
    assert levels.rejects(checks("fg", "mala", agent=policy("", "mala")))
