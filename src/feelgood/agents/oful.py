"""Optimism within the confidence ellipsoid that the data's own determinant gives."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.agents.arm_laws import drawn_arm, shared_by_best
from feelgood.agents.estimates import EstimateAgent, EstimateState, FittedState
from feelgood.core.policy import AGENTS, Hints, Needs
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes
from feelgood.targets import models
from feelgood.targets.sums import Value


@AGENTS.register("oful", family="Upper confidence bounds")
class OFUL(EstimateAgent):
    """The largest reward within a confidence ellipsoid, whose radius follows the data.

    Plays argmax_a x·θ̂ + w β ‖x‖_{V⁻¹}, several best arms with equal probabilities, with

        β = σ √(log det V − D log ρ + 2 log(1/δ)) + √ρ S,   V = ρI + Σ x xᵀ over all D parameters.

    With probability 1 − δ the truth is in the ellipsoid in all rounds, if σ and S ≥ ‖θ‖ are told
    and w = 1. By default σ and ρ = σ²/s² are learned, and S = s √D is the length that the prior
    expects. The theory is cautious: with w = 0.1 the regret is several times smaller in practice.

    For Bernoulli rewards V is H, the precision of Laplace's approximation, with σ = 1 and ρ = 1/s².
    There the theorem does not hold, since H is that of the estimate.

    Abbasi-Yadkori, Pál and Szepesvári, "Improved algorithms for linear stochastic bandits",
    NeurIPS 2011.
    """

    width: Number = setting(1.0, "factor w of the radius; 1 is the theory's", low=0.0, high=1e9)
    delta: Number = setting(0.01, "probability δ that the truth is outside", above=0.0, high=1.0)
    bound: Number | None = setting(
        "auto",
        "bound S of the parameters' length; auto: prior · √D",
        low=0.0,
        high=1e9,
        open_word="auto",
    )

    def needs(self, spec: Spec) -> Needs:
        del spec
        return Needs(choose=1)

    def choose(
        self,
        noise: Float[Array, "normals *lanes"],
        state: EstimateState,
        context: Float[Array, "..."],
    ) -> Int[Array, "*lanes"]:
        return drawn_arm(noise[0], self.pmf(state, context))

    def hints(self, spec: Spec) -> Hints:
        return super().hints(spec)._replace(pmf=self.pmf)

    def pmf(
        self, state: EstimateState, context: Float[Array, "..."]
    ) -> Float[Array, "arms *lanes"]:
        """1 for the arm with the largest bound, shared by several."""
        spec, (mean, lower, _) = state.spec, self.estimate(state)
        x = models.features(spec, context)
        each = jnp.broadcast_to(x, (x.shape[0], max(x.shape[1], spec.blocks), *x.shape[2:]))
        whitened = lanes.solve_lower(lower, each)
        spread = jnp.sqrt(lanes.dot(whitened, whitened))
        return shared_by_best(models.scores(spec, mean, context) + self.radius(state) * spread)

    def radius(self, state: EstimateState) -> Value:
        """w β."""
        spec, (_, lower, variance) = state.spec, self.estimate(state)
        prior, ratio = self._scales(state)
        diagonal = jnp.stack([lower[i, i] for i in range(spec.dim)])
        volume = jnp.sum(jnp.log(diagonal**2 / ratio), axis=(0, 1))
        # Without data the volume is 0 but for rounding.
        inside = jnp.sqrt(jnp.maximum(volume, 0.0) - 2.0 * jnp.log(self.delta))
        length = jnp.sqrt(prior * spec.parameters) if self.bound is None else self.bound
        return self.width * (jnp.sqrt(variance) * inside + jnp.sqrt(ratio) * length)

    def _scales(self, state: EstimateState) -> tuple[Value, Value]:
        """s² and ρ as they are in V."""
        if isinstance(state, FittedState):
            precision = jnp.broadcast_to(self.precision(state), state.spec.lanes)
            return 1.0 / precision, precision
        if state.learned is not None:
            scales = state.learned.scales
            return scales.prior, scales.noise / scales.prior
        assert self.prior is not None
        prior = jnp.broadcast_to(self.prior**2, state.spec.lanes)
        return prior, jnp.broadcast_to(self.ratio(), state.spec.lanes)
