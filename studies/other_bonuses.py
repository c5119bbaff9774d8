"""Two bonuses beside that of `neural-fglmcts`: what binds networks to a wrong arm?

The gradient of λφ(max_a f_a) goes to the arm that is the best already. Here it goes elsewhere.

- `neural-soft-fglmcts` has g = τ ln( (1/K) Σ_a exp(f_a/τ) ) in place of the maximum: the gradient
  goes to all arms, by their softmax weights. τ → 0 is the maximum, τ → ∞ the mean over the arms.
- `neural-parted-fglmcts` pulls on the best arm and on the others apart: λ min(b, max_a f_a) is the
  bonus, and to it comes λ' min(b, mean of the other arms), with a weight of its own, the `lift`.

Both are no agents of the package.
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

PerArm = Float[Array, "rows arms"]
PerRow = Float[Array, " rows"]


class OtherEnergy(NetworkEnergy):
    """L with another bonus on the scores of all arms."""

    lam: Number = eqx.field(kw_only=True)
    b: Number = eqx.field(kw_only=True)

    def reward(self, scores: PerArm) -> tuple[PerRow, PerArm]:
        """The bonus of each row, and its slope in the score of each arm."""
        raise NotImplementedError

    def data_term(
        self, batch: Batch, theta: Float[Array, " parameters"]
    ) -> tuple[Float[Array, ""], Float[Array, " parameters"]]:
        """Σ count · [η ℓ − bonus] over the rows of a batch, and its gradient."""
        weights = self.network.split(theta)
        onehot = lanes.one_hot(batch.arms, self.network.spec.arms).T
        scores, tape = self.network.forward(weights, batch.contexts, None)
        played = jnp.sum(scores * onehot, axis=1)
        bonus, pull = self.reward(scores)
        value = self.eta * loss(self.likelihood, played, batch.rewards) - bonus
        slope = self.eta * loss_slope(self.likelihood, played, batch.rewards)
        slopes = (onehot * slope[:, None] - pull) * batch.counts[:, None]
        return jnp.sum(value * batch.counts), self.network.backward(weights, tape, slopes)


class SoftEnergy(OtherEnergy):
    """λ min(b, g) of the smoothed maximum g."""

    softness: Number = eqx.field(kw_only=True)

    def reward(self, scores: PerArm) -> tuple[PerRow, PerArm]:
        scaled = scores / self.softness
        soft = self.softness * (jax.nn.logsumexp(scaled, axis=1) - jnp.log(scores.shape[1]))
        gain = self.lam * (soft < self.b)
        return self.lam * jnp.minimum(self.b, soft), jax.nn.softmax(scaled, axis=1) * gain[:, None]


class PartedEnergy(OtherEnergy):
    """λ min(b, best score) + λ' min(b, mean of the other scores)."""

    lift: Number = eqx.field(kw_only=True)

    def reward(self, scores: PerArm) -> tuple[PerRow, PerArm]:
        arms = scores.shape[1]
        winner = jax.nn.one_hot(jnp.argmax(scores, axis=1), arms)
        best = jnp.max(scores, axis=1)
        others = (jnp.sum(scores, axis=1) - best) / (arms - 1)
        gain, lifted = self.lam * (best < self.b), self.lift * (others < self.b) / (arms - 1)
        value = self.lam * jnp.minimum(self.b, best) + self.lift * jnp.minimum(self.b, others)
        return value, winner * gain[:, None] + (1.0 - winner) * lifted[:, None]


class OtherBonus(NeuralThompson):
    """Langevin Thompson sampling of a network with another bonus."""

    kernel: Kernel = eqx.field(kw_only=True, default_factory=LMC)

    lam: Number = setting(0.1, "weight λ of the bonus", low=0.0, high=1e6)
    b: Number = setting(1000.0, "cap b of the bonus", above=0.0, high=1e9)

    def with_bonus(
        self, kind: type[OtherEnergy], spec: Spec, law: Coefficients, **own: Number
    ) -> OtherEnergy:
        """The energy of this network with a bonus of a kind."""
        plain = self.energy_with(spec, law.eta, law.rho, None)
        told = {"lam": self.lam, "b": self.b} | own
        return kind(plain.network, law.eta, law.rho, None, plain.likelihood, **told)


@AGENTS.register("neural-soft-fglmcts", family="Networks")
class SoftMaximum(OtherBonus):
    """Langevin Thompson sampling of a network, bonus on a smoothed maximum over the arms."""

    softness: Number = setting(0.1, "τ of the smoothed maximum", above=0.0, high=1e9)

    def energy(self, spec: Spec, law: Coefficients) -> OtherEnergy:
        return self.with_bonus(SoftEnergy, spec, law, softness=self.softness)


@AGENTS.register("neural-parted-fglmcts", family="Networks")
class PartedBonus(OtherBonus):
    """Langevin Thompson sampling of a network, bonus on the best arm and on the others apart."""

    lift: Number = setting(0.0, "weight λ' of the mean of the other arms", low=0.0, high=1e6)

    def energy(self, spec: Spec, law: Coefficients) -> OtherEnergy:
        return self.with_bonus(PartedEnergy, spec, law, lift=self.lift)
