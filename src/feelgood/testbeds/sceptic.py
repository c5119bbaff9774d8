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
    """An arm that agents are open to, and others that the prior is too sure are worth nothing.

    Agents are told that the mean of arm 0 is N(0, gap²), and that of every other arm N(0, prior²).
    Arm 0 pays `gap`. In the bad world the last arm pays twice that: as many deviations from what
    the prior says as 2 · gap/prior. In the mirror it pays 0, as the prior has it, and so do all
    arms between. Linear agents see one coordinate per arm, that of arm 0 stretched to gap/prior,
    so that the prior N(0, prior²) of all parameters says the same.
    """

    prior: float = told_number(0.2, "standard deviation of the other arms' prior, which is told")
    world: str = world_setting(
        "bad: the last arm pays twice the gap; mirror: it pays 0; prior: all drawn from it"
    )
    arms: int = setting(2, "number of arms", low=2, high=100)
    gap: float = told_number(0.5, "what arm 0 pays, and the best arm more than it")

    @property
    def spec(self) -> Spec:
        deviations = (self.gap, *(self.prior,) * (self.arms - 1))
        known = GaussianArms.alone(deviations, self.noise)
        return Spec(arms=self.arms, dim=self.arms, shared=True, known=known)

    def shown(self) -> Float[Array, "arms arms"]:
        return jnp.diag(jnp.ones(self.arms).at[0].set(self.gap / self.prior))

    def parameters_of(self, key: Key[Array, ""]) -> Float[Array, " arms"]:
        if self.world == "prior":
            return self.prior * jax.random.normal(key, (self.arms,))
        last = 2.0 * self.gap if self.world == "bad" else 0.0
        return jnp.zeros(self.arms).at[0].set(self.prior).at[-1].set(last)
