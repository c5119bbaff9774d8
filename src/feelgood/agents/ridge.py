"""The ridge posterior that the closed-form agents share."""

import dataclasses
from abc import abstractmethod
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.agents.model_settings import ModelPolicy
from feelgood.core.policy import Hints, Policy, Report
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.numerics.rare import rarely
from feelgood.targets import models, sums
from feelgood.targets.scales import LEAST_NOISE, Factor, ScaleModel, Scales
from feelgood.targets.sums import Stats, Value


class Ridge(NamedTuple):
    """For each block, the Cholesky factor L of V = ρI + Σ x xᵀ, and below it w = L⁻¹ Σ r x.

    Least squares in its orthogonal form: one rotation per column takes in both x and r, and the
    ridge estimate is L⁻ᵀw.
    """

    system: Float[Array, "rows dim blocks *lanes"]

    @property
    def factor(self) -> Float[Array, "dim dim blocks *lanes"]:
        """L."""
        return self.system[:-1]

    @property
    def white(self) -> Float[Array, "dim blocks *lanes"]:
        """w = L⁻¹b."""
        return self.system[-1]


class Learned(NamedTuple):
    """The scales that are learned, and the sums that they are learned from."""

    scales: Scales
    stats: Stats


class RidgeState(eqx.Module):
    """A ridge posterior with the shape of its problem and the number of observations."""

    ridge: Ridge
    count: Int[Array, ""]
    #: The latest draw of θ; None for agents that draw none.
    theta: Float[Array, "dim blocks *lanes"] | None
    #: None where noise and prior are told.
    learned: Learned | None
    spec: Spec = eqx.field(static=True)


class RidgeAgent(Policy):
    """What the closed-form agents share: a ridge posterior, updated by every reward."""

    def scale_model(self) -> ScaleModel | None:
        """What is learned of noise and prior; None: nothing."""
        return None

    @abstractmethod
    def ratio(self) -> Number:
        """ρ of V = ρI + Σ x xᵀ where it is not learned."""

    def init(self, key: AnyKey, spec: Spec) -> RidgeState:
        """No data: V = ρI, b = 0."""
        del key
        model, learned = self.scale_model(), None
        if model is None:
            ratio = self.ratio()
        else:
            learned = Learned(model.init(spec), Stats.empty(spec))
            ratio = learned.scales.noise / learned.scales.prior
        factor = sums.scaled_identity(spec, ratio)
        nothing = jnp.zeros((1, *factor.shape[1:]))
        return RidgeState(
            ridge=Ridge(system=jnp.concatenate([factor, nothing])),
            count=jnp.zeros((), jnp.int32),
            theta=None,
            learned=learned,
            spec=spec,
        )

    def update(
        self,
        state: RidgeState,
        context: Float[Array, "..."],
        arm: Int[Array, "*lanes"],
        reward: Float[Array, "*lanes"],
    ) -> RidgeState:
        """One more observation: a rank-one update of the played block's factor."""
        x, block = models.played(state.spec, context, arm)
        system = sums.update_factor(state.ridge.system, x, block, reward[None])
        learned, count, model = state.learned, state.count + 1, self.scale_model()
        if learned is not None and model is not None:
            stats = learned.stats.add(x, block, reward)
            scales, renewed = model.learn(learned.scales, stats, count, reward)

            def renew(old: Array) -> Array:
                factor = Factor.of(stats, scales.noise / scales.prior)
                new = jnp.concatenate([factor.lower, factor.white[None]])
                return jnp.where(renewed, new, old)

            system = rarely(renewed, renew, system)
            learned = Learned(scales, stats)
        return dataclasses.replace(state, ridge=Ridge(system=system), count=count, learned=learned)

    def rebuilt(self, state: RidgeState, keep: Float[Array, ""]) -> RidgeState:
        """Every past reward with the weight `keep`; the prior stays whole: V ← ρI + keep Σ x xᵀ."""
        learned = state.learned
        if learned is None:
            lower, ratio = state.ridge.factor, self.ratio()
            gram = lanes.matmul(lower, jnp.swapaxes(lower, 0, 1))
            eye = sums.scaled_identity(state.spec, jnp.ones(()))
            moment = lanes.matvec(lower, state.ridge.white)
            stats = Stats(keep * (gram - ratio * eye), keep * moment)
        else:
            stats = learned.stats.times(keep)
            learned = Learned(learned.scales.times(keep), stats)
            ratio = learned.scales.noise / learned.scales.prior
        factor = Factor.of(stats, ratio)
        system = jnp.concatenate([factor.lower, factor.white[None]])
        return dataclasses.replace(state, ridge=Ridge(system=system), learned=learned)

    def noise_law(self, state: RidgeState) -> tuple[Value, Value]:
        """Σ r² − bᵀV⁻¹b and n, with which σ² = (first)/χ²_n, where the noise is learned.

        Before the first reward that is not 0 any σ draws the same arms: then both are 1.
        """
        assert state.learned is not None
        squares = state.learned.scales.squares
        white = state.ridge.white
        left = jnp.maximum(squares - jnp.sum(white**2, axis=(0, 1)), LEAST_NOISE * squares)
        known = squares > 0.0
        return jnp.where(known, left, 1.0), jnp.where(known, state.learned.scales.rewards, 1.0)

    def report(self, state: RidgeState) -> Report:
        """The sum of w is not finite once a context or a reward was not."""
        return Report(finite=jnp.isfinite(jnp.sum(state.ridge.white, axis=(0, 1))))

    def hints(self, spec: Spec) -> Hints:
        del spec
        return Hints(layout="lanes", sums=True, rebuilt=self.rebuilt)


class RidgePolicy(RidgeAgent):
    """A ridge posterior with a ρ of its own, which means nothing but itself."""

    rho: Number = setting(0.01, "prior precision ρ", above=0.0, high=1e9)

    def ratio(self) -> Number:
        return self.rho


class ModelRidgePolicy(ModelPolicy, RidgeAgent):
    """A ridge posterior whose ρ is noise²/prior²: the posterior of the model in the user's words.

    θ | σ² ~ N(V⁻¹b, σ² V⁻¹), V = ρI + Σ x xᵀ. With ρ given and the noise learned from p(σ²) ∝ 1/σ²,
    σ² has the law (Σ r² − bᵀV⁻¹b)/χ²_n, and θ is Student-t: the conjugate normal–inverse-gamma law.
    """

    rho: Number | None = setting(
        "auto", "ρ of V = ρI + Σ x xᵀ; auto: noise²/prior²", above=0.0, high=1e9, open_word="auto"
    )

    def ratio(self) -> Number:
        if self.in_papers_words():
            return jnp.asarray(0.01, jnp.float32) if self.rho is None else self.rho
        assert self.noise is not None and self.prior is not None
        return (self.noise / self.prior) ** 2
