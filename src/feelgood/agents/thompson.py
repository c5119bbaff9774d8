"""Thompson sampling with an MCMC kernel in place of the exact posterior.

One policy for all of the paper's agents: a target (loss, prior, feel-good bonus) × a kernel × a
preconditioner, warm-started from the round before.
"""

import dataclasses
import functools
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.agents.gibbs import Coefficients, GibbsPolicy
from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import Hints, Needs, Report
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey, fold_in
from feelgood.numerics.lanes import Mask
from feelgood.numerics.rare import rarely
from feelgood.samplers.blocks import Kernel, RoundInfo, Tuning, run_steps
from feelgood.targets import models, sums
from feelgood.targets.arm_jumps import Centre
from feelgood.targets.bonus import FeelGood, on_scores
from feelgood.targets.energy import Energy, LinearModelTarget
from feelgood.targets.evaluators import Evaluator, evaluator_for
from feelgood.targets.history import Rows
from feelgood.targets.losses import loss_for
from feelgood.targets.observations import Data
from feelgood.targets.random_batches import BatchGrams
from feelgood.targets.scales import Factor, Scales, linear_reward, started
from feelgood.targets.sums import Stats, Theta, Value

#: Rounds in which one reward may move the posterior far, so that a warm start is worth little.
EARLY_ROUNDS = 64
SCHEDULES = ("curvature", "decay", "constant")
STARTS = ("normal", "zero")


class Mode(NamedTuple):
    """A point near the mode of an energy that depends on the data alone, and how to move it.

    For HMC with a bonus it is that of L, a convex quadratic minus a convex bonus. Linearising the
    bonus at the old point and minimising exactly is the concave-convex procedure (Yuille and
    Rangarajan 2003): it never increases L. The arm choices at this point give HMC its cheap force.

    For jumps it is that of L without the bonus, the centre of the law that they draw from. A step
    by a bound of the curvature never increases that; with a squared loss it ends at the minimum.
    """

    theta: Theta
    #: B with BᵀB = (ratio I + Σ x xᵀ)⁻¹; see `Energy.ratio`.
    root: Float[Array, "dim dim blocks *lanes"]


class ThompsonState(eqx.Module):
    """Data, chain and the factorisations that go with them."""

    data: Data
    chain: Any
    #: B with BᵀB = V⁻¹, the preconditioner; None: there is none.
    root: Float[Array, "dim dim blocks *lanes"] | None
    mode: Mode | None
    #: What is learned of noise and prior; None: nothing.
    scales: Scales | None
    info: RoundInfo
    step: Float[Array, "*lanes"]
    spec: Spec = eqx.field(static=True)


