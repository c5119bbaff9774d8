"""Chains whose arms share parameters, and passes over their contexts beside the plain one."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from proofs.targets import agent, quick_jit

from feelgood import Spec
from feelgood.agents.thompson import Thompson
from feelgood.core.spec import Layout
from feelgood.numerics import generator
from feelgood.numerics.keys import LaneKeys
from feelgood.targets.bonus import on_scores
from feelgood.targets.history import Rows

SEEDS, SWEPT = 2, 3
CHAINS = SEEDS * SWEPT
KEYS = LaneKeys(keys=jax.vmap(generator.key)(jnp.arange(SEEDS)), settings=SWEPT)

FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "hard": ("fglmcts", {}),
    "sqrt": ("fglmcts", {"lam_schedule": "sqrt"}),
    "smoothed": ("sfglmcts", {"s": 2.0}),
    "linked": ("fglmcts", {}),
    "linked, smoothed": ("sfglmcts", {"s": 5.0, "lam_schedule": "sqrt"}),
}


def laid_out(spec: Spec, steps: Any, *, reads_all: bool) -> Spec:
    """For a sweep's chains."""
    layout = Layout(chains=CHAINS, settings=SWEPT, reads_all=reads_all, steps=steps)
    return dataclasses.replace(spec, layout=layout)


def swept(policy: Thompson) -> Thompson:
    """A sweep over the cap and the step."""
    values = jnp.repeat(jnp.asarray([0.3, 0.6, 1.5]), SEEDS)
    bonus = dataclasses.replace(policy.bonus, b=values)
    return dataclasses.replace(policy, step=policy.step * values, bonus=bonus)


def rows_of(spec: Spec, shown: np.ndarray, rounds: int) -> Rows:
    """Contexts [dim, arms, seeds, room] as rows."""
    rows = Rows.empty(spec, all_arms=True, played=False).reserve(shown.shape[-1])
    contexts = jnp.asarray(np.tile(shown, (1, 1, SWEPT, 1)))
    return eqx.tree_at(lambda r: (r.contexts, r.filled), rows, (contexts, jnp.asarray(rounds)))


def shown_to(spec: Spec, rounds: int, room: int) -> np.ndarray:
    """Contexts [dim, arms, seeds, room]; what is behind the last round must not matter."""
    rng = np.random.default_rng(rounds)
    shown = rng.normal(size=(spec.dim, spec.arms, SEEDS, room)).astype(np.float32)
    shown[..., rounds:] = 7.0
    return shown


def form_of(form: str) -> Any:
    """A bonus of this form, with a sweep over its cap."""
    name, values = FORMS[form]
    bonus = swept(agent(name, lam=0.5, **values)).bonus
    assert bonus is not None
    return on_scores(bonus, "bernoulli" if "linked" in form else "squared")


def points(dim: int, seed: int = 0) -> Any:
    """A θ per chain."""
    rng = np.random.default_rng([dim, seed])
    return jnp.asarray(rng.normal(size=(dim, 1, CHAINS)) / dim, jnp.float32)


def evaluation() -> Any:
    """Value, gradient, the value alone, and the memo after it; compiled once for one evaluator.

    A new one is compiled anew: a mutant must not find the program of another.
    """

    @quick_jit
    def evaluate(evaluator: Any, memo: Any, rows: Rows, theta: Any) -> Any:
        no_luck = jnp.zeros((0, CHAINS))
        value, gradient, after = evaluator.evaluate(memo, rows, theta, no_luck)
        return value, gradient, evaluator.value(memo, rows, theta, no_luck)[0], after

    return evaluate


def gaps_between(found: Any, plain: Any, rounds: int) -> tuple[float, float, float]:
    """How far value, gradient and value alone are from the plain ones, relative to their size."""
    assert np.abs(plain[1]).max() > 0.01 * rounds**0.5, "nothing to compare"
    every = [np.abs(one - other).max() for one, other in zip(found[:3], plain[:3], strict=True)]
    size, steep = max(1.0, np.abs(plain[0]).max()), max(1.0, np.abs(plain[1]).max())
    return every[0] / size, every[1] / steep, every[2] / size


def with_rounds(policy: Thompson, spec: Spec, rounds: int) -> Any:
    """A sweep's chains after some rounds; settings share their seed's contexts."""
    rng = np.random.default_rng(rounds)
    contexts = np.tile(rng.normal(size=(rounds, *spec.context_shape, SEEDS)), SWEPT)
    arms = jnp.asarray(rng.integers(0, spec.arms, (rounds, CHAINS)))
    data = (
        jnp.asarray(contexts, jnp.float32),
        jnp.asarray(rng.random((rounds, CHAINS)) < 0.5, float),
    )

    @quick_jit
    def learn(policy: Thompson, data: Any) -> Any:
        def one(t: Any, state: Any) -> Any:
            return policy.update(state, data[0][t], arms[t], data[1][t])

        state = policy.reserve(policy.init(KEYS, spec), 600)
        return jax.lax.fori_loop(0, rounds, one, state)

    return learn(policy, data)


@quick_jit
def draw(policy: Thompson, state: Any) -> Any:
    """One draw of all chains."""
    return policy.draw(KEYS, state)


def assert_same_draws(plain: Any, other: Any, begun: Any) -> None:
    """Up to rounding, and something was drawn."""
    assert np.all(np.abs(plain.chain.theta - begun).max(axis=(0, 1)) > 1e-3), "nothing was drawn"
    for one, another in zip(
        jax.tree.leaves((plain.chain.theta, plain.info)),
        jax.tree.leaves((other.chain.theta, other.info)),
        strict=True,
    ):
        size = max(1.0, np.abs(one).max())
        np.testing.assert_allclose(another, one, rtol=2e-5, atol=2e-5 * size)
