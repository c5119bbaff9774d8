"""The linear contextual bandit."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from feelgood.core.errors import FeelgoodError
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.core.testbed import Testbed
from feelgood.numerics import generator, lanes
from feelgood.testbeds.naming import register_numbered


class LinearState(NamedTuple):
    """The true parameters, one column per arm."""

    theta: Float[Array, "dim arms"]


@register_numbered("linear", "parameters", ("linear-20", "linear-40"))
class Linear(Testbed):
    """Linear rewards: Gaussian contexts, one parameter block per arm, Gaussian noise.

    θ* ~ N(0, I) of length `parameters`, split evenly over the arms; x_t ~ N(0, scale² I);
    the reward of arm a is N(θ*_a · x_t, noise²). The block feature x ⊗ e_a is never built.
    `condition` stretches the context's coordinates to standard deviations from `scale` down to
    `scale`/√`condition`, so that the features' covariance has that condition number.
    """

    parameters: int = setting(20, "number of parameters, over all arms", low=1, high=100_000)
    arms: int = setting(
        5, "number of arms; must divide the number of parameters", low=2, high=100_000
    )
    noise: Number = setting(0.5, "standard deviation of the rewards", low=0.0, high=1e6)
    scale: Number = setting(1.0, "standard deviation of the contexts", low=1e-6, high=1e6)
    condition: Number = setting(1.0, "condition number of the contexts", low=1.0, high=1e8)
    horizon: int = setting(10_000, "usual number of rounds", low=1, high=1_000_000_000)

    def __check_init__(self) -> None:
        if self.parameters % self.arms:
            nearest = max(1, round(self.parameters / self.arms)) * self.arms
            raise FeelgoodError(
                f"linear-{self.parameters} cannot be split over {self.arms} arms: "
                f"use a multiple of {self.arms}, such as linear-{nearest}."
            )

    @property
    def spec(self) -> Spec:
        return Spec(arms=self.arms, dim=self.parameters // self.arms)

    @property
    def rounds(self) -> int:
        return self.horizon

    def init(self, key: Key[Array, ""]) -> LinearState:
        return LinearState(theta=jax.random.normal(key, (self.spec.dim, self.arms)))

    def context(
        self, key: Key[Array, ""], state: LinearState, t: Int[Array, ""]
    ) -> Float[Array, " dim"]:
        del state, t
        dim = self.spec.dim
        stretch = self.scale * self.condition ** (-0.5 * jnp.linspace(0.0, 1.0, dim))
        return stretch * generator.normals(key, dim)

    def mean_rewards(
        self, state: LinearState, context: Float[Array, " dim"], t: Int[Array, ""]
    ) -> Float[Array, " arms"]:
        del t
        return lanes.dot(state.theta, context[:, None])

    def rewards(
        self, key: Key[Array, ""], state: LinearState, means: Float[Array, " arms"]
    ) -> Float[Array, " arms"]:
        del state
        return means + self.noise * generator.normals(key, 1)

    def truth(self, state: LinearState) -> Float[Array, "dim arms"]:
        return state.theta

    def reward_noise(self) -> Number:
        return self.noise
