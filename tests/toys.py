"""A small testbed and small agents, written from outside the package."""

from typing import Any

import jax
import jax.numpy as jnp

from feelgood import Policy, Spec, Testbed, setting
from feelgood.core.policy import Hints, Report
from feelgood.core.spec import Number
from feelgood.numerics import lanes


class Coins(Testbed):
    """Arms that pay 0, 1, 2, … in every round; the context is noise."""

    @property
    def spec(self) -> Spec:
        return Spec(arms=3, dim=2)

    @property
    def rounds(self) -> int:
        return 40

    def init(self, key: Any) -> tuple[()]:
        return ()

    def context(self, key: Any, state: Any, t: Any) -> Any:
        return jax.random.normal(key, (2,))

    def mean_rewards(self, state: Any, context: Any, t: Any) -> Any:
        return jnp.arange(3.0)

    def rewards(self, key: Any, state: Any, means: Any) -> Any:
        return means + jax.random.normal(key, (3,))


class Doomed(Policy):
    """Plays arm 2; the chain whose first uniform is `mark` becomes NaN in round `round`."""

    mark: Number = setting(-1.0, "the first uniform of the chain that breaks")
    round: Number = setting(10.0, "when", low=1.0)

    def init(self, key: Any, spec: Spec) -> Any:
        first = lanes.uniform(key, 1)[0]
        return {"doomed": first == self.mark, "count": jnp.zeros(first.shape), "sum": 0 * first}

    def choose(self, noise: Any, state: Any, context: Any) -> Any:
        return jnp.full(state["count"].shape, 2, jnp.int32)

    def update(self, state: Any, context: Any, arm: Any, reward: Any) -> Any:
        count = state["count"] + 1
        bad = state["doomed"] & (count == self.round)
        return {**state, "count": count, "sum": jnp.where(bad, jnp.nan, state["sum"] + reward)}

    def report(self, state: Any) -> Report:
        return Report(finite=jnp.isfinite(state["sum"]), health={"count": state["count"]})


class LanedDoomed(Doomed):
    """The same, told that it takes lanes as they are."""

    def hints(self, spec: Spec) -> Hints:
        return Hints(layout="lanes")


class Biased(Policy):
    """Plays the arm with the largest entry of `weights` + noise; written for one chain."""

    weights: jax.Array
    width: Number = setting(1.0, "size of the noise", low=0.0)

    def init(self, key: Any, spec: Spec) -> Any:
        return {"start": jax.random.normal(key, (spec.arms,)), "plays": jnp.zeros(spec.arms)}

    def choose(self, noise: Any, state: Any, context: Any) -> Any:
        drawn = jax.random.normal(noise, self.weights.shape)
        return jnp.argmax(self.weights + state["start"] + self.width * drawn)

    def update(self, state: Any, context: Any, arm: Any, reward: Any) -> Any:
        return {**state, "plays": state["plays"].at[arm].add(1.0)}


class Witness(Policy):
    """Plays one arm for ever and reports what it sees as health."""

    arm: Number = setting(0.0, "which", low=0.0)

    def init(self, key: Any, spec: Spec) -> Any:
        return {"context": jnp.zeros(spec.lanes), "reward": jnp.zeros(spec.lanes)}

    def choose(self, noise: Any, state: Any, context: Any) -> Any:
        return jnp.broadcast_to(self.arm, state["reward"].shape).astype(jnp.int32)

    def update(self, state: Any, context: Any, arm: Any, reward: Any) -> Any:
        axes = tuple(range(context.ndim - reward.ndim))
        return {"context": jnp.sum(context, axis=axes), "reward": reward}

    def report(self, state: Any) -> Report:
        return Report(finite=jnp.isfinite(state["reward"]), health=state)

    def hints(self, spec: Spec) -> Hints:
        return Hints(layout="lanes")
