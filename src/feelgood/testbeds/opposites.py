"""Opposites: a linear model that cannot be right."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from feelgood.core.knowledge import GaussianArms
from feelgood.core.spec import Spec
from feelgood.core.testbed import TESTBEDS
from feelgood.testbeds.worlds import FixedArms, FixedArmsState, told_number, world_setting


@TESTBEDS.register("opposites")
class Opposites(FixedArms):
    """Two arms that are said to pay θ and −θ, while in truth both pay: no θ is right.

    Agents are told θ ~ N(0, prior²) and see the features 1 and −1. In the bad world the arms pay
    `gap` and twice that: whichever is played says that it is the better one. In the mirror both
    lose as much, and each says that the other one is better.
    """

    world: str = world_setting(
        "bad: the arms pay the gap and twice that; mirror: they lose it; prior: θ and −θ"
    )
    gap: float = told_number(0.5, "what the best arm pays more than the other")
    prior: float = told_number(1.0, "standard deviation of θ before any data, which is told")

    @property
    def spec(self) -> Spec:
        own = self.prior**2
        known = GaussianArms((0.0, 0.0), ((own, -own), (-own, own)), self.noise)
        return Spec(arms=2, dim=1, shared=True, known=known)

    def shown(self) -> Float[Array, "1 2"]:
        return jnp.array([[1.0, -1.0]])

    def parameters_of(self, key: Key[Array, ""]) -> Float[Array, " 2"]:
        """The mean rewards themselves."""
        if self.world == "prior":
            theta = self.prior * jax.random.normal(key)
            return jnp.stack([theta, -theta])
        paid = jnp.array([self.gap, 2.0 * self.gap])
        return paid if self.world == "bad" else -paid

    def mean_rewards(
        self, state: FixedArmsState, context: Float[Array, "1 2"], t: Int[Array, ""]
    ) -> Float[Array, " 2"]:
        del context, t
        return state.theta

    def truth(self, state: FixedArmsState) -> None:
        del state
