"""Variational inference Thompson sampling."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from feelgood.agents.estimates import EstimatePolicy, EstimateState, FittedState
from feelgood.agents.linear_scores import each_arm, linear_law
from feelgood.agents.ridge import RidgeState
from feelgood.core.policy import AGENTS, Hints, Needs, Report
from feelgood.core.score_law import ScoreLaw
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.numerics.lanes import Mask
from feelgood.targets import logistic_fit, models, sums
from feelgood.targets.sums import Theta, Value

Matrix = Float[Array, "dim dim blocks *lanes"]


class Variational(NamedTuple):
    """The normal law N(m, B Bᵀ) of each block."""

    mean: Theta
    root: Matrix
    #: B⁻¹, followed along with B.
    inverse: Matrix

    def point(self, normal: Theta) -> Theta:
        """m + Bε."""
        return self.mean + lanes.matvec(self.root, normal)


class Unfollowed(NamedTuple):
    """A logistic model of which no mode is followed."""

    #: 0, or NaN where rounds were lost.
    theta: Theta
    #: Σ x xᵀ, four times a bound of the likelihood's curvature.
    gram: Matrix


class VariationalState(eqx.Module):
    """The model's data, and the law that follows its posterior."""

    model: EstimateState
    law: Variational
    #: The latest draw of θ.
    theta: Theta
    spec: Spec = eqx.field(static=True)


def flow(
    law: Variational,
    curvature: Matrix,
    bound: Float[Array, "blocks *lanes"],
    slope: Callable[[Variational, Any], Theta],
    step: Number,
    over: Any,
) -> Variational:
    """Steps of the flow towards the law nearest to exp(−U), one per entry of `over`.

    m ← m − hG and B ← (I − h(H − B⁻ᵀB⁻¹))B, with G = `slope`, an estimate of E ∇U, and
    H = `curvature`, one of E ∇²U. h is `step` relative to bounds of ∇²U and B⁻ᵀB⁻¹, so below 1 it
    is stable. `bound` must not depend on the point where H was taken, or the flow has a bias. B⁻¹
    takes the step (I + h(H − B⁻ᵀB⁻¹)) and then one of Newton's method for inverses.
    """

    def one(law: Variational, entry: Any) -> tuple[Variational, None]:
        precision = lanes.matmul(jnp.swapaxes(law.inverse, 0, 1), law.inverse)
        h = step / jnp.maximum(bound, sums.frobenius(precision))
        change = h * (curvature - precision)
        mean = law.mean - h * slope(law, entry)
        root = law.root - lanes.matmul(change, law.root)
        inverse = law.inverse + lanes.matmul(law.inverse, change)
        again = lanes.matmul(inverse, lanes.matmul(root, inverse))
        return Variational(mean, root, 2.0 * inverse - again), None

    return lax.scan(one, law, over)[0]


