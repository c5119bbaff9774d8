"""Linear Thompson sampling from the exact posterior."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.agents.linear_scores import precision_law
from feelgood.agents.ridge import ModelRidgePolicy, RidgeState
from feelgood.core.policy import AGENTS, Hints, Needs, Report
from feelgood.core.score_law import ScoreLaw
from feelgood.core.settings import setting
from feelgood.core.spec import LinearTarget, Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.chi_square import NORMALS, chi_square
from feelgood.numerics.keys import AnyKey
from feelgood.numerics.lanes import Mask
from feelgood.targets import models


@AGENTS.register("lints", family="Thompson sampling from a formula")
class LinTS(ModelRidgePolicy):
    """Thompson sampling with the exact posterior of a linear model.

    θ ~ N(V⁻¹b, σ²τ V⁻¹) with V = ρI + Σ x xᵀ, ρ = σ²/s² and b = Σ r x. There is one block per arm
    where the arms have parameters of their own. Plays argmax_a f_θ(x, a). With V = L Lᵀ the draw is
    L⁻ᵀ(L⁻¹b + σ√τ z), z standard normal. Where the noise σ is learned, σ² is drawn from its own
    posterior (Σ r² − bᵀV⁻¹b)/χ²_n first, so that θ has a Student-t law. Where the prior s is
    learned, ρ is renewed as the data double (`feelgood.targets.scales`). The paper's η is 1/σ².

    Agrawal and Goyal, "Thompson sampling for contextual bandits with linear payoffs", ICML 2013.
    Riquelme, Tucker and Snoek, "Deep Bayesian bandits showdown", ICLR 2018, for the conjugate law.
    """

    eta: Number | None = setting(
        "auto",
        "inverse variance η of the rewards; auto: noise⁻²",
        above=0.0,
        high=1e9,
        open_word="auto",
    )

    def init(self, key: AnyKey, spec: Spec) -> RidgeState:
        state = super().init(key, spec)
        return dataclasses.replace(state, theta=jnp.zeros_like(state.ridge.white))

    def _precision(self) -> Number | None:
        """1/σ²; None where it is learned."""
        if self.in_papers_words():
            return jnp.asarray(1.0, jnp.float32) if self.eta is None else self.eta
        return None if self.noise is None else 1.0 / self.noise**2

    def needs(self, spec: Spec) -> Needs:
        more = NORMALS if self._precision() is None else 0
        return Needs(draw=spec.parameters + more, choose=0)

    def draw(self, noise: Float[Array, "normals *lanes"], state: RidgeState) -> RidgeState:
        white, precision = state.ridge.white, self._precision()
        if precision is None:
            left, freedom = self.noise_law(state)
            precision = chi_square(noise[state.spec.parameters :], freedom) / left
        normal = noise[: state.spec.parameters].reshape(white.shape)
        draw = white + normal / jnp.sqrt(precision / self.temperature)
        return dataclasses.replace(state, theta=lanes.solve_upper(state.ridge.factor, draw))

    def choose(
        self,
        noise: None,
        state: RidgeState,
        context: Float[Array, "..."],
        allowed: Mask = None,
    ) -> Int[Array, "*lanes"]:
        del noise
        assert state.theta is not None
        return lanes.argmax(models.scores(state.spec, state.theta, context), allowed)

    def scores(self, state: RidgeState, context: Float[Array, "..."]) -> ScoreLaw:
        """N(x·V⁻¹b, σ²τ x·V⁻¹x); Student's law with σ² = (Σ r² − bᵀV⁻¹b)/n where σ is learned."""
        precision, freedom = self._precision(), None
        if precision is None:
            left, freedom = self.noise_law(state)
            precision = freedom / left
        factor = state.ridge.factor
        mean, variance = lanes.solve_upper(factor, state.ridge.white), self.temperature / precision
        return precision_law(state.spec, context, mean, factor, variance, freedom)

    def report(self, state: RidgeState) -> Report:
        assert state.theta is not None
        parameters = state.theta.reshape(state.spec.parameters, *state.spec.lanes)
        return super().report(state)._replace(parameters=parameters)

    def hints(self, spec: Spec) -> Hints:
        precision, target = self._precision(), None
        if precision is not None and self.scale_model() is None:
            weight = float(precision) / float(self.temperature)
            target = LinearTarget(weight=weight, prior=weight * float(self.ratio()))
        return Hints(
            layout="lanes",
            exact_draws=True,
            linear=True,
            sums=True,
            rebuilt=self.rebuilt,
            target=target,
            scores=self.scores,
            matched=lambda noise, precision: {
                "eta": 1.0 / noise**2,
                "rho": noise**2 * precision,
            },
        )
