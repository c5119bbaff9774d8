"""NeuralUCB."""

from jaxtyping import Array, Float, Int

from feelgood.agents.neural import TrainedPolicy, TrainedState
from feelgood.agents.neural_design import DesignPolicy
from feelgood.core.policy import AGENTS
from feelgood.core.settings import setting
from feelgood.core.spec import Number
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.targets.networks import Network


@AGENTS.register("neural-ucb", family="Networks")
class NeuralUCB(DesignPolicy, TrainedPolicy):
    """The arm with the largest f + σ of a network, σ² = reg · ν · gᵀU⁻¹g from its design matrix.

    Zhou, Li and Gu, "Neural contextual bandits with UCB-based exploration", ICML 2020.
    """

    nu: Number = setting(0.1, "scale ν of the variance", low=0.0, high=1e9, tune=(1e-3, 10.0))
    reg: Number = setting(
        0.01, "regularisation: of the design matrix, and weight decay reg/t", above=0.0, high=1e9
    )

    def explorer(self, network: Network) -> Float[Array, "..."]:
        return self.ridge(network, self.reg)

    def matrix(self, state: TrainedState) -> tuple[Float[Array, "..."], Number]:
        return state.extra, self.reg * self.nu

    def observed(
        self,
        state: TrainedState,
        context: Float[Array, "..."],
        arm: Int[Array, ""],
        reward: Float[Array, ""],
    ) -> Float[Array, "..."]:
        del reward
        return state.extra + self.square(state, context, arm)

    def choose(
        self, key: AnyKey, state: TrainedState, context: Float[Array, "..."]
    ) -> Int[Array, ""]:
        del key
        means, widths = self.scores(state, context)
        return lanes.argmax(means + widths)
