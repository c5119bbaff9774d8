"""Ensemble++: draws by a matrix that learns the posterior's root from random signs of the data."""

import dataclasses
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.agents.linear_scores import each_arm
from feelgood.agents.model_settings import ModelPolicy
from feelgood.agents.ridge import RidgeAgent, RidgeState
from feelgood.core.policy import AGENTS, Hints, Needs, Report
from feelgood.core.score_law import ScoreLaw
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.numerics.lanes import Mask
from feelgood.targets import models
from feelgood.targets.sums import Value


class EnsembleState(RidgeState):
    """A ridge posterior, and what its root is made of."""

    #: Z₀, the root of the prior, and Σ x zᵀ.
    start: Float[Array, "dim members blocks *lanes"]
    seen: Float[Array, "dim members blocks *lanes"]
    #: z of this round.
    z: Float[Array, "members *lanes"]


@AGENTS.register("ensemble++", family="Thompson sampling by perturbation")
class EnsemblePlusPlus(ModelPolicy, RidgeAgent):
    """Thompson sampling by a matrix of M columns that is updated with the covariance.

    θ = V⁻¹b + √τ A ζ with A = σ V⁻¹(√ρ Z₀ + Σ x zᵀ), V = ρI + Σ x xᵀ; plays argmax_a f_θ(x, a).
    In every round ζ ~ N(0, I), and z ~ N(0, I/M) is kept with the round's x; Z₀ has entries
    N(0, 1/M). This is A ← Σ_t(Σ_{t−1}⁻¹A + x zᵀ/σ) with the posterior's covariance Σ = σ²V⁻¹,
    written so that a learned σ and ρ may change. For contexts that do not depend on z the mean
    of AAᵀ is Σ, and with M → ∞ it is `laplace-ts` in law. With M < d some directions are never
    explored. Rewards are taken as normal, Bernoulli ones too; a learned σ is its estimate.

    Li, Xu, Wang and Luo, "Scalable exploration via Ensemble++", arXiv 2407.13195, whose choices of
    z and ζ include these.
    """

    members: int = setting(32, "columns M of the matrix A", low=1, high=4096)

    def ratio(self) -> Number:
        assert self.noise is not None and self.prior is not None
        return (self.noise / self.prior) ** 2

    def init(self, key: AnyKey, spec: Spec) -> EnsembleState:
        ridge = super().init(key, spec)
        shape = (spec.dim, self.members, spec.blocks, *spec.lanes)
        normals = lanes.normal(key, spec.parameters * self.members).reshape(shape)
        return EnsembleState(
            **{**vars(ridge), "theta": jnp.zeros_like(ridge.ridge.white)},
            start=normals / jnp.sqrt(1.0 * self.members),
            seen=jnp.zeros(shape),
            z=jnp.zeros((self.members, *spec.lanes)),
        )

    def needs(self, spec: Spec) -> Needs:
        del spec
        return Needs(draw=2 * self.members, choose=0)

    def _columns(self, state: EnsembleState, ratio: Value) -> Array:
        """√ρ Z₀ + Σ x zᵀ."""
        return jnp.sqrt(ratio) * state.start + state.seen

    def draw(self, noise: Float[Array, "normals *lanes"], state: EnsembleState) -> EnsembleState:
        ridge, (variance, ratio) = state.ridge, self._scales(state)
        zeta, z = noise[: self.members], noise[self.members :] / jnp.sqrt(1.0 * self.members)
        columns = jnp.swapaxes(self._columns(state, ratio), 0, 1)
        pushed = lanes.solve_lower(ridge.factor, lanes.dot(columns, zeta[:, None, None]))
        white = ridge.white + jnp.sqrt(variance * self.temperature) * pushed
        return dataclasses.replace(state, theta=lanes.solve_upper(ridge.factor, white), z=z)

    def choose(
        self,
        noise: None,
        state: EnsembleState,
        context: Float[Array, "..."],
        allowed: Mask = None,
    ) -> Int[Array, "*lanes"]:
        del noise
        assert state.theta is not None
        return lanes.argmax(models.scores(state.spec, state.theta, context), allowed)

    def scores(self, state: EnsembleState, context: Float[Array, "..."]) -> ScoreLaw:
        """N(x·V⁻¹b, τ‖Aᵀx‖²) with one ζ for all arms, given A."""
        factor, (variance, ratio) = state.ridge.factor, self._scales(state)
        pulled = lanes.solve_lower(factor, each_arm(state.spec, context))
        pulled = jnp.sqrt(variance * self.temperature) * lanes.solve_upper(factor, pulled)
        mean = lanes.solve_upper(factor, state.ridge.white)
        root = lanes.dot(pulled[:, None], self._columns(state, ratio))
        return ScoreLaw(models.scores(state.spec, mean, context), root=jnp.swapaxes(root, 0, 1))

    def update(
        self,
        state: Any,
        context: Float[Array, "..."],
        arm: Int[Array, "*lanes"],
        reward: Float[Array, "*lanes"],
    ) -> Any:
        x, block = models.played(state.spec, context, arm)
        seen = state.seen + x[:, None, None] * state.z[:, None] * block
        state = dataclasses.replace(state, seen=seen)
        return super().update(state, context, arm, reward)

    def report(self, state: RidgeState) -> Report:
        assert state.theta is not None
        parameters = state.theta.reshape(state.spec.parameters, *state.spec.lanes)
        return super().report(state)._replace(parameters=parameters)

    def hints(self, spec: Spec) -> Hints:
        del spec
        return Hints(
            layout="lanes",
            exact_draws=True,
            linear=True,
            sums=True,
            rebuilt=self.rebuilt,
            scores=self.scores,
            matched=lambda noise, precision: {"noise": noise, "prior": precision**-0.5},
        )

    def rebuilt(self, state: Any, keep: Float[Array, ""]) -> Any:
        """As in a ridge posterior; Σ x zᵀ has the square root of a weight."""
        state = dataclasses.replace(state, seen=jnp.sqrt(keep) * state.seen)
        return super().rebuilt(state, keep)

    def _scales(self, state: RidgeState) -> tuple[Value, Value]:
        """σ², told or estimated, and ρ as it is in V."""
        spec = state.spec
        if self.noise is None:
            left, freedom = self.noise_law(state)
            variance = left / freedom
        else:
            variance = jnp.broadcast_to(self.noise**2, spec.lanes)
        if state.learned is None:
            return variance, jnp.broadcast_to(self.ratio(), spec.lanes)
        return variance, state.learned.scales.noise / state.learned.scales.prior
