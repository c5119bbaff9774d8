"""The estimate that an agent acts on: the posterior's mode, and the precision there.

For a squared loss this is the exact posterior, the ridge estimate. For Bernoulli rewards it is
Laplace's approximation of the logistic model's posterior.
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from feelgood.agents.model_settings import BeliefPolicy, ModelPolicy
from feelgood.agents.ridge import Learned, RidgeAgent, RidgeState
from feelgood.core.policy import Hints, Report
from feelgood.core.settings import setting
from feelgood.core.spec import LinearTarget, Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.targets import logistic_fit, models
from feelgood.targets.history import Rows
from feelgood.targets.logistic_fit import Fit
from feelgood.targets.losses import LOSSES, loss_for
from feelgood.targets.room import unless_lost
from feelgood.targets.scales import due, linear_reward
from feelgood.targets.sums import Stats, Theta, Value


class NormalEstimate(NamedTuple):
    """The normal law N(mean, variance · (L Lᵀ)⁻¹) of each block."""

    mean: Theta
    #: L.
    lower: Float[Array, "dim dim blocks *lanes"]
    #: σ² for a squared loss, where L Lᵀ = Σ x xᵀ + (σ²/s²)I; 1 for Bernoulli rewards.
    variance: Value


class FittedState(eqx.Module):
    """What is known of a logistic model's posterior, and the rounds that it is known from."""

    #: The posterior's mode, unless an agent follows something else; see `EstimatePolicy.refit`.
    fit: Any
    rows: Rows
    count: Int[Array, ""]
    #: The latest draw of θ; None for agents that draw none.
    theta: Theta | None
    #: None where the prior is told.
    learned: Learned | None
    spec: Spec = eqx.field(static=True)


EstimateState = RidgeState | FittedState


