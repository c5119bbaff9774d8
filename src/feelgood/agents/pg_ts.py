"""Thompson sampling for logistic models by Pólya–Gamma augmentation."""

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from feelgood.agents.estimates import EstimateState, FittedState
from feelgood.agents.laplace_ts import LaplaceTS
from feelgood.agents.linear_scores import precision_law
from feelgood.core.policy import AGENTS, Hints, Needs
from feelgood.core.score_law import ScoreLaw
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey, fold_in
from feelgood.numerics.polya_gamma import polya_gamma
from feelgood.targets.history import Chunk, played_scores
from feelgood.targets.logistic_fit import plus_identity, weighted_gram
from feelgood.targets.sums import Theta, scaled_identity


class GibbsChain(NamedTuple):
    """Where the chain is, Σ (r − ½) x, which every step needs, and what its last step drew from."""

    theta: Theta
    pull: Theta
    #: P⁻¹b, and the Cholesky factor of P.
    mean: Theta
    lower: Float[Array, "dim dim blocks *lanes"]


@AGENTS.register("pg-ts", family="Thompson sampling from a formula")
class PolyaGammaTS(LaplaceTS):
    """Thompson sampling with a Gibbs sampler of a logistic model's exact posterior.

    Given θ, every past round has ω ~ PG(1, x·θ). Given these, θ ~ N(P⁻¹b, P⁻¹) with
    P = Σ ω x xᵀ + I/s² and b = Σ (r − ½) x. The chain goes on from the round before; its law is the
    posterior, without a step size and without rejections. Plays argmax_a f_θ(x, a).

    The temperature τ widens the last normal law, N(P⁻¹b, τP⁻¹), of the θ that is played; the chain
    itself has temperature 1. With rewards that are not Bernoulli this is `laplace-ts`.

    Dumitrascu, Feng and Engelhardt, "PG-TS: improved Thompson sampling for logistic contextual
    bandits", NeurIPS 2018; Polson, Scott and Windle, "Bayesian inference for logistic models using
    Pólya–Gamma latent variables", JASA 2013.
    """

    steps: int = setting(1, "steps of the Gibbs sampler per round", low=1, high=10_000)

    def first_fit(self, spec: Spec, precision: Number) -> GibbsChain:
        zero = jnp.zeros((spec.dim, spec.blocks, *spec.lanes))
        return GibbsChain(zero, zero, zero, scaled_identity(spec, precision))

    def refit(
        self,
        state: FittedState,
        x: Float[Array, "dim *lanes"],
        block: Float[Array, "blocks *lanes"],
        reward: Float[Array, "*lanes"],
        anew: Bool[Array, "*lanes"],
    ) -> GibbsChain:
        del anew
        more = ((reward - 0.5) * x)[:, None] * block
        return state.fit._replace(pull=state.fit.pull + more)

    def needs(self, spec: Spec) -> Needs:
        return super().needs(spec) if self.squared(spec) else Needs(draw="key", choose=0)

    def draw(self, noise: Any, state: EstimateState) -> EstimateState:
        """Steps of the Gibbs sampler: a new θ."""
        if not isinstance(state, FittedState):
            return super().draw(noise, state)
        fit, played = state.fit, state.fit.theta
        for step in range(self.steps):
            fit, played = self._step(fold_in(noise, step), state, fit)
        return dataclasses.replace(state, fit=fit, theta=played)

    def _step(self, key: AnyKey, state: FittedState, fit: GibbsChain) -> tuple[GibbsChain, Theta]:
        """One step of the chain, and its new θ at the temperature."""
        coins = fold_in(key, 0)

        def of_chunk(chunk: Chunk, theta: Theta) -> Float[Array, "dim dim blocks *lanes"]:
            assert chunk.features is not None
            scores, block = played_scores(state.spec, theta, chunk.features, chunk.arms)
            weights = polya_gamma(coins, scores) * chunk.valid
            return weighted_gram(block * weights, chunk.features)

        lower = lanes.cholesky(
            plus_identity(state.rows.total(of_chunk, fit.theta), self.precision(state))
        )
        mean = lanes.solve_upper(lower, lanes.solve_lower(lower, state.fit.pull))
        normal = lanes.normal(fold_in(key, 1), state.spec.parameters).reshape(mean.shape)
        away = lanes.solve_upper(lower, normal)
        moved = fit._replace(theta=mean + away, mean=mean, lower=lower)
        return moved, mean + jnp.sqrt(self.temperature) * away

    def scores(self, state: EstimateState, context: Float[Array, "..."]) -> ScoreLaw:
        """N(x·P⁻¹b, τ x·P⁻¹x), given ω of the round's last step."""
        if not isinstance(state, FittedState):
            return super().scores(state, context)
        fit, heat = state.fit, jnp.broadcast_to(self.temperature, state.spec.lanes)
        return precision_law(state.spec, context, fit.mean, fit.lower, heat)

    def hints(self, spec: Spec) -> Hints:
        hints = super().hints(spec)
        if self.squared(spec):
            return hints
        target = hints.target
        if target is not None and target.beta != 1.0:
            target = None
        return hints._replace(exact_draws=False, target=target)
