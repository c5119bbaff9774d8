"""The logistic contextual bandit."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.core.testbed import Testbed
from feelgood.numerics import lanes
from feelgood.testbeds.naming import register_numbered


class LogisticState(NamedTuple):
    """The true parameter, shared by all arms."""

    theta: Float[Array, " dim"]


@register_numbered("logistic", "dim", ("logistic-20", "logistic-40"))
class Logistic(Testbed):
    """Bernoulli rewards: each arm shows a unit context; one shared unit parameter.

    θ* ~ N(0, I) scaled to length `norm`; each arm's context is Gaussian scaled to length 1; the
    reward of arm a is Bernoulli(σ(θ* · x_a)).
    """

    dim: int = setting(20, "dimension of the contexts", low=1, high=100_000)
    arms: int = setting(50, "number of arms", low=2, high=100_000)
    norm: Number = setting(1.0, "length of the true parameter", above=0.0, high=1e6)
    horizon: int = setting(10_000, "usual number of rounds", low=1, high=1_000_000_000)

    @property
    def spec(self) -> Spec:
        return Spec(arms=self.arms, dim=self.dim, shared=True, rewards="bernoulli")

    @property
    def rounds(self) -> int:
        return self.horizon

    def init(self, key: Key[Array, ""]) -> LogisticState:
        theta = jax.random.normal(key, (self.dim,))
        return LogisticState(theta=self.norm * theta / jnp.linalg.norm(theta))

    def context(
        self, key: Key[Array, ""], state: LogisticState, t: Int[Array, ""]
    ) -> Float[Array, "dim arms"]:
        del state, t
        x = jax.random.normal(key, (self.dim, self.arms))
        return x / jnp.linalg.norm(x, axis=0)

    def mean_rewards(
        self, state: LogisticState, context: Float[Array, "dim arms"], t: Int[Array, ""]
    ) -> Float[Array, " arms"]:
        del t
        return jax.nn.sigmoid(lanes.dot(state.theta[:, None], context))

    def rewards(
        self, key: Key[Array, ""], state: LogisticState, means: Float[Array, " arms"]
    ) -> Float[Array, " arms"]:
        del state
        return (jax.random.uniform(key) < means).astype(jnp.float32)

    def truth(self, state: LogisticState) -> Float[Array, " dim"]:
        return state.theta
