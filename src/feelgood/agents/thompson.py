"""Thompson sampling with an MCMC kernel in place of the exact posterior.

One policy for all of the paper's agents: a target (loss, prior, feel-good bonus) × a kernel × a
preconditioner, warm-started from the round before.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import Hints, Needs, Policy, Report
from feelgood.core.settings import setting
from feelgood.core.spec import LinearTarget, Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.samplers.blocks import Kernel, RoundInfo, Tuning, run_steps
from feelgood.targets import models, sums
from feelgood.targets.bonus import FeelGood, on_scores
from feelgood.targets.energy import Energy, LinearModelTarget
from feelgood.targets.evaluators import Evaluator, FullPass, evaluator_for
from feelgood.targets.history import Rows
from feelgood.targets.losses import LOSSES, loss_for
from feelgood.targets.observations import Data
from feelgood.targets.random_batches import BatchGrams
from feelgood.targets.sums import Stats, Theta

SCHEDULES = ("curvature", "decay", "constant")
STARTS = ("normal", "zero")


class Mode(NamedTuple):
    """A point near the mode of L that depends on the data alone, and how to move it.

    L is a convex quadratic minus a convex bonus. Linearising the bonus at the old point and
    minimising exactly is the concave-convex procedure (Yuille and Rangarajan 2003): it never
    increases L. The arm choices at this point give HMC its cheap force.
    """

    theta: Theta
    #: B with BᵀB = (ρ/η I + Σ x xᵀ)⁻¹.
    root: Float[Array, "dim dim blocks *lanes"]


class ThompsonState(eqx.Module):
    """Data, chain and the factorisations that go with them."""

    data: Data
    chain: Any
    #: B with BᵀB = V⁻¹, the preconditioner; None: there is none.
    root: Float[Array, "dim dim blocks *lanes"] | None
    mode: Mode | None
    info: RoundInfo
    step: Float[Array, "*lanes"]
    spec: Spec = eqx.field(static=True)


class Thompson(Policy):
    """Thompson sampling from π ∝ exp(−βL) by `steps` inner steps of a kernel every round."""

    kernel: Kernel
    bonus: FeelGood | None = None
    preconditioned: bool = eqx.field(static=True, default=False)

    beta: Number = setting(1.0, "inverse temperature β of the target exp(−βL)", above=0.0, high=1e9)
    eta: Number = setting(1.0, "weight η of the data term", above=0.0, high=1e9)
    rho: Number = setting(0.01, "coefficient ρ of the prior ρ‖θ‖²", above=0.0, high=1e9)
    step: Number = setting(0.5, "step size, in the units of the schedule", above=0.0, high=1e6)
    lambda_reg: Number = setting(1.0, "λ_reg of V = λ_reg I + Σ x xᵀ", above=0.0, high=1e9)
    steps: int = setting(25, "inner steps per round", low=1, high=100_000)
    schedule: str = setting(
        "curvature", "step relative to the curvature, step/t, or step as it is", choices=SCHEDULES
    )
    start: str = setting("normal", "where chains start: N(0, I) or 0", choices=STARTS)
    likelihood: str = setting("auto", "loss; auto follows the testbed", choices=LOSSES)
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
        if self.kernel.warmup >= self.steps:
            raise FeelgoodError(
                f"warmup_steps = {self.kernel.warmup} leaves none of the {self.steps} inner steps: "
                "use fewer."
            )

    # ---- the target ---------------------------------------------------------------------

    def energy(self, spec: Spec) -> Energy:
        """L for this problem, with the evaluator of the bonus that suits its layout."""
        return Energy(
            eta=self.eta,
            rho=self.rho,
            bonus=self._evaluator(spec),
            likelihood=loss_for(self.likelihood, spec),
            spec=spec,
        )

    def _evaluator(self, spec: Spec) -> Evaluator | None:
        if self.bonus is None:
            return None
        batch = 0 if self.bonus_gradient == "exact" else self.bonus_batch
        bonus = on_scores(self.bonus, loss_for(self.likelihood, spec))
        return evaluator_for(bonus, spec, short_moves=self._short_moves(), batch=batch)

    def _short_moves(self) -> bool:
        """Whether a step moves the chain by much less than the posterior is wide."""
        return self.kernel.gradients_per_step <= 1

    def _freezes(self, energy: Energy) -> bool:
        """Whether HMC takes its force from frozen arm choices."""
        return energy.bonus is not None and energy.quadratic and not self._short_moves()

    def _tuning(self, state: ThompsonState, energy: Energy) -> Tuning:
        step, curvature = self.step, None
        if self.schedule == "curvature":
            if self.preconditioned:
                curvature = energy.preconditioned_curvature(self.lambda_reg)
            else:
                curvature = energy.curvature(state.data.stats)
            step = self.kernel.step_size(self.step, curvature, self.beta)
        elif self.schedule == "decay":
            step = self.step / (state.data.count + 1.0)
        return Tuning(step=step, beta=self.beta, root=state.root, curvature=curvature)

    # ---- the policy ---------------------------------------------------------------------

    def hints(self, spec: Spec) -> Hints:
        return Hints(
            layout="lanes",
            # Chains that prune take different branches; a long history per arm fills a core alone.
            alone=self.bonus is not None and (spec.shared or self._short_moves()),
            grows=True,
            target=gibbs_target(self.energy(spec), self.beta, self.bonus),
            matched=functools.partial(gibbs_matched, spec),
        )

    def needs(self, spec: Spec) -> Needs:
        del spec
        return Needs(draw="key", choose=0)

    def init(self, key: AnyKey, spec: Spec) -> ThompsonState:
        energy = self.energy(spec)
        theta = jnp.zeros((spec.dim, spec.blocks, *spec.lanes))
        if self.start == "normal":
            theta = lanes.normal(key, spec.parameters).reshape(theta.shape)
        batch, grams = self.kernel.batch_rounds, None
        if batch > 0 and energy.quadratic and spec.parameters <= batch:
            grams = BatchGrams.empty(spec, batch)
        played = energy.needs_played or (batch > 0 and grams is None)
        rows = None
        if energy.needs_contexts or played:
            rows = Rows.empty(spec, all_arms=energy.needs_contexts, played=played)
        mode = None
        if self._freezes(energy):
            root = sums.scaled_identity(spec, self.eta / self.rho)
            mode = Mode(theta=jnp.zeros_like(theta), root=root)
        memo = None if energy.bonus is None else energy.bonus.init()
        return ThompsonState(
            data=Data(
                stats=Stats.empty(spec),
                rows=rows,
                count=jnp.zeros((), jnp.int32),
                grams=grams,
            ),
            chain=self.kernel.init(theta, memo),
            root=sums.scaled_identity(spec, 1.0 / self.lambda_reg) if self.preconditioned else None,
            mode=mode,
            info=RoundInfo.nothing(spec.lanes),
            step=jnp.zeros(spec.lanes),
            spec=spec,
        )

    def reserve(self, state: ThompsonState, rounds: int) -> ThompsonState:
        energy = self.energy(state.spec)
        chain = state.chain
        if energy.bonus is not None:
            chain = chain._replace(memo=energy.bonus.reserve(chain.memo, rounds))
        return dataclasses.replace(state, data=state.data.reserve(rounds), chain=chain)

    def draw(self, noise: AnyKey, state: ThompsonState) -> ThompsonState:
        """One round of inner steps: a new draw of θ, in `state.chain.theta`."""
        energy = self.energy(state.spec)
        tuning = self._tuning(state, energy)
        frozen, mode = self._frozen(state, energy)
        target = LinearModelTarget.of(energy, state.data, state.chain.theta, frozen)
        chain, info = run_steps(noise, self.kernel, state.chain, target, tuning, self.steps)
        shape = chain.theta.shape[2:]
        step = jnp.broadcast_to(tuning.step, (state.spec.blocks, *shape)).mean(axis=0)
        return dataclasses.replace(state, chain=chain, mode=mode, info=info, step=step)

    def choose(
        self, noise: None, state: ThompsonState, context: Float[Array, "..."]
    ) -> Int[Array, "*lanes"]:
        del noise
        return lanes.argmax(models.scores(state.spec, state.chain.theta, context))

    def update(
        self,
        state: ThompsonState,
        context: Float[Array, "..."],
        arm: Int[Array, "*lanes"],
        reward: Float[Array, "*lanes"],
    ) -> ThompsonState:
        x, block = models.played(state.spec, context, arm)
        chain, root, mode = state.chain, state.root, state.mode
        energy = self.energy(state.spec)
        data = state.data.add(context, x, block, arm, reward)
        if energy.bonus is not None and data.rows is not None:
            chain = chain._replace(memo=energy.bonus.extend(chain.memo, data.rows, context))
        if root is not None:
            root = sums.update_inverse_root(root, x, block)
        if mode is not None:
            mode = mode._replace(root=sums.update_inverse_root(mode.root, x, block))
        chain = chain._replace(theta=data.unless_lost(chain.theta))
        return dataclasses.replace(state, data=data, chain=chain, root=root, mode=mode)

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
        if mode is None or evaluator is None or rows is None:
            return None, mode
        everything = FullPass(bonus=evaluator.bonus, spec=energy.spec)
        no_uniforms = jnp.zeros((0, *mode.theta.shape[2:]))
        _, gradient, _ = everything.evaluate((), rows, mode.theta, no_uniforms)
        frozen = evaluator.bonus.strength * gradient
        # One Newton step from the old point. It ends at the minimum but for the rounding errors of
        # the root, which the next round's step corrects.
        stats = state.data.stats
        pull = stats.moment + frozen / (2.0 * self.eta)
        left = pull - lanes.matvec(stats.gram, mode.theta) - self.rho / self.eta * mode.theta
        step = lanes.matvec(jnp.swapaxes(mode.root, 0, 1), lanes.matvec(mode.root, left))
        return frozen, mode._replace(theta=mode.theta + step)


def gibbs_target(energy: Energy, beta: Number, bonus: FeelGood | None) -> LinearTarget:
    """What exp(−βL) is as a law of a linear model's parameters."""
    by = 2.0 * float(beta)
    return LinearTarget(
        weight=by * float(energy.eta),
        prior=by * float(energy.rho),
        loss=energy.likelihood,
        bonus=bonus,
        beta=float(beta),
    )


def gibbs_matched(spec: Spec, noise: float, precision: float) -> dict[str, float]:
    """Settings with which exp(−βL) is the posterior with this noise and prior N(0, I/precision).

    β = 1, η = 1/(2·noise²), ρ = precision/2; and η = 1 for the Bernoulli loss.
    """
    eta = 1.0 if spec.rewards == "bernoulli" else 0.5 / noise**2
    return {"beta": 1.0, "eta": eta, "rho": 0.5 * precision}
