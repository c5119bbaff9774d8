"""The linear trap: every coordinate is ordinary, and their sum is rare."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from feelgood.core.knowledge import GaussianArms
from feelgood.core.settings import setting
from feelgood.core.spec import Spec
from feelgood.testbeds.naming import register_numbered
from feelgood.testbeds.worlds import FixedArms, FixedArmsState, told_number, world_setting


@register_numbered("linear-trap", "coordinates", ("linear-trap-80", "linear-trap-160"))
class LinearTrap(FixedArms):
    """A linear bandit whose best arm is the sum of many coordinates, each of which is ordinary.

    Two arms that never change, and the prior θ ~ N(0, prior² I): arm 0 shows (1, …, 1)/√d on d
    coordinates, arm 1 shows one coordinate more. In the bad world each of the d coordinates is ½,
    so that arm 0 pays √d/2, and arm 1 pays `gap` less: either is far outside the prior of an arm's
    value, N(0, prior²). Plain Thompson sampling stays with the arm that it happens to learn first.

    With several `copies` the context chooses one of as many independent copies of both arms, each
    with coordinates of its own.
    """

    coordinates: int = setting(80, "number of coordinates d of arm 0", low=1, high=10_000)
    world: str = world_setting(
        "bad: each of the d coordinates is ½; mirror: −½; prior: all are drawn from the prior"
    )
    gap: float = told_number(0.5, "how much less than √d/2 arm 1 pays")
    prior: float = told_number(
        1.0, "standard deviation of the parameters' prior, which agents are told"
    )
    copies: int = setting(1, "independent copies, of which the context shows one", low=1, high=1000)

    @property
    def spec(self) -> Spec:
        known = GaussianArms.alone((self.prior,) * 2, self.noise, self.copies)
        dim = self.copies * (self.coordinates + 1)
        return Spec(arms=2, dim=dim, shared=True, known=known)

    def shown(self) -> Float[Array, "one_copy 2"]:
        """Both arms of one copy; the last coordinate is that of arm 1."""
        d = self.coordinates
        several = jnp.full(d + 1, 1.0 / math.sqrt(d)).at[d].set(0.0)
        return jnp.stack([several, jnp.zeros(d + 1).at[d].set(1.0)], axis=1)

    def context(
        self, key: Key[Array, ""], state: FixedArmsState, t: Int[Array, ""]
    ) -> Float[Array, "dim 2"]:
        del state, t
        if self.copies == 1:
            return self.shown()
        number = jax.random.randint(key, (), 0, self.copies)
        hot = (jnp.arange(self.copies) == number).astype(jnp.float32)
        return (hot[:, None, None] * self.shown()).reshape(self.spec.context_shape)

    def parameters_of(self, key: Key[Array, ""]) -> Float[Array, " dim"]:
        d = self.coordinates
        if self.world == "prior":
            return self.prior * jax.random.normal(key, (self.spec.dim,))
        level = 0.5 if self.world == "bad" else -0.5
        copy = jnp.full(d + 1, level).at[d].set(0.5 * math.sqrt(d) - self.gap)
        return jnp.tile(copy, self.copies)
