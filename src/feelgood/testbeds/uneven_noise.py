"""Uneven noise: one arm is much noisier than the agents are told."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from feelgood.core.knowledge import GaussianArms
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.numerics import generator
from feelgood.testbeds.naming import register_numbered
from feelgood.testbeds.worlds import FixedArms, FixedArmsState, told_number, world_setting


@register_numbered("uneven-noise", "ratio", ("uneven-noise-4",))
class UnevenNoise(FixedArms):
    """Independent arms, one of them noisier than agents believe: early luck counts too much.

    Agents are told that every arm's mean is N(0, prior²) and that rewards have the deviation
    `noise`. The last arm pays `gap` and the others 0. In the bad world the rewards of the best arm
    have `ratio` times that deviation, in the mirror those of the others.
    """

    ratio: float = told_number(4.0, "the noisy arm's true deviation over that told")
    world: str = world_setting(
        "bad: the best arm is noisy; mirror: the others; prior: the last one, with drawn means"
    )
    arms: int = setting(2, "number of arms", low=2, high=100)
    gap: float = told_number(0.5, "what the best arm pays more than the others")
    prior: float = told_number(
        1.0, "standard deviation of the arms' means before any data, which agents are told"
    )

    @property
    def spec(self) -> Spec:
        known = GaussianArms.alone((self.prior,) * self.arms, self.noise)
        return Spec(arms=self.arms, dim=1, known=known)

    def shown(self) -> Float[Array, " 1"]:
        return jnp.ones(1)

    def parameters_of(self, key: Key[Array, ""]) -> Float[Array, "1 arms"]:
        if self.world == "prior":
            return self.prior * jax.random.normal(key, (1, self.arms))
        return jnp.zeros((1, self.arms)).at[0, -1].set(self.gap)

    def rewards(
        self, key: Key[Array, ""], state: FixedArmsState, means: Float[Array, " arms"]
    ) -> Float[Array, " arms"]:
        del state
        last = jnp.arange(self.arms) == self.arms - 1
        noisy = ~last if self.world == "mirror" else last
        spread = jnp.where(noisy, self.ratio * self.noise, self.noise)
        return means + spread * generator.normals(key, 1)

    def reward_noise(self) -> Number | None:
        return None
