"""The energy of a network, as `feelgood.targets.energy` has it for a linear model.

    L(θ) = Σ_s [ η ℓ(f_θ(x_s, a_s), r_s) − λ_s φ(max_a f_θ(x_s, a)) ] + ρ‖θ‖²

The sum runs over all rounds, or is estimated from a batch of B of them, drawn uniformly with
replacement. Both terms are then scaled by n/B, so value and gradient have no bias. The bonus takes
the maximum over **all** arms of each context in the batch. The same forward pass gives the score of
the played arm.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.core.spec import Likelihood, Number
from feelgood.numerics import lanes
from feelgood.targets import network_picks, network_programs
from feelgood.targets.best_arms import best_arm, first_arm, highest
from feelgood.targets.bonus import FeelGood, on_scores
from feelgood.targets.losses import loss, loss_slope
from feelgood.targets.network_picks import Passes, Picks
from feelgood.targets.network_programs import FEW_ARMS
from feelgood.targets.networks import Network
from feelgood.targets.random_batches import random_batch
from feelgood.targets.replay import Batch, Replay, tree_slice
from feelgood.targets.sums import Theta, Value
from feelgood.targets.target import Evaluation, Target

Vector = Float[Array, " parameters"]
PerRow = Float[Array, " rows"]


class NetworkEnergy(eqx.Module):
    """L for a network; `bonus` is None for plain agents."""

    network: Network
    eta: Number
    rho: Number
    bonus: FeelGood | None
    likelihood: Likelihood = eqx.field(static=True)

    def data_term(self, batch: Batch, theta: Vector) -> tuple[Float[Array, ""], Vector]:
        """Σ count · [η ℓ − λ_s φ(max)] over the rows of a batch, and its gradient."""
        network, bonus = self.network, self.bonus is not None
        if network_programs.suits_programs(network, bonus):
            return self._from_picks(network_programs.AS_PROGRAMS, batch, theta)
        if not bonus or (network.row_by_row and network.spec.arms > FEW_ARMS):
            return self._from_picks(network_picks.AS_OPERATIONS, batch, theta)
        weights = network.split(theta)
        onehot = lanes.one_hot(batch.arms, network.spec.arms).T
        scores, tape = network.forward(weights, batch.contexts)
        value, slope = self._loss(batch, jnp.sum(scores * onehot, axis=1))
        best, winner = best_arm(scores.T)
        reward, gain = self._bonus(batch, best)
        slopes = onehot * slope[:, None] - winner.T * gain[:, None]
        gradient = network.backward(weights, tape, slopes)[: len(theta)]
        return jnp.sum((value - reward) * batch.counts), gradient

    def _from_picks(
        self, passes: Passes, batch: Batch, theta: Vector
    ) -> tuple[Float[Array, ""], Vector]:
        """The same from passes through the network that only look at some arms of each row."""
        network, arms = self.network, batch.arms
        if self.bonus is None:
            eta = jnp.broadcast_to(self.eta, batch.counts.shape)
            picks = Picks(arms, (batch.rewards, batch.counts * eta), self._slope)
            played, gradient = passes.gradient(network, theta, batch.contexts, picks)
            return jnp.sum(self._loss(batch, played)[0] * batch.counts), gradient
        scores = passes.scores(network, theta, batch.contexts).T
        played, best = jnp.sum(scores * lanes.one_hot(arms, len(scores)), axis=0), highest(scores)
        value, slope = self._loss(batch, played)
        reward, gain = self._bonus(batch, best)
        both = jnp.concatenate([arms, first_arm(scores, best)])
        picks = Picks(both, (jnp.concatenate([slope, -gain]),), lambda score, slope: slope)
        gradient = passes.gradient(network, theta, batch.contexts, picks)[1]
        return jnp.sum((value - reward) * batch.counts), gradient

    def _slope(self, score: PerRow, reward: PerRow, weight: PerRow) -> PerRow:
        return weight * loss_slope(self.likelihood, score, reward)

    def _loss(self, batch: Batch, played: PerRow) -> tuple[PerRow, PerRow]:
        """η ℓ of each row, and count · η ∂ℓ/∂f."""
        value = self.eta * loss(self.likelihood, played, batch.rewards)
        slope = self.eta * loss_slope(self.likelihood, played, batch.rewards)
        return value, slope * batch.counts

    def _bonus(self, batch: Batch, best: PerRow) -> tuple[PerRow, PerRow]:
        """λ_s φ of each row, and count · λ_s φ'."""
        assert self.bonus is not None
        bonus = on_scores(self.bonus, self.likelihood)
        lam = bonus.weighed(bonus.strength, batch.numbers)
        return lam * bonus.phi(best), lam * bonus.slope(best) * batch.counts


