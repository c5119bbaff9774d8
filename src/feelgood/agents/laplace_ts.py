"""Thompson sampling from a normal law around the posterior's mode."""

import dataclasses
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.agents.estimates import EstimatePolicy, EstimateState
from feelgood.agents.linear_scores import precision_law
from feelgood.core.policy import AGENTS, Hints, Needs, Report
from feelgood.core.score_law import ScoreLaw
from feelgood.core.spec import Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.numerics.lanes import Mask
from feelgood.targets import models


@AGENTS.register("laplace-ts", family="Thompson sampling from a formula")
class LaplaceTS(EstimatePolicy):
    """Thompson sampling with Laplace's approximation of a logistic model's posterior.

    θ ~ N(θ̂, τ H(θ̂)⁻¹) with θ̂ = argmin L, L(θ) = Σ [log(1 + e^{x·θ}) − r x·θ] + ‖θ‖²/(2s²) and
    H = ∇²L; plays argmax_a f_θ(x, a). With H = L Lᵀ the draw is θ̂ + √τ L⁻ᵀz, z standard normal.
    With rewards that are not Bernoulli the law is the exact posterior N(V⁻¹b, σ²τV⁻¹) of a linear
    model. That is `lints`, but for a learned σ, which is its estimate and not drawn.

    Chapelle and Li, "An empirical evaluation of Thompson sampling", NeurIPS 2011, with a diagonal
    H; Kveton et al., "Randomized exploration in generalized linear bandits", AISTATS 2020.
    """

    def init(self, key: AnyKey, spec: Spec) -> Any:
        theta = jnp.zeros((spec.dim, spec.blocks, *spec.lanes))
        return dataclasses.replace(super().init(key, spec), theta=theta)

    def needs(self, spec: Spec) -> Needs:
        return Needs(draw=spec.parameters, choose=0)

    def draw(self, noise: Float[Array, "normals *lanes"], state: EstimateState) -> EstimateState:
        mean, lower, variance = self.estimate(state)
        normal = jnp.sqrt(variance * self.widening(state.spec)) * noise.reshape(mean.shape)
        return dataclasses.replace(state, theta=mean + lanes.solve_upper(lower, normal))

    def choose(
        self,
        noise: None,
        state: EstimateState,
        context: Float[Array, "..."],
        allowed: Mask = None,
    ) -> Int[Array, "*lanes"]:
        del noise
        assert state.theta is not None
        return lanes.argmax(models.scores(state.spec, state.theta, context), allowed)

    def scores(self, state: EstimateState, context: Float[Array, "..."]) -> ScoreLaw:
        """N(x·θ̂, τ x·H⁻¹x)."""
        mean, lower, variance = self.estimate(state)
        variance = variance * self.widening(state.spec)
        return precision_law(state.spec, context, mean, lower, variance)

    def report(self, state: EstimateState) -> Report:
        assert state.theta is not None
        parameters = state.theta.reshape(state.spec.parameters, *state.spec.lanes)
        return super().report(state)._replace(parameters=parameters)

    def hints(self, spec: Spec) -> Hints:
        target = self.linear_target(spec)
        return (
            super()
            .hints(spec)
            ._replace(exact_draws=True, linear=True, target=target, scores=self.scores)
        )
