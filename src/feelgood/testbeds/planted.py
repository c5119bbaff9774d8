"""The linear bandit with a planted correlation, on which the paper looks at posteriors."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.core.testbed import TESTBEDS, Testbed
from feelgood.numerics import generator, lanes


class PlantedState(NamedTuple):
    """The true parameters, one column per arm."""

    theta: Float[Array, "dim arms"]


@TESTBEDS.register("planted")
class Planted(Testbed):
    """Linear rewards with correlated contexts: posteriors are tilted ellipses.

    θ*_a ~ N(0, I). The context is standard normal; then its first coordinate is multiplied by 1.7,
    and its second becomes 0.55 × itself + 0.6 × the first. The reward of arm a is
    N(θ*_a · x, noise²).
    """

    arms: int = setting(6, "number of arms", low=2, high=4096)
    dim: int = setting(20, "dimension of the contexts", low=2, high=100_000)
    noise: Number = setting(0.5, "standard deviation of the rewards", low=0.0, high=1e6)
    horizon: int = setting(2_000, "usual number of rounds", low=1, high=1_000_000_000)

    @property
    def spec(self) -> Spec:
        return Spec(arms=self.arms, dim=self.dim)

    @property
    def rounds(self) -> int:
        return self.horizon

    def init(self, key: Key[Array, ""]) -> PlantedState:
        return PlantedState(theta=jax.random.normal(key, (self.dim, self.arms)))

    def context(
        self, key: Key[Array, ""], state: PlantedState, t: Int[Array, ""]
    ) -> Float[Array, " dim"]:
        del state, t
        x = generator.normals(key, self.dim)
        first = 1.7 * x[0]
        return jnp.concatenate([jnp.stack([first, 0.55 * x[1] + 0.6 * first]), x[2:]])

    def mean_rewards(
        self, state: PlantedState, context: Float[Array, " dim"], t: Int[Array, ""]
    ) -> Float[Array, " arms"]:
        del t
        return lanes.dot(state.theta, context[:, None])

    def rewards(
        self, key: Key[Array, ""], state: PlantedState, means: Float[Array, " arms"]
    ) -> Float[Array, " arms"]:
        del state
        return means + self.noise * generator.normals(key, 1)

    def truth(self, state: PlantedState) -> Float[Array, "dim arms"]:
        return state.theta

    def reward_noise(self) -> Number:
        return self.noise