class Memory(eqx.Module):
    """The data of a network's target, under the name that kernels know."""

    rows: Replay


class NetworkTarget(Target):
    """L of a network bound to the data of one round; θ is a column [parameters, 1].

    With `batches`, step i sees an estimate of L from rows i·B to (i + 1)·B of it; otherwise every
    step sees the whole history.
    """

    energy: NetworkEnergy
    data: Memory
    batches: Batch | None = None
    size: int = eqx.field(static=True, default=0)
    frozen: None = None

    def widened(self, vectors: Any) -> Any:
        return self._each(vectors, self.energy.network.parameters, self.energy.network.widened)

    def narrowed(self, vectors: Any) -> Any:
        network = self.energy.network
        return self._each(vectors, network.room, lambda x: x[: network.parameters])

    def _each(self, vectors: Any, length: int, change: Callable[[Array], Array]) -> Any:
        return jax.tree.map(lambda x: change(x) if x.shape[:1] == (length,) else x, vectors)

    def at(self, step: Int[Array, ""]) -> "NetworkTarget":
        if self.batches is None:
            return self
        batch = tree_slice(self.batches, step * self.size, self.size)
        return NetworkTarget(energy=self.energy, data=self.data, batches=batch, size=self.size)

    def _with_prior(self, theta: Theta, value: Value, gradient: Vector) -> tuple[Value, Theta]:
        rho = self.energy.rho
        return value + rho * jnp.sum(theta * theta), gradient[:, None] + 2.0 * rho * theta

    def _everything(self, theta: Theta) -> tuple[Value, Theta]:
        value, gradient = self.data.rows.total(self.energy.data_term, theta[:, 0])
        return self._with_prior(theta, value, gradient)

    def evaluate(
        self, theta: Theta, memo: Any, uniform: Float[Array, "draws *lanes"]
    ) -> Evaluation:
        del uniform
        if self.batches is None:
            return Evaluation(*self._everything(theta), memo)
        value, gradient = self.energy.data_term(self.batches, theta[:, 0])
        scale = self.data.rows.filled / self.size
        return Evaluation(*self._with_prior(theta, scale * value, scale * gradient), memo)

    def value(
        self, theta: Theta, memo: Any, uniform: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Any]:
        return self.evaluate(theta, memo, uniform).value, memo

    def data_gradient(self, theta: Theta) -> Theta:
        return self._everything(theta)[1]

    def batch_change(self, theta: Theta, old: Theta, uniform: Value, size: int) -> Theta:
        """Of loss and bonus both: the network's bonus is estimated from the batch, too."""
        number, weight = random_batch(uniform, self.data.rows.filled, size)
        batch = self.data.rows.batch(number, size)
        here = self.energy.data_term(batch, theta[:, 0])[1]
        there = self.energy.data_term(batch, old[:, 0])[1]
        return weight * (here - there)[:, None]

    def with_bonus(
        self,
        theta: Theta,
        memo: Any,
        uniform: Float[Array, "draws *lanes"],
        value: Value,
        gradient: Theta,
    ) -> Evaluation:
        """The bonus is in the batches already."""
        del theta, uniform
        return Evaluation(value, gradient, memo)
