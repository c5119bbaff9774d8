"""Thompson sampling from a posterior that is widened, as the theory wants it."""

import jax.numpy as jnp

from feelgood.agents.laplace_ts import LaplaceTS
from feelgood.core.policy import AGENTS
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec


@AGENTS.register("lints-inflated", family="Thompson sampling from a formula")
class InflatedLinTS(LaplaceTS):
    """Linear Thompson sampling with draws that are √d times as wide as the posterior.

    θ ~ N(V⁻¹b, v²σ²τ V⁻¹) with V = ρI + Σ x xᵀ and v = √d for contexts of dimension d; plays
    argmax_a f_θ(x, a). Bounds of the regret in the worst case are proven for widened draws only,
    up to logarithms with this v. With v = 1 it is `laplace-ts`, and `lints` where the noise σ is
    told. For Bernoulli rewards the law is N(θ̂, v²τ H(θ̂)⁻¹), Laplace's approximation widened.

    Agrawal and Goyal, "Thompson sampling for contextual bandits with linear payoffs", ICML 2013.
    Abeille and Lazaric, "Linear Thompson sampling revisited", AISTATS 2017. Hamidi and Bayati, "On
    frequentist regret of linear Thompson sampling", 2020, for why it cannot be left out.
    """

    inflation: Number | None = setting(
        "auto",
        "factor v of the draws' standard deviation; auto: √d",
        low=0.0,
        high=1e9,
        open_word="auto",
    )

    def widening(self, spec: Spec) -> Number:
        """v² times the temperature."""
        factor = spec.dim if self.inflation is None else jnp.square(self.inflation)
        return factor * super().widening(spec)
