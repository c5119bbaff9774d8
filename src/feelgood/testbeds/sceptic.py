"""The sceptic: a prior that is too sure that no arm is worth much."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from feelgood.core.knowledge import GaussianArms
from feelgood.core.settings import setting
from feelgood.core.spec import Spec
from feelgood.testbeds.naming import register_numbered
from feelgood.testbeds.worlds import FixedArms, told_number, world_setting


@register_numbered("sceptic", "prior", ("sceptic-0.1", "sceptic-0.3"))
class Sceptic(FixedArms):
    """Independent arms with normal rewards, and a prior that is too confident.

    Agents are told that every arm's mean is N(0, prior²). In the bad world all arms pay `gap` and
    the last one twice that: an arm that was played looks better than any untried one can be, and
    plain Thompson sampling stays with it. In the mirror all arms pay as much less than 0.
    """

    prior: float = told_number(0.2, "standard deviation of the prior, which agents are told")
    world: str = world_setting(
        "bad: arms pay the gap, the last one twice; mirror: the same below 0; prior: drawn from it"
    )
    arms: int = setting(2, "number of arms", low=2, high=100)
    gap: float = told_number(0.5, "what the best arm pays more than the others")

    @property
    def spec(self) -> Spec:
        known = GaussianArms.alike(self.arms, self.prior, self.noise)
        return Spec(arms=self.arms, dim=1, known=known)

    def shown(self) -> Float[Array, " 1"]:
        return jnp.ones(1)

    def parameters_of(self, key: Key[Array, ""]) -> Float[Array, "1 arms"]:
        if self.world == "prior":
            return self.prior * jax.random.normal(key, (1, self.arms))
        paid = jnp.full((1, self.arms), self.gap).at[0, -1].set(2.0 * self.gap)
        return paid if self.world == "bad" else -paid
