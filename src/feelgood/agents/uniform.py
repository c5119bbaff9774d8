"""The agent that does not learn."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.core.protocols import AGENTS, Policy
from feelgood.core.spec import Spec
from feelgood.numerics import lanes
from feelgood.numerics.lanes import AnyKey


@AGENTS.register("uniform")
class Uniform(Policy):
    """Every arm with the same probability: the yardstick that an agent must beat."""

    laned = True

    def init(self, key: AnyKey, spec: Spec, shape: tuple[int, ...] = ()) -> Float[Array, "arms *l"]:
        del key
        return jnp.zeros((spec.arms, *shape))

    def act(
        self, key: AnyKey, state: Float[Array, "arms *l"], context: Float[Array, "..."]
    ) -> tuple[Int[Array, "*l"], Float[Array, "arms *l"]]:
        del context
        return lanes.randint(key, 1, state.shape[0])[0], state

    def update(
        self,
        state: Float[Array, "arms *l"],
        context: Float[Array, "..."],
        arm: Int[Array, "*l"],
        reward: Float[Array, "*l"],
    ) -> Float[Array, "arms *l"]:
        del context, arm, reward
        return state

    def probe(self, state: Float[Array, "arms *l"]) -> Float[Array, "*l"]:
        return state[0]
