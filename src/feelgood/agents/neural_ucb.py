"""NeuralUCB."""

from jaxtyping import Array, Float, Int

from feelgood.agents.neural import TrainedState
from feelgood.agents.neural_design import DesignPolicy
from feelgood.core.policy import AGENTS
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.numerics.lanes import Mask


@AGENTS.register("neural-ucb", family="Networks")
class NeuralUCB(DesignPolicy):
    """The arm with the largest f + σ of a network, σ from its design matrix.

    Zhou, Li and Gu, "Neural contextual bandits with UCB-based exploration", ICML 2020.
    """

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
