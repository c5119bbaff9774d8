"""Linear Thompson sampling from the exact posterior."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from feelgood.agents.ridge import RidgePolicy, RidgeState
from feelgood.core.protocols import AGENTS
from feelgood.core.settings import setting
from feelgood.core.spec import LinearTarget, Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.lanes import AnyKey
from feelgood.targets import models


@AGENTS.register("lints")
class LinTS(RidgePolicy):
    """Thompson sampling with the exact Gaussian posterior of a linear model.

    θ ~ N(V⁻¹b, V⁻¹/η) with V = ρI + Σ x xᵀ and b = Σ r x, one block an arm where the arms have
    parameters of their own; plays argmax_a f_θ(x, a). With V = L Lᵀ the draw is
    L⁻ᵀ(L⁻¹b + z/√η), z standard normal.

    Agrawal and Goyal, "Thompson sampling for contextual bandits with linear payoffs", ICML 2013.
    """

    eta: Number = setting(1.0, "inverse temperature η of the posterior", above=0.0, high=1e9)

    exact_draws = True

    def act(
        self, key: AnyKey, state: RidgeState, context: Float[Array, "..."]
    ) -> tuple[Int[Array, "*lanes"], RidgeState]:
        return self.decide(lanes.normal(key, state.spec.parameters), state, context)

    def noise(self, key: Key[Array, ""], spec: Spec) -> Float[Array, " numbers"]:
        return lanes.normal(key, spec.parameters)

    def decide(
        self, noise: Float[Array, "numbers *lanes"], state: RidgeState, context: Float[Array, "..."]
    ) -> tuple[Int[Array, "*lanes"], RidgeState]:
        theta = self._theta(noise, state)
        return lanes.argmax(models.scores(state.spec, theta, context)), state

    def redraw(
        self, key: AnyKey, state: RidgeState
    ) -> tuple[Float[Array, "parameters *lanes"], RidgeState]:
        theta = self._theta(lanes.normal(key, state.spec.parameters), state)
        return theta.reshape(state.spec.parameters, *theta.shape[2:]), state

    def target(self, spec: Spec) -> LinearTarget:
        del spec
        eta = float(self.eta)
        return LinearTarget(weight=eta, prior=eta * float(self.rho))

    def matched(self, spec: Spec, noise: float, precision: float) -> dict[str, float]:
        del spec
        return {"eta": 1.0 / noise**2, "rho": noise**2 * precision}

    def _theta(
        self, noise: Float[Array, "numbers *lanes"], state: RidgeState
    ) -> Float[Array, "dim blocks *lanes"]:
        white = state.ridge.white
        draw = white + noise.reshape(white.shape) / jnp.sqrt(self.eta)
        return lanes.solve_upper(state.ridge.factor, draw)
