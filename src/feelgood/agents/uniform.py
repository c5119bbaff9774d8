"""The agent that does not learn."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.core.policy import AGENTS, Hints, Policy, Report
from feelgood.core.spec import Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey


@AGENTS.register("uniform", family="Greedy and random")
class Uniform(Policy):
    """Every arm with the same probability: the yardstick that an agent must beat."""

    def init(self, key: AnyKey, spec: Spec) -> Float[Array, "arms *lanes"]:
        del key
        return jnp.zeros((spec.arms, *spec.lanes))

    def choose(
        self, noise: AnyKey, state: Float[Array, "arms *lanes"], context: Float[Array, "..."]
    ) -> Int[Array, "*lanes"]:
        del context
        return lanes.randint(noise, 1, state.shape[0])[0]

    def update(
        self,
        state: Float[Array, "arms *lanes"],
        context: Float[Array, "..."],
        arm: Int[Array, "*lanes"],
        reward: Float[Array, "*lanes"],
    ) -> Float[Array, "arms *lanes"]:
        del context, arm, reward
        return state

    def report(self, state: Float[Array, "arms *lanes"]) -> Report:
        return Report(finite=jnp.isfinite(state[0]))

    def hints(self, spec: Spec) -> Hints:
        del spec
        return Hints(layout="lanes", pmf=self.pmf)

    def pmf(
        self, state: Float[Array, "arms *lanes"], context: Float[Array, "..."]
    ) -> Float[Array, "arms *lanes"]:
        """1/K."""
        del context
        return jnp.full_like(state, 1.0 / state.shape[0])