class EstimateAgent(BeliefPolicy, RidgeAgent):
    """An agent that acts on θ̂, the mode of its model's posterior, and on the precision there.

    Squared loss: θ ~ N(V⁻¹b, σ²V⁻¹), exact (`feelgood.agents.ridge`); a learned σ² is the scale of
    its posterior, (Σ r² − bᵀV⁻¹b)/n. Bernoulli rewards: P(r = 1) = μ(x·θ), θ ~ N(0, s² I), and the
    law is N(θ̂, H(θ̂)⁻¹) (`feelgood.targets.logistic_fit`).
    """

    likelihood: str = setting("auto", "loss; auto follows the testbed", choices=LOSSES)

    def squared(self, spec: Spec) -> bool:
        """Whether rewards are taken as normal, and not as Bernoulli."""
        return loss_for(self.likelihood, spec) == "squared"

    def estimate(self, state: EstimateState) -> NormalEstimate:
        """The law after all rewards so far."""
        if isinstance(state, FittedState):
            return NormalEstimate(state.fit.theta, state.fit.lower, jnp.ones(state.spec.lanes))
        mean = lanes.solve_upper(state.ridge.factor, state.ridge.white)
        if self.noise is None:
            left, freedom = self.noise_law(state)
            return NormalEstimate(mean, state.ridge.factor, left / freedom)
        return NormalEstimate(
            mean, state.ridge.factor, jnp.broadcast_to(self.noise**2, state.spec.lanes)
        )

    def mean_rewards(
        self, state: EstimateState, context: Float[Array, "..."]
    ) -> Float[Array, "arms *lanes"]:
        """The reward that every arm is expected to pay: x·θ̂, or μ(x·θ̂)."""
        scores = models.scores(state.spec, self.estimate(state).mean, context)
        return jax.nn.sigmoid(scores) if isinstance(state, FittedState) else scores

    def first_fit(self, spec: Spec, precision: Number) -> Any:
        """What is followed of a logistic posterior, before any data."""
        return Fit.empty(spec, precision)

    def refit(
        self,
        state: FittedState,
        x: Float[Array, "dim *lanes"],
        block: Float[Array, "blocks *lanes"],
        reward: Value,
        anew: Bool[Array, "*lanes"],
    ) -> Any:
        """What is followed of a logistic posterior, after one more round (x, block, reward).

        `state` has the round and the new prior, but not yet the new fit. `anew`: the prior has
        changed, or the data have grown by some 20 %.
        """
        del reward
        fit = state.fit.add(x, block)
        return logistic_fit.follow(state.rows, self.precision(state), fit, anew)

    def precision(self, state: FittedState) -> Number:
        """1/s² of the logistic model."""
        if state.learned is not None:
            return 1.0 / state.learned.scales.prior
        assert self.prior is not None
        return 1.0 / self.prior**2

    # ---- the policy ---------------------------------------------------------------------

    def ratio(self) -> Number:
        assert self.noise is not None and self.prior is not None
        return (self.noise / self.prior) ** 2

    def init(self, key: AnyKey, spec: Spec) -> Any:
        """No data: the prior."""
        if self.squared(spec):
            return super().init(key, spec)
        model, learned = self.scale_model(), None
        if model is not None:
            learned = Learned(model.init(spec), Stats.empty(spec))
        state = FittedState(
            fit=None,
            rows=Rows.empty(spec, all_arms=False, played=True),
            count=jnp.zeros((), jnp.int32),
            theta=None,
            learned=learned,
            spec=spec,
        )
        return dataclasses.replace(state, fit=self.first_fit(spec, self.precision(state)))

    def reserve(self, state: EstimateState, rounds: int) -> EstimateState:
        if isinstance(state, RidgeState):
            return state
        return dataclasses.replace(state, rows=state.rows.reserve(rounds))

    def update(
        self,
        state: EstimateState,
        context: Float[Array, "..."],
        arm: Int[Array, "*lanes"],
        reward: Float[Array, "*lanes"],
    ) -> Any:
        """One more observation; the mode follows."""
        if isinstance(state, RidgeState):
            return super().update(state, context, arm, reward)
        x, block = models.played(state.spec, context, arm)
        count, learned, model = state.count + 1, state.learned, self.scale_model()
        anew = jnp.broadcast_to(due(count), state.spec.lanes)
        if learned is not None and model is not None:
            seen = linear_reward("bernoulli", reward)
            stats = learned.stats.add(x, block, seen)
            scales, renewed = model.learn(learned.scales, stats, count, seen)
            learned, anew = Learned(scales, stats), anew | renewed
        rows = state.rows.add(context, x, arm, reward)
        state = dataclasses.replace(state, rows=rows, count=count, learned=learned)
        fit = self.refit(state, x, block, reward, anew)
        theta = unless_lost(fit.theta, count, rows.capacity)
        return dataclasses.replace(state, fit=fit._replace(theta=theta))

    def report(self, state: EstimateState) -> Report:
        """Not finite once a context or a reward was not."""
        if isinstance(state, RidgeState):
            return super().report(state)
        return Report(finite=jnp.isfinite(jnp.sum(state.fit.theta, axis=(0, 1))))

    def hints(self, spec: Spec) -> Hints:
        return Hints(
            layout="lanes",
            grows=not self.squared(spec),
            matched=lambda noise, precision: {"noise": noise, "prior": precision**-0.5},
        )


class EstimatePolicy(ModelPolicy, EstimateAgent):
    """The same for an agent that draws parameters from that law, tempered."""

    def widening(self, spec: Spec) -> Number:
        """The factor of the law's variance: the temperature."""
        del spec
        return self.temperature

    def linear_target(self, spec: Spec) -> LinearTarget | None:
        """The posterior, tempered, as a law of the parameters; None while it is learned."""
        if self.scale_model() is not None:
            return None
        assert self.noise is not None and self.prior is not None
        beta, loss = 1.0 / float(self.widening(spec)), loss_for(self.likelihood, spec)
        weight = 2.0 if loss == "bernoulli" else 1.0 / float(self.noise) ** 2
        prior = 1.0 / float(self.prior) ** 2
        return LinearTarget(weight=beta * weight, prior=beta * prior, loss=loss, beta=beta)