class Thompson(GibbsPolicy):
    """Thompson sampling from π ∝ exp(−βL) by `steps` inner steps of a kernel every round."""

    kernel: Kernel = eqx.field(kw_only=True)
    bonus: FeelGood | None = eqx.field(kw_only=True, default=None)
    preconditioned: bool = eqx.field(static=True, kw_only=True, default=False)

    step: Number = setting(0.5, "step size, in the units of the schedule", above=0.0, high=1e6)
    lambda_reg: Number | None = setting(
        "auto", "λ_reg of V = λ_reg I + Σ x xᵀ; auto: ρ/η", above=0.0, high=1e9, open_word="auto"
    )
    steps: int = setting(25, "inner steps per round", low=1, high=100_000)
    early: int = setting(
        8, f"as many times the steps in each of the first {EARLY_ROUNDS} rounds", low=1, high=1000
    )
    schedule: str = setting(
        "curvature", "step relative to the curvature, step/t, or step as it is", choices=SCHEDULES
    )
    start: str = setting("normal", "where chains start: N(0, I) or 0", choices=STARTS)
    bonus_gradient: str = setting(
        "exact", "bonus gradient: exact, or an unbiased estimate", choices=("exact", "svrg")
    )
    bonus_batch: int = setting(64, "rounds per batch of the svrg bonus", low=1, high=1_000_000)

    def __check_init__(self) -> None:
        name = type(self.kernel).__name__
        if self.preconditioned and not self.kernel.preconditionable:
            raise FeelgoodError(f"{name} has no preconditioned form: leave the preconditioner out.")
        if self.kernel.adjusted and self.bonus is not None and self.bonus_gradient == "svrg":
            raise FeelgoodError(
                f"bonus_gradient = 'svrg' has no value for the Metropolis filter of {name}: "
                "use 'exact'."
            )
        if self.kernel.jumps and self.bonus is None:
            raise FeelgoodError(
                f"{name} jumps between the modes of a bonus, and there is none: use "
                f"{type(self.kernel.without_bonus()).__name__}."
            )
        if self.kernel.warmup >= self.steps:
            raise FeelgoodError(
                f"warmup_steps = {self.kernel.warmup} leaves none of the {self.steps} inner steps: "
                "use fewer."
            )

    # ---- the target ---------------------------------------------------------------------

    def energy(self, spec: Spec, scales: Scales | None = None) -> Energy:
        """L for this problem, with the evaluator of the bonus that suits its layout."""
        law = self.coefficients(spec, scales)
        return Energy(
            eta=law.eta,
            rho=law.rho,
            bonus=self._evaluator(spec),
            likelihood=loss_for(self.likelihood, spec),
            spec=spec,
        )

    def _evaluator(self, spec: Spec) -> Evaluator | None:
        if self.bonus is None:
            return None
        batch = 0 if self.bonus_gradient == "exact" else self.bonus_batch
        bonus = on_scores(self.bonus, loss_for(self.likelihood, spec))
        return evaluator_for(
            bonus,
            spec,
            short_moves=self._short_moves(),
            batch=batch,
            others_read=self.kernel.jumps or self.kernel.follows,
        )

    def _short_moves(self) -> bool:
        """Whether a step moves the chain by much less than the posterior is wide."""
        return self.kernel.gradients_per_step <= 1

    def _freezes(self, energy: Energy) -> bool:
        """Whether HMC takes its force from frozen arm choices."""
        return energy.bonus is not None and energy.quadratic and self.kernel.follows

    def _jumps(self, energy: Energy) -> bool:
        """Whether the kernel jumps between the modes of a bonus."""
        return energy.bonus is not None and self.kernel.jumps

    def _regularisation(self, law: Coefficients) -> Number:
        """λ_reg of the preconditioner."""
        return law.rho / law.eta if self.lambda_reg is None else self.lambda_reg

    def _tuning(self, state: ThompsonState, energy: Energy) -> Tuning:
        law = self.coefficients(state.spec, state.scales)
        step, curvature = self.step, None
        if self.schedule == "curvature":
            if self.preconditioned:
                curvature = energy.preconditioned_curvature(self._regularisation(law))
            else:
                curvature = energy.curvature(state.data.stats)
            step = self.kernel.step_size(self.step, curvature, law.beta)
        elif self.schedule == "decay":
            step = self.step / (state.data.count + 1.0)
        return Tuning(step=step, beta=law.beta, root=state.root, curvature=curvature)

    # ---- the policy ---------------------------------------------------------------------

    def hints(self, spec: Spec) -> Hints:
        return Hints(
            layout="lanes",
            company=self._company(spec),
            # Jumps read the whole store, whatever the bonus does.
            grows=self.kernel.jumps or not self.energy(spec, self.first_scales(spec)).reads_filled,
            linear=True,
            sums=self.bonus is None and loss_for(self.likelihood, spec) == "squared",
            rebuilt=self.rebuilt,
            target=self.linear_target(spec, self.bonus),
            matched=functools.partial(self.matched, spec),
        )

    def _company(self, spec: Spec) -> Literal["any", "seed", "none"]:
        evaluator = self._evaluator(spec)
        if evaluator is not None and evaluator.shares_reads:
            return "seed"
        # Chains that prune take different branches; a long history per arm fills a core alone.
        alone = evaluator is not None and (spec.shared or self._short_moves())
        return "none" if alone else "any"

    def needs(self, spec: Spec) -> Needs:
        del spec
        return Needs(draw="key", choose=0)

    def init(self, key: AnyKey, spec: Spec) -> ThompsonState:
        scales = self.first_scales(spec)
        law = self.coefficients(spec, scales)
        energy = self.energy(spec, scales)
        theta = jnp.zeros((spec.dim, spec.blocks, *spec.lanes))
        if self.start == "normal":
            theta = lanes.normal(key, spec.parameters).reshape(theta.shape)
        batch, grams = self.kernel.batch_rounds, None
        if batch > 0 and energy.quadratic and spec.parameters <= batch:
            grams = BatchGrams.empty(spec, batch)
        played = energy.needs_played or (batch > 0 and grams is None)
        rows = None
        if energy.bonus is not None or played:
            rows = Rows.empty(spec, all_arms=energy.needs_contexts, played=played)
        mode = None
        if self._freezes(energy) or self._jumps(energy):
            inverse = sums.scaled_identity(spec, 1.0 / energy.ratio)
            mode = Mode(theta=jnp.zeros_like(theta), root=inverse)
        memo = None if energy.bonus is None else energy.bonus.init()
        root = None
        if self.preconditioned:
            root = sums.scaled_identity(spec, 1.0 / self._regularisation(law))
        return ThompsonState(
            data=Data(
                stats=Stats.empty(spec),
                rows=rows,
                count=jnp.zeros((), jnp.int32),
                grams=grams,
            ),
            chain=self.kernel.init(theta, memo),
            root=root,
            mode=mode,
            scales=scales,
            info=RoundInfo.nothing(spec.lanes),
            step=jnp.zeros(spec.lanes),
            spec=spec,
        )

    def reserve(self, state: ThompsonState, rounds: int) -> ThompsonState:
        energy = self.energy(state.spec, state.scales)
        chain = state.chain
        if energy.bonus is not None:
            chain = chain._replace(memo=energy.bonus.reserve(chain.memo, rounds))
        return dataclasses.replace(state, data=state.data.reserve(rounds), chain=chain)

    def draw(self, noise: AnyKey, state: ThompsonState) -> ThompsonState:
        """One round of inner steps: a new draw of θ, in `state.chain.theta`."""
        energy = self.energy(state.spec, state.scales)
        tuning = self._tuning(state, energy)
        frozen, mode = self._frozen(state, energy)
        mode, centre = self._centred(state, energy, mode)
        target = LinearModelTarget.of(energy, state.data, state.chain.theta, frozen, centre)
        chain, info = self._steps(noise, state, target, tuning)
        shape = chain.theta.shape[2:]
        step = jnp.broadcast_to(tuning.step, (state.spec.blocks, *shape)).mean(axis=0)
        return dataclasses.replace(state, chain=chain, mode=mode, info=info, step=step)

    def _steps(
        self, key: AnyKey, state: ThompsonState, target: LinearModelTarget, tuning: Tuning
    ) -> tuple[Any, RoundInfo]:
        """The inner steps of a round, in the first rounds several times."""
        if self.early == 1:
            return run_steps(key, self.kernel, state.chain, target, tuning, self.steps)
        turns = jnp.where(state.data.count < EARLY_ROUNDS, self.early, 1)

        def again(turn: Int[Array, ""], carry: tuple[Any, RoundInfo]) -> tuple[Any, RoundInfo]:
            chain, before = carry
            own = fold_in(key, turn)
            chain, info = run_steps(own, self.kernel, chain, target, tuning, self.steps)
            return chain, info._replace(gradients=before.gradients + info.gradients)

        return lax.fori_loop(0, turns, again, (state.chain, RoundInfo.nothing(state.spec.lanes)))

    def choose(
        self,
        noise: None,
        state: ThompsonState,
        context: Float[Array, "..."],
        allowed: Mask = None,
    ) -> Int[Array, "*lanes"]:
        del noise
        return lanes.argmax(models.scores(state.spec, state.chain.theta, context), allowed)

    def update(
        self,
        state: ThompsonState,
        context: Float[Array, "..."],
        arm: Int[Array, "*lanes"],
        reward: Float[Array, "*lanes"],
    ) -> ThompsonState:
        x, block = models.played(state.spec, context, arm)
        chain, root, mode = state.chain, state.root, state.mode
        energy = self.energy(state.spec, state.scales)
        seen = linear_reward(energy.likelihood, reward)
        data = state.data.add(context, x, block, arm, reward, seen)
        if energy.bonus is not None and data.rows is not None:
            chain = chain._replace(memo=energy.bonus.extend(chain.memo, data.rows, context))
        if root is not None:
            root = sums.update_inverse_root(root, x, block)
        if mode is not None:
            mode = mode._replace(root=sums.update_inverse_root(mode.root, x, block))
        chain = chain._replace(theta=data.unless_lost(chain.theta))
        moved = dataclasses.replace(state, data=data, chain=chain, root=root, mode=mode)
        return self._rescaled(moved, seen)

    def rebuilt(self, state: ThompsonState, keep: Float[Array, ""]) -> ThompsonState:
        """Every past reward with the weight `keep`, and the roots anew."""
        scales = None if state.scales is None else state.scales.times(keep)
        data = state.data.times(keep)
        law, root, mode = self.coefficients(state.spec, scales), state.root, state.mode
        if root is not None:
            root = Factor.of(data.stats, self._regularisation(law)).root
        if mode is not None:
            ratio = self.energy(state.spec, scales).ratio
            mode = mode._replace(root=Factor.of(data.stats, ratio).root)
        return dataclasses.replace(state, data=data, scales=scales, root=root, mode=mode)

    def _rescaled(self, state: ThompsonState, reward: Value) -> ThompsonState:
        """What is learned of noise and prior from this reward, and what depends on it."""
        model, old, stats = self.scale_model(), state.scales, state.data.stats
        if model is None or old is None:
            return state
        scales, renewed = model.learn(old, stats, state.data.count, reward)
        law = self.coefficients(state.spec, scales)
        root, mode, theta = state.root, state.mode, state.chain.theta

        def fresh(root: Array, ratio: Number) -> Array:
            """A root of V⁻¹ with another ratio, in the chains whose scales were renewed."""
            return rarely(
                renewed, lambda r: jnp.where(renewed, Factor.of(stats, ratio).root, r), root
            )

        if root is not None and self.lambda_reg is None:
            root = fresh(root, law.rho / law.eta)
        if mode is not None:
            ratio = self.energy(state.spec, scales).ratio
            mode = mode._replace(root=fresh(mode.root, ratio))
        chain = state.chain._replace(theta=started(theta, old, scales))
        return dataclasses.replace(state, scales=scales, root=root, mode=mode, chain=chain)

    def report(self, state: ThompsonState) -> Report:
        """Not finite once θ or a step is not: a filter rejects such steps, and θ stays finite."""
        theta = state.chain.theta
        return Report(
            finite=jnp.isfinite(jnp.sum(theta, axis=(0, 1)) + state.step),
            health=state.info.health(state.step, self.kernel.adjusted),
            parameters=theta.reshape(state.spec.parameters, *state.spec.lanes),
        )

    def _frozen(self, state: ThompsonState, energy: Energy) -> tuple[Theta | None, Mode | None]:
        """Gradient of λΣφ with the arms chosen at the mode, and the mode moved on."""
        mode, evaluator, rows = state.mode, energy.bonus, state.data.rows
        if mode is None or evaluator is None or rows is None or not self._freezes(energy):
            return None, mode
        no_uniforms = jnp.zeros((0, *mode.theta.shape[2:]))
        _, gradient, _ = evaluator.full().evaluate((), rows, mode.theta, no_uniforms)
        frozen = evaluator.bonus.strength * gradient
        # One Newton step from the old point. It ends at the minimum but for the rounding errors of
        # the root, which the next round's step corrects.
        stats = state.data.stats
        pull = stats.moment + frozen / (2.0 * energy.eta)
        left = pull - lanes.matvec(stats.gram, mode.theta) - energy.rho / energy.eta * mode.theta
        step = lanes.matvec(jnp.swapaxes(mode.root, 0, 1), lanes.matvec(mode.root, left))
        return frozen, mode._replace(theta=mode.theta + step)

    def _centred(
        self, state: ThompsonState, energy: Energy, mode: Mode | None
    ) -> tuple[Mode | None, Centre | None]:
        """The mode of the energy without the bonus moved on, and the normal law around it."""
        if mode is None or not self._jumps(energy):
            return mode, None
        plain = LinearModelTarget.of(energy, state.data, mode.theta)
        # The curvature's bound is bend (ratio I + Σ x xᵀ), with the root's matrix for its inverse.
        bend = energy.second_derivative * energy.eta
        slope = plain.data_gradient(mode.theta) / bend
        step = lanes.matvec(jnp.swapaxes(mode.root, 0, 1), lanes.matvec(mode.root, slope))
        mode = mode._replace(theta=mode.theta - step)
        return mode, Centre(mean=mode.theta, root=mode.root / jnp.sqrt(bend))
