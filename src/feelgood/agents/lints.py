"""Linear Thompson sampling from the exact posterior."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.agents.ridge import RidgePolicy, RidgeState
from feelgood.core.policy import AGENTS, Hints, Needs, Report
from feelgood.core.settings import setting
from feelgood.core.spec import LinearTarget, Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.targets import models


@AGENTS.register("lints")
class LinTS(RidgePolicy):
    """Thompson sampling with the exact Gaussian posterior of a linear model.

    θ ~ N(V⁻¹b, V⁻¹/η) with V = ρI + Σ x xᵀ and b = Σ r x, one block per arm where the arms have
    parameters of their own; plays argmax_a f_θ(x, a). With V = L Lᵀ the draw is
    L⁻ᵀ(L⁻¹b + z/√η), z standard normal.

    Agrawal and Goyal, "Thompson sampling for contextual bandits with linear payoffs", ICML 2013.
    """

    eta: Number = setting(1.0, "inverse temperature η of the posterior", above=0.0, high=1e9)

    def init(self, key: AnyKey, spec: Spec) -> RidgeState:
        state = super().init(key, spec)
        return dataclasses.replace(state, theta=jnp.zeros_like(state.ridge.white))

    def needs(self, spec: Spec) -> Needs:
        return Needs(draw=spec.parameters, choose=0)

    def draw(self, noise: Float[Array, "parameters *lanes"], state: RidgeState) -> RidgeState:
        white = state.ridge.white
        draw = white + noise.reshape(white.shape) / jnp.sqrt(self.eta)
        return dataclasses.replace(state, theta=lanes.solve_upper(state.ridge.factor, draw))

    def choose(
        self, noise: None, state: RidgeState, context: Float[Array, "..."]
    ) -> Int[Array, "*lanes"]:
        del noise
        assert state.theta is not None
        return lanes.argmax(models.scores(state.spec, state.theta, context))

    def report(self, state: RidgeState) -> Report:
        assert state.theta is not None
        parameters = state.theta.reshape(state.spec.parameters, *state.spec.lanes)
        return super().report(state)._replace(parameters=parameters)

    def hints(self, spec: Spec) -> Hints:
        eta, rho = float(self.eta), float(self.rho)
        return Hints(
            layout="lanes",
            exact_draws=True,
            target=LinearTarget(weight=eta, prior=eta * rho),
            matched=lambda noise, precision: {
                "eta": 1.0 / noise**2,
                "rho": noise**2 * precision,
            },
        )
