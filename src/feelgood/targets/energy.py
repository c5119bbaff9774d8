"""The energy whose Gibbs law an agent samples.

    L(θ) = Σ_s [ η ℓ(f_θ(x_s, a_s), r_s) − λ_s φ(max_a f_θ(x_s, a)) ] + ρ‖θ‖²

with f_θ the mean reward, which is the score or μ(score), and ℓ the squared error (f − r)² or the
Bernoulli negative log-likelihood. The target of every sampler is π ∝ exp(−βL). With the squared
error the data term needs only Σ x xᵀ and Σ r x and costs the same in round 10 as in round 10⁶.

Values of L are given up to a constant: as the difference from a fixed origin (where the round
began), computed as such. In float32 the plain sums lose the digits that a Metropolis filter needs.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from feelgood.core.notices import print_notice_once
from feelgood.core.spec import Likelihood, Number, Spec
from feelgood.numerics import chain_programs, lanes
from feelgood.numerics.chain_programs import Chains, each_chain
from feelgood.numerics.written_arrays import CannotWriteOut
from feelgood.targets import arm_jumps, strips
from feelgood.targets.evaluators import Evaluator
from feelgood.targets.history import Chunk, Rows, contract, played_scores, total_of
from feelgood.targets.losses import loss, loss_slope
from feelgood.targets.observations import Data
from feelgood.targets.random_batches import random_batch
from feelgood.targets.sums import Stats, Theta, Value, frobenius
from feelgood.targets.target import Evaluation, Force, Target

#: When Hamiltonian trajectories feel the bonus' true force; see `follow_surrogate`.
TRUE_FORCE_ROUNDS, TRUE_FORCE_EVERY = 100, 4


class Energy(eqx.Module):
    """L for a linear model; `bonus` is None for plain Thompson sampling."""

    eta: Number
    rho: Number
    bonus: Evaluator | None
    likelihood: Likelihood = eqx.field(static=True)
    spec: Spec = eqx.field(static=True)

    @property
    def quadratic(self) -> bool:
        """Whether the data term is a quadratic form."""
        return self.likelihood == "squared"

    @property
    def needs_contexts(self) -> bool:
        """Whether rows must keep past contexts of all arms."""
        return self.bonus is not None and not self.bonus.keeps_contexts

    @property
    def needs_played(self) -> bool:
        """Whether the features and rewards of the played arms must be kept."""
        return not self.quadratic

    @property
    def apart(self) -> bool:
        """Whether each chain can have a program of its own, and the layout asks for it.

        Each thread keeps all parameters in registers, and what is as long as a tile is taken for
        one. With as many parameters (64) or more, chains are stepped together, and nothing is said.
        """
        spec = self.spec
        if spec.layout.steps == "together" or not spec.lanes or not self.quadratic:
            return False
        few = spec.parameters < chain_programs.THREADS.tile
        return few and (self.bonus is None or self.bonus.alone() is not None)

    @property
    def reads_filled(self) -> bool:
        """Whether an evaluation costs what there is to read, and not what there is room for."""
        if self.apart:
            return True
        return self.quadratic and self.bonus is not None and self.bonus.reads_filled

    def curvature(self, stats: Stats) -> Float[Array, "blocks *lanes"]:
        """An upper bound of the largest eigenvalue of the data term's and prior's Hessian.

        (f − r)² has second derivative 2 and the Bernoulli loss at most ¼; ‖G‖_F bounds the
        largest eigenvalue of G. What the bonus bends downwards, at its cap or behind a link, is not
        in it.
        """
        return self.second_derivative * self.eta * frobenius(stats.gram) + 2.0 * self.rho

    def preconditioned_curvature(self, lambda_reg: Number) -> Float[Array, "..."]:
        """The same for V^{-1/2} ∇²L V^{-1/2} with V = λ_reg I + G: it does not grow with data."""
        return jnp.maximum(self.second_derivative * self.eta, 2.0 * self.rho / lambda_reg)

    @property
    def ratio(self) -> Number:
        """The prior's share of the curvature's bound: that is proportional to ratio I + G."""
        return 2.0 * self.rho / (self.second_derivative * self.eta)

    @property
    def second_derivative(self) -> float:
        """The largest second derivative of ℓ in f."""
        return 2.0 if self.quadratic else 0.25

    def loss_slope(
        self, scores: Float[Array, "..."], rewards: Float[Array, "..."]
    ) -> Float[Array, "..."]:
        """∂ℓ/∂f."""
        return loss_slope(self.likelihood, scores, rewards)

    def loss(
        self, scores: Float[Array, "..."], rewards: Float[Array, "..."]
    ) -> Float[Array, "..."]:
        """ℓ(f, r)."""
        return loss(self.likelihood, scores, rewards)

    def rows_loss(self, chunk: Chunk, theta: Theta) -> tuple[Value, Theta]:
        """Σ ℓ and its gradient over the rounds of a chunk (without η)."""
        assert chunk.features is not None
        scores, block = played_scores(self.spec, theta, chunk.features, chunk.arms)
        weights = block * (self.loss_slope(scores, chunk.rewards) * chunk.valid)
        value = total_of(self.loss(scores, chunk.rewards), chunk.valid)
        return value, contract(weights, chunk.features)

    def total_loss(self, rows: Rows, theta: Theta) -> tuple[Value, Theta]:
        """Σ ℓ and its gradient over all rounds (without η)."""
        if strips.suits(rows):
            return strips.total_by_strips(rows, theta, self.loss, self.loss_slope)
        return rows.total(self.rows_loss, theta)


class LinearModelTarget(Target):
    """L of a linear model bound to the data of one round."""

    energy: Energy
    data: Data
    origin: Theta
    origin_gradient: Theta
    #: Gradient of λ Σφ with the arm choices frozen at a point that depends on the data alone.
    frozen: Theta | None
    #: Whether a Hamiltonian trajectory feels the true bonus all the same; see `follow_surrogate`.
    true_force: Bool[Array, ""]
    #: The energy without the bonus as a normal law, at temperature 1; None: no jumps are asked for.
    centre: arm_jumps.Centre | None = None

    @classmethod
    def of(
        cls,
        energy: Energy,
        data: Data,
        origin: Theta,
        frozen: Theta | None = None,
        centre: arm_jumps.Centre | None = None,
    ) -> "LinearModelTarget":
        """The target of this round; its value is 0 at `origin` but for the bonus."""

        def with_gradient(gradient: Theta) -> LinearModelTarget:
            return cls(
                energy=energy,
                data=data,
                origin=origin,
                origin_gradient=gradient,
                frozen=frozen,
                true_force=data.count < TRUE_FORCE_ROUNDS,
                centre=centre,
            )

        blank = with_gradient(jnp.zeros_like(origin))
        return with_gradient(blank._quadratic_gradient(origin))

    def at(self, step: Int[Array, ""]) -> "LinearModelTarget":
        if self.frozen is None:
            return self
        again = (step == 0) & (self.data.count % TRUE_FORCE_EVERY == 0)
        forced = (self.data.count < TRUE_FORCE_ROUNDS) | again
        return dataclasses.replace(self, true_force=forced)

    def carry_out(self, steps: Callable[..., Any], chain: Any, *arguments: Any) -> Any:
        """All operations of a chain's steps as one program, if the layout says so and it can be.

        Jumps look into the whole history, for which a program has no form.
        """
        layout, bonus = self.energy.spec.layout, self.energy.bonus
        if not self.energy.apart or self.centre is not None:
            return steps(self, chain, *arguments)
        energy = dataclasses.replace(self.energy, bonus=None if bonus is None else bonus.alone())
        every = (dataclasses.replace(self, energy=energy), chain, *arguments)
        interpreted = layout.steps == "interpreted"
        try:
            places = _places(every, layout.chains)
            after, info = each_chain(steps, every, places, layout.chains, interpreted=interpreted)
        except CannotWriteOut as error:
            print_notice_once(
                "the inner steps of a chain could not be made one program, so that all chains "
                "are stepped together, which takes several times as long. Please report the "
                f"reason: {error}, with JAX {jax.__version__}."
            )
            return steps(self, chain, *arguments)
        # What all chains shared is still the same in all.
        return jax.tree.map(lambda old, new: new if old.ndim else new[0], chain, after), info

    def _quadratic_gradient(self, theta: Theta) -> Theta:
        """∇ of ρ‖θ‖², plus η Σ(f − r)² where that is the loss."""
        gradient = 2.0 * self.energy.rho * theta
        if self.energy.quadratic:
            gram, moment = self.data.stats
            gradient = gradient + 2.0 * self.energy.eta * (lanes.matvec(gram, theta) - moment)
        return gradient

    def _smooth(self, theta: Theta) -> tuple[Value, Theta]:
        """The energy without the bonus."""
        gradient = self._quadratic_gradient(theta)
        # For a quadratic, L(θ) − L(o) = ½ (θ − o) · (∇L(θ) + ∇L(o)).
        product = (theta - self.origin) * (gradient + self.origin_gradient)
        value = 0.5 * jnp.sum(product, axis=(0, 1))
        if not self.energy.quadratic:
            rows = self.data.rows
            assert rows is not None
            loss, slope = self.energy.total_loss(rows, theta)
            value, gradient = value + self.energy.eta * loss, gradient + self.energy.eta * slope
        return value, gradient

    def data_gradient(self, theta: Theta) -> Theta:
        """∇ of the data term and the prior: everything but the bonus."""
        return self._smooth(theta)[1]

    def follow_surrogate(self, trajectory: Callable[[Force], Any]) -> Any:
        """A trajectory along ∇L with the bonus' arm choices frozen, which is cheap.

        Where the posterior is wide, a trajectory meets many other arm choices, and with frozen
        ones little is accepted. So the force is the true one in the first rounds, when the history
        is short. Later it is so in the first trajectory of every fourth round, which frees chains
        that got stuck.

        The choice depends on the round and the step alone: every transition leaves the target
        invariant, and so does their sequence.
        """
        frozen, bonus, rows = self.frozen, self.energy.bonus, self.data.rows
        assert frozen is not None and bonus is not None and rows is not None

        def true(theta: Theta) -> Theta:
            no_uniforms = jnp.zeros((0, *theta.shape[2:]))
            _, pull, _ = bonus.full().evaluate((), rows, theta, no_uniforms)
            pull = bonus.bonus.strength * pull
            return self.data_gradient(theta) - pull

        def cheap(theta: Theta) -> Theta:
            return self.data_gradient(theta) - frozen

        # One choice per trajectory, not per step: an accelerator waits for the host at each.
        return lax.cond(self.true_force, lambda: trajectory(true), lambda: trajectory(cheap))

    def propose_jump(
        self, theta: Theta, beta: Number, uniform: Float[Array, "draws *lanes"]
    ) -> arm_jumps.Jump:
        centre, bonus, rows = self.centre, self.energy.bonus, self.data.rows
        assert centre is not None and bonus is not None and rows is not None
        cooled = centre._replace(root=centre.root / jnp.sqrt(beta))
        return arm_jumps.propose(bonus.bonus, rows, cooled, beta, theta, uniform)

    def batch_change(self, theta: Theta, old: Theta, uniform: Value, size: int) -> Theta:
        energy, data = self.energy, self.data
        number, weight = random_batch(uniform, data.count, size)
        if data.grams is not None:  # the loss is quadratic: 2 Σ x xᵀ (θ − θ̃), whatever the rewards
            change = 2.0 * lanes.matvec(data.grams.of(number, data.count), theta - old)
            return energy.eta * weight * change
        assert data.rows is not None
        chunk = data.rows.batch(number, size)
        assert chunk.features is not None
        here, block = played_scores(energy.spec, theta, chunk.features, chunk.arms)
        there, _ = played_scores(energy.spec, old, chunk.features, chunk.arms)
        slope = energy.loss_slope(here, chunk.rewards) - energy.loss_slope(there, chunk.rewards)
        change = contract(block * (slope * chunk.valid), chunk.features)
        return energy.eta * weight * change

    @property
    def uniforms(self) -> int:
        """Uniform random numbers that one evaluation uses."""
        return 0 if self.energy.bonus is None else self.energy.bonus.uniforms

    def begin(self, memo: Any, theta: Theta) -> Any:
        """A round begins at `theta`."""
        if self.energy.bonus is None:
            return memo
        assert self.data.rows is not None
        return self.energy.bonus.begin(memo, self.data.rows, theta)

    def end(self, memo: Any) -> Any:
        """The round ends: what to keep of the memo."""
        return memo if self.energy.bonus is None else self.energy.bonus.end(memo)

    def with_bonus(
        self,
        theta: Theta,
        memo: Any,
        uniform: Float[Array, "draws *lanes"],
        value: Value,
        gradient: Theta,
    ) -> Evaluation:
        """Add the bonus to a value and a gradient of the rest."""
        bonus = self.energy.bonus
        if bonus is None:
            return Evaluation(value, gradient, memo)
        assert self.data.rows is not None
        lam = bonus.bonus.strength
        extra, slope, memo = bonus.evaluate(memo, self.data.rows, theta, uniform)
        return Evaluation(value - lam * extra, gradient - lam * slope, memo)

    def value(
        self, theta: Theta, memo: Any, uniform: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Any]:
        """L(θ) alone."""
        value, _ = self._smooth(theta)
        bonus = self.energy.bonus
        if bonus is None:
            return value, memo
        assert self.data.rows is not None
        extra, memo = bonus.value(memo, self.data.rows, theta, uniform)
        return value - bonus.bonus.strength * extra, memo

    def value_or_bound(
        self,
        theta: Theta,
        memo: Any,
        uniform: Float[Array, "draws *lanes"],
        suffices: Callable[[Value], Bool[Array, "*lanes"]],
    ) -> tuple[Value, Any]:
        """L(θ), or a lower bound in all lanes: the rest of the energy minus the largest bonus.

        An unstable trajectory is rejected whatever the bonus is, so that need not be summed.
        """
        bonus, rows = self.energy.bonus, self.data.rows
        assert bonus is not None and rows is not None
        smooth, _ = self._smooth(theta)
        least = smooth - bonus.bonus.strength * bonus.most(memo, rows)

        def look(carry: tuple[Bool[Array, ""], Value, Any]) -> tuple[Bool[Array, ""], Value, Any]:
            done, _, memo = carry
            # The compiler must not see that this point is the same in every turn: it would move
            # the sum out of the loop and take it every time.
            here = jnp.where(done, 0.0, theta)
            extra, memo = bonus.value(memo, rows, here, uniform)
            return jnp.ones((), bool), smooth - bonus.bonus.strength * extra, memo

        # A loop of at most one turn, not a conditional: its carry is updated in place.
        start = (jnp.all(suffices(least)), least, memo)
        _, value, memo = lax.while_loop(lambda carry: ~carry[0], look, start)
        return value, memo

    def evaluate(
        self, theta: Theta, memo: Any, uniform: Float[Array, "draws *lanes"]
    ) -> Evaluation:
        """L(θ) and ∇L(θ)."""
        return self.with_bonus(theta, memo, uniform, *self._smooth(theta))


def _places(arguments: Any, chains: int) -> Any:
    """Where each array has its chains, or the seeds that they share: last, but for past rounds.

    What has no axes is the same for all.
    """

    def place(x: Any) -> Any:
        if isinstance(x, Rows):
            return x.places()
        if x.ndim == 0:
            return Chains()
        return Chains(-1, period=None if x.shape[-1] == chains else x.shape[-1])

    return jax.tree.map(place, arguments, is_leaf=lambda x: isinstance(x, Rows))
