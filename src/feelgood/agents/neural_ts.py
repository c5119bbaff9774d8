"""NeuralTS, plain and with the feel-good bonus in its loss."""

import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.agents.neural import TrainedState, with_bonus
from feelgood.agents.neural_design import DESIGNS, DesignPolicy
from feelgood.agents.neural_model import NeuralModelPolicy, noise_health
from feelgood.core.policy import AGENTS, Hints, Report
from feelgood.core.score_law import ScoreLaw
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey, fold_in
from feelgood.numerics.lanes import Mask
from feelgood.targets.bonus import FeelGood, SmoothedFeelGood
from feelgood.targets.network_noise import NetworkNoise
from feelgood.targets.networks import Network

#: ν and reg where only one of them is given.
_NU, _REG = 0.1, 0.01


class Explorer(NamedTuple):
    """Σ g gᵀ (with reg I, in the paper's words), and what is learned of the noise."""

    squares: Float[Array, "..."]
    noise: NetworkNoise | None


@AGENTS.register("neural-ts", family="Networks")
class NeuralTS(NeuralModelPolicy, DesignPolicy):
    """A reward drawn from N(f, v) for every arm of a network; the largest is played.

    v = σ²τ gᵀU⁻¹g with U = ρI + Σ g gᵀ and ρ = σ²/s²: the posterior of the network linearised in
    its weights, as far as U tells it. The network minimises Σ (r − f)² + ρ‖θ‖². Bernoulli rewards
    weigh each g gᵀ with μ(1 − μ), and σ = 1. In the paper's words U = reg I + Σ g gᵀ and
    v = reg · ν · gᵀU⁻¹g, with weight decay reg/t.

    Zhang, Zhou, Li and Gu, "Neural Thompson sampling", ICLR 2021.
    """

    papers: ClassVar[tuple[str, ...]] = ("nu", "reg")

    nu: Number | None = setting(
        "auto", "the paper's scale ν of the variance", low=0.0, high=1e9, open_word="auto"
    )
    reg: Number | None = setting(
        "auto",
        "the paper's reg of the design matrix and of the weight decay reg/t",
        above=0.0,
        high=1e9,
        open_word="auto",
    )
    design: str = setting(
        "last-layer", "design matrix: diagonal over all parameters, or last layer", choices=DESIGNS
    )

    def _papers(self) -> tuple[Number, Number]:
        """ν and reg."""
        nu = jnp.asarray(_NU) if self.nu is None else self.nu
        return nu, jnp.asarray(_REG) if self.reg is None else self.reg

    def _ratio(self, state: TrainedState) -> tuple[Number, Number]:
        """ρ and σ²."""
        scales = self.network_scales(state.spec, state.extra.noise)
        return scales.noise / scales.prior, scales.noise

    def weight_decay(self, state: TrainedState) -> Number:
        """As the prior has it; the Bernoulli loss is a log-likelihood, and (r − f)² twice one."""
        if self.in_papers_words():
            return self._papers()[1]
        return (1.0 if self._bernoulli(state.spec) else 2.0) * self._ratio(state)[0]

    def explorer(self, network: Network) -> Explorer:
        start = self._papers()[1] if self.in_papers_words() else jnp.zeros(())
        return Explorer(self.ridge(network, start), self.first_noise(network.spec))

    def matrix(self, state: TrainedState) -> Float[Array, "..."]:
        squares = state.extra.squares
        if self.in_papers_words():
            return squares
        return squares + self.ridge(self.network(state.spec), self._ratio(state)[0])

    def variance(self, state: TrainedState) -> Number:
        if self.in_papers_words():
            nu, reg = self._papers()
            return reg * nu * self.temperature
        return self._ratio(state)[1] * self.temperature

    def observed(
        self,
        state: TrainedState,
        context: Float[Array, "..."],
        arm: Int[Array, ""],
        reward: Float[Array, ""],
    ) -> Explorer:
        del reward
        square = self.square(state, context, arm)
        if not self.in_papers_words() and self._bernoulli(state.spec):
            mean = jax.nn.sigmoid(self.network(state.spec).scores(state.theta, context)[arm])
            square = mean * (1.0 - mean) * square
        return state.extra._replace(squares=state.extra.squares + square)

    def draw(self, noise: AnyKey, state: TrainedState) -> TrainedState:
        """The network learns, if it is time to; then σ² is renewed."""
        state, key = super().draw(noise, state), fold_in(noise, 3)
        old = state.extra.noise
        learned = self.renewed(key, old, state.theta, state.replay, state.spec)
        return dataclasses.replace(state, extra=state.extra._replace(noise=learned))

    def choose(
        self,
        key: AnyKey,
        state: TrainedState,
        context: Float[Array, "..."],
        allowed: Mask = None,
    ) -> Int[Array, ""]:
        means, widths = self.scores(state, context)
        return lanes.argmax(means + widths * lanes.normal(key, state.spec.arms), allowed)

    def score_law(self, state: TrainedState, context: Float[Array, "..."]) -> ScoreLaw:
        """N(f, v) for each arm by itself, given the network."""
        means, widths = self.scores(state, context)
        return ScoreLaw(means, deviation=widths)

    def hints(self, spec: Spec) -> Hints:
        return super().hints(spec)._replace(scores=self.score_law)

    def report(self, state: TrainedState) -> Report:
        return super().report(state)._replace(health=noise_health(state.extra.noise))


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
