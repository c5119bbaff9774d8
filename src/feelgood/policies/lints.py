"""Linear Thompson sampling from the exact posterior."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood import lanes, models
from feelgood.lanes import AnyKey
from feelgood.policies import ridge
from feelgood.policies.ridge import RidgePolicy, RidgeState
from feelgood.protocols import AGENTS
from feelgood.settings import setting
from feelgood.types import Number


@AGENTS.register("lints")
class LinTS(RidgePolicy):
    """Thompson sampling with the exact Gaussian posterior of a linear model.

    θ ~ N(V⁻¹b, V⁻¹/η) with V = ρI + Σ x xᵀ and b = Σ r x, one block an arm where the arms have
    parameters of their own; plays argmax_a f_θ(x, a). With V = L Lᵀ the draw is
    L⁻ᵀ(L⁻¹b + z/√η), z standard normal.

    Agrawal and Goyal, "Thompson sampling for contextual bandits with linear payoffs", ICML 2013.
    """

    eta: Number = setting(1.0, "inverse temperature η of the posterior", above=0.0, high=1e9)

    def act(
        self, key: AnyKey, state: RidgeState, context: Float[Array, "..."]
    ) -> tuple[Int[Array, "*lanes"], RidgeState]:
        white = ridge.whitened_mean(state)
        noise = lanes.normal(key, state.spec.parameters).reshape(white.shape)
        theta = lanes.solve_upper(state.ridge.factor, white + noise / jnp.sqrt(self.eta))
        return jnp.argmax(models.scores(state.spec, theta, context), axis=0), state
