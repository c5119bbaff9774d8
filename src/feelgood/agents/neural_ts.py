"""NeuralTS, plain and with the feel-good bonus in its loss."""

from jaxtyping import Array, Float, Int

from feelgood.agents.neural import TrainedState, with_bonus
from feelgood.agents.neural_design import DesignPolicy
from feelgood.core.policy import AGENTS, Hints
from feelgood.core.score_law import ScoreLaw
from feelgood.core.spec import Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.targets.bonus import FeelGood, SmoothedFeelGood


@AGENTS.register("neural-ts", family="Networks")
class NeuralTS(DesignPolicy):
    """A reward drawn from N(f, σ²) for every arm of a network; the largest is played.

    Zhang, Zhou, Li and Gu, "Neural Thompson sampling", ICLR 2021.
    """

    def choose(
        self, key: AnyKey, state: TrainedState, context: Float[Array, "..."]
    ) -> Int[Array, ""]:
        means, widths = self.scores(state, context)
        return lanes.argmax(means + widths * lanes.normal(key, state.spec.arms))

    def score_law(self, state: TrainedState, context: Float[Array, "..."]) -> ScoreLaw:
        """N(f, σ²) for each arm by itself, given the network."""
        means, widths = self.scores(state, context)
        return ScoreLaw(means, deviation=widths)

    def hints(self, spec: Spec) -> Hints:
        return super().hints(spec)._replace(scores=self.score_law)


AGENTS.add(
    with_bonus(NeuralTS, "fg-neural-ts", "NeuralTS with the feel-good bonus in its loss.", FeelGood)
)
AGENTS.add(
    with_bonus(
        NeuralTS,
        "sfg-neural-ts",
        "NeuralTS with the smoothed feel-good bonus in its loss.",
        SmoothedFeelGood,
    )
)
