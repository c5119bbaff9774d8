"""NeuralUCB."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.agents.neural import TrainedPolicy, TrainedState
from feelgood.agents.neural_design import DesignPolicy
from feelgood.core.policy import AGENTS
from feelgood.core.settings import setting
from feelgood.core.spec import Number
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.numerics.lanes import Mask
from feelgood.targets.networks import Network


@AGENTS.register("neural-ucb", family="Networks")
class NeuralUCB(DesignPolicy, TrainedPolicy):
    """The arm with the largest f + σ of a network, σ² = reg · ν · gᵀU⁻¹g from its design matrix.

    Of the last layer's U a root of the inverse is kept, which stays right in float32 whatever reg.

    Zhou, Li and Gu, "Neural contextual bandits with UCB-based exploration", ICML 2020.
    """

    nu: Number = setting(0.1, "scale ν of the variance", low=0.0, high=1e9, tune=(1e-3, 10.0))
    reg: Number = setting(
        0.01, "regularisation: of the design matrix, and weight decay reg/t", above=0.0, high=1e9
    )

    def explorer(self, network: Network) -> Float[Array, "..."]:
        diagonal = self.design == "diagonal"
        return self.ridge(network, self.reg if diagonal else 1.0 / jnp.sqrt(self.reg))

    def matrix(self, state: TrainedState) -> Float[Array, "..."]:
        return state.extra

    def variance(self, state: TrainedState) -> Number:
        del state
        return self.reg * self.nu

    def whitened(
        self, state: TrainedState, features: Float[Array, "arms width"]
    ) -> Float[Array, "width arms"]:
        return state.extra @ features.T

    def observed(
        self,
        state: TrainedState,
        context: Float[Array, "..."],
        arm: Int[Array, ""],
        reward: Float[Array, ""],
    ) -> Float[Array, "..."]:
        del reward
        if self.design == "diagonal":
            return state.extra + self.square(state, context, arm)
        return lanes.inverse_root_update(state.extra, self.played_feature(state, context, arm))

    def choose(
        self,
        key: AnyKey,
        state: TrainedState,
        context: Float[Array, "..."],
        allowed: Mask = None,
    ) -> Int[Array, ""]:
        del key
        means, widths = self.scores(state, context)
        return lanes.argmax(means + widths, allowed)