@AGENTS.register("vits", family="Thompson sampling from a formula")
class VITS(EstimatePolicy):
    """Thompson sampling from the normal law that is nearest to the posterior.

    θ ~ N(m, B Bᵀ), which follows the posterior exp(−U) by `steps` steps per round of the gradient
    flow of the Kullback–Leibler divergence: m ← m − hG, B ← (I − hH)B + hB⁻ᵀ. G is the mean of ∇U
    at the points m ± Bε and H is ∇²U at another such point, drawn once per round. For a linear
    model these are exact, and the law tends to the posterior. The temperature τ divides U.
    Plays argmax_a f_θ(x, a). A round takes work in proportion to dim³.

    Clavier, Huix and Oliviero Durmus, "VITS: variational inference Thompson sampling for contextual
    bandits", ICML 2024. There ε has one sign, H is drawn in every step, and h falls as 1/t.
    """

    step: Number = setting(
        0.5, "step h of the flow, relative to the curvature", above=0.0, high=0.99
    )
    steps: int = setting(5, "steps of the flow per round", low=1, high=10_000)

    # ---- what is known of the posterior -------------------------------------------------

    def first_fit(self, spec: Spec, precision: Number) -> Unfollowed:
        del precision
        zero = jnp.zeros((spec.dim, spec.blocks, *spec.lanes))
        return Unfollowed(zero, jnp.zeros((spec.dim, *zero.shape)))

    def refit(
        self,
        state: FittedState,
        x: Float[Array, "dim *lanes"],
        block: Float[Array, "blocks *lanes"],
        reward: Value,
        anew: Bool[Array, "*lanes"],
    ) -> Unfollowed:
        del reward, anew
        more = lanes.outer(x, x)[:, :, None] * block
        return state.fit._replace(gram=state.fit.gram + more)

    def _flowed(self, model: EstimateState, law: Variational, normals: Any) -> Variational:
        """The law after a round's steps; `normals`: one per step and one, if points are drawn."""
        cold = 1.0 / self.temperature
        if isinstance(model, RidgeState):
            mean, lower, variance = self.estimate(model)
            scaled = jnp.sqrt(cold / variance) * lower
            curvature = lanes.matmul(scaled, jnp.swapaxes(scaled, 0, 1))
            return flow(
                law,
                curvature,
                sums.frobenius(curvature),
                lambda law, _: lanes.matvec(curvature, law.mean - mean),
                self.step,
                jnp.arange(self.steps),
            )
        precision, rows = self.precision(model), model.rows
        curvature = cold * logistic_fit.hessian(rows, precision, law.point(normals[-1]))

        def slope(law: Variational, normal: Theta) -> Theta:
            away = lanes.matvec(law.root, normal)
            points = (law.mean + away, law.mean - away)
            one, other = (logistic_fit.gradient(rows, precision, theta) for theta in points)
            return 0.5 * cold * (one + other)

        bound = cold * (0.25 * sums.frobenius(model.fit.gram) + precision)
        return flow(law, curvature, bound, slope, self.step, normals[:-1])

    # ---- the policy; every state is a VariationalState ------------------------------------

    def init(self, key: AnyKey, spec: Spec) -> Any:
        model = super().init(key, spec)
        _, lower, variance = self._prior(model)
        scale = jnp.sqrt(variance * self.temperature)
        zero = jnp.zeros((spec.dim, spec.blocks, *spec.lanes))
        # The prior's factor is a multiple of I, so that its entries have their inverses in place.
        root = jnp.where(lower > 0.0, scale / jnp.where(lower > 0.0, lower, 1.0), 0.0)
        law = Variational(zero, root, lower / scale)
        return VariationalState(model=model, law=law, theta=zero, spec=spec)

    def _prior(self, model: EstimateState) -> tuple[Theta, Matrix, Array]:
        """Mean, factor and variance of the prior's law."""
        if isinstance(model, RidgeState):
            return self.estimate(model)
        lower = sums.scaled_identity(model.spec, self.precision(model))
        return model.fit.theta, lower, jnp.ones(model.spec.lanes)

    def reserve(self, state: Any, rounds: int) -> Any:
        return dataclasses.replace(state, model=super().reserve(state.model, rounds))

    def needs(self, spec: Spec) -> Needs:
        points = 0 if self.squared(spec) else self.steps + 1
        return Needs(draw=(1 + points) * spec.parameters, choose=0)

    def draw(self, noise: Float[Array, "normals *lanes"], state: Any) -> VariationalState:
        """The law moves towards the posterior; a draw from it."""
        normals = noise.reshape(-1, *state.theta.shape)
        law = self._flowed(state.model, state.law, normals[1:])
        return dataclasses.replace(state, law=law, theta=law.point(normals[0]))

    def choose(
        self,
        noise: None,
        state: Any,
        context: Float[Array, "..."],
        allowed: Mask = None,
    ) -> Int[Array, "*lanes"]:
        del noise
        return lanes.argmax(models.scores(state.spec, state.theta, context), allowed)

    def scores(self, state: Any, context: Float[Array, "..."]) -> ScoreLaw:
        """N(x·m, ‖Bᵀx‖²), given the steps of the flow in this round."""
        pushed = lanes.matvec(jnp.swapaxes(state.law.root, 0, 1), each_arm(state.spec, context))
        return linear_law(state.spec, models.scores(state.spec, state.law.mean, context), pushed)

    def update(
        self,
        state: Any,
        context: Float[Array, "..."],
        arm: Int[Array, "*lanes"],
        reward: Float[Array, "*lanes"],
    ) -> Any:
        return dataclasses.replace(state, model=super().update(state.model, context, arm, reward))

    def report(self, state: Any) -> Report:
        """Not finite once the law, a context or a reward was not."""
        sound = jnp.isfinite(jnp.sum(state.theta, axis=(0, 1)))
        parameters = state.theta.reshape(state.spec.parameters, *state.spec.lanes)
        return Report(finite=sound & super().report(state.model).finite, parameters=parameters)

    def hints(self, spec: Spec) -> Hints:
        return (
            super()
            .hints(spec)
            ._replace(
                target=self.linear_target(spec),
                linear=True,
                rebuilt=self._rebuilt_model,
                scores=self.scores,
            )
        )

    def _rebuilt_model(self, state: Any, keep: Value) -> Any:
        return dataclasses.replace(state, model=self.rebuilt(state.model, keep))
