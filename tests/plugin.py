"""A plugin: one agent and one testbed, registered from outside the package.

With FEELGOOD_TEST_STARTED set, the agent `tortoise` leaves that file when its program is made.
"""

import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from feelgood import AGENTS, TESTBEDS, Policy, Spec, Testbed, setting
from feelgood.core.spec import Number


@AGENTS.register("copycat")
class Copycat(Policy):
    """Plays the arm that paid best last time it was tried."""

    optimism: Number = setting(5.0, "what an untried arm is thought to pay", low=-100, high=100)

    def init(self, key: Any, spec: Spec) -> Any:
        return jnp.full(spec.arms, self.optimism)

    def choose(self, noise: Any, state: Any, context: Any) -> Any:
        return jnp.argmax(state)

    def update(self, state: Any, context: Any, arm: Any, reward: Any) -> Any:
        return state.at[arm].set(reward)


@AGENTS.register("tortoise")
class Tortoise(Copycat):
    """The same, after a long think."""

    def choose(self, noise: Any, state: Any, context: Any) -> Any:
        started = os.environ.get("FEELGOOD_TEST_STARTED")
        if started:
            Path(started).touch()
        thought = jax.lax.fori_loop(0, 1_000_000, lambda i, x: jnp.cos(x), context.sum())
        return jnp.argmax(state + 0 * thought)


@TESTBEDS.register("seesaw")
class Seesaw(Testbed):
    """Two arms; which is better changes with the sign of the context."""

    tilt: Number = setting(1.0, "how much better", low=0.0, high=10.0)

    @property
    def spec(self) -> Spec:
        return Spec(arms=2, dim=1)

    @property
    def rounds(self) -> int:
        return 25

    def init(self, key: Any) -> tuple[()]:
        return ()

    def context(self, key: Any, state: Any, t: Any) -> Any:
        return jax.random.normal(key, (1,))

    def mean_rewards(self, state: Any, context: Any, t: Any) -> Any:
        return self.tilt * jnp.concatenate([context, -context])

    def rewards(self, key: Any, state: Any, means: Any) -> Any:
        return means + 0.1 * jax.random.normal(key, (2,))
