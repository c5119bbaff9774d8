"""`neural-soft-fglmcts`: `neural-fglmcts` whose bonus takes a smoothed maximum over the arms.

The gradient of λφ(max_a f_a) goes to the arm that is the best already. With

    g = τ ln( (1/K) Σ_a exp(f_a/τ) )

in place of the maximum it goes to all arms, by their softmax weights. τ → 0 is the maximum, and
τ → ∞ the mean over the arms. It serves one question, why a bonus binds networks to a wrong arm,
and is no agent of the package.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from feelgood import AGENTS, Spec
from feelgood.agents.gibbs import Coefficients
from feelgood.agents.neural_mcmc import NeuralThompson
from feelgood.core.settings import setting
from feelgood.core.spec import Number
from feelgood.numerics import lanes
from feelgood.samplers.blocks import Kernel
from feelgood.samplers.lmc import LMC
from feelgood.targets.losses import loss, loss_slope
from feelgood.targets.network_energy import NetworkEnergy
from feelgood.targets.replay import Batch


class SoftEnergy(NetworkEnergy):
    """L with λ min(b, g) of the smoothed maximum g."""

    softness: Number = eqx.field(kw_only=True)
    lam: Number = eqx.field(kw_only=True)
    b: Number = eqx.field(kw_only=True)

    def data_term(
        self, batch: Batch, theta: Float[Array, " parameters"]
    ) -> tuple[Float[Array, ""], Float[Array, " parameters"]]:
        """Σ count · [η ℓ − λ min(b, g)] over the rows of a batch, and its gradient."""
        weights = self.network.split(theta)
        arms = self.network.spec.arms
        onehot = lanes.one_hot(batch.arms, arms).T
        scores, tape = self.network.forward(weights, batch.contexts, None)
        played = jnp.sum(scores * onehot, axis=1)
        soft = self.softness * (jax.nn.logsumexp(scores / self.softness, axis=1) - jnp.log(arms))
        value = self.eta * loss(self.likelihood, played, batch.rewards)
        value = value - self.lam * jnp.minimum(self.b, soft)
        slope = self.eta * loss_slope(self.likelihood, played, batch.rewards)
        gain = self.lam * (soft < self.b)
        pull = jax.nn.softmax(scores / self.softness, axis=1) * (gain * batch.counts)[:, None]
        slopes = onehot * (slope * batch.counts)[:, None] - pull
        return jnp.sum(value * batch.counts), self.network.backward(weights, tape, slopes)


@AGENTS.register("neural-soft-fglmcts", family="Networks")
class SoftMaximum(NeuralThompson):
    """Langevin Thompson sampling of a network, bonus on a smoothed maximum over the arms."""

    kernel: Kernel = eqx.field(kw_only=True, default_factory=LMC)

    lam: Number = setting(0.1, "weight λ of the bonus", low=0.0, high=1e6)
    b: Number = setting(1000.0, "cap b of the bonus", above=0.0, high=1e9)
    softness: Number = setting(0.1, "τ of the smoothed maximum", above=0.0, high=1e9)

    def energy(self, spec: Spec, law: Coefficients) -> SoftEnergy:
        plain = self.energy_with(spec, law.eta, law.rho, None)
        return SoftEnergy(
            *(plain.network, law.eta, law.rho, None, plain.likelihood),
            softness=self.softness,
            lam=self.lam,
            b=self.b,
        )
