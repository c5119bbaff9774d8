"""The agent that does not learn."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.core.policy import AGENTS, Hints, Policy, Report
from feelgood.core.spec import Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.numerics.lanes import Mask


@AGENTS.register("uniform", family="Greedy and random")
class Uniform(Policy):
    """Every arm with the same probability: the yardstick that an agent must beat."""

    def init(self, key: AnyKey, spec: Spec) -> Float[Array, "arms *lanes"]:
        del key
        return jnp.zeros((spec.arms, *spec.lanes))

    def choose(
        self,
        noise: AnyKey,
        state: Float[Array, "arms *lanes"],
        context: Float[Array, "..."],
        allowed: Mask = None,
    ) -> Int[Array, "*lanes"]:
        del context
        # All chains are offered the same arms.
        some = state.shape[0] if allowed is None else jnp.max(jnp.sum(allowed, axis=0))
        return lanes.nth_allowed(lanes.randint(noise, 1, some)[0], allowed)

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
        self, state: Float[Array, "arms *lanes"], context: Float[Array, "..."], allowed: Mask = None
    ) -> Float[Array, "arms *lanes"]:
        """1/K."""
        del context
        law = jnp.full_like(state, 1.0 / lanes.allowed_count(state.shape[0], allowed))
        return law if allowed is None else jnp.where(allowed, law, 0.0)
