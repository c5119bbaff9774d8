"""The ridge posterior that the closed-form agents share."""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.core.policy import Hints, Policy, Report
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.numerics.keys import AnyKey
from feelgood.targets import models, sums


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


class RidgeState(eqx.Module):
    """A ridge posterior with the shape of its problem and the number of observations."""

    ridge: Ridge
    count: Int[Array, ""]
    #: The latest draw of θ; None for agents that draw none.
    theta: Float[Array, "dim blocks *lanes"] | None
    spec: Spec = eqx.field(static=True)


class RidgePolicy(Policy):
    """What the closed-form agents share: a ridge posterior, updated by every reward."""

    rho: Number = setting(0.01, "prior precision ρ", above=0.0, high=1e9)

    def init(self, key: AnyKey, spec: Spec) -> RidgeState:
        """No data: V = ρI, b = 0."""
        del key
        factor = sums.scaled_identity(spec, self.rho)
        nothing = jnp.zeros((1, *factor.shape[1:]))
        return RidgeState(
            ridge=Ridge(system=jnp.concatenate([factor, nothing])),
            count=jnp.zeros((), jnp.int32),
            theta=None,
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
        return dataclasses.replace(state, ridge=Ridge(system=system), count=state.count + 1)

    def report(self, state: RidgeState) -> Report:
        """The sum of w is not finite once a context or a reward was not."""
        return Report(finite=jnp.isfinite(jnp.sum(state.ridge.white, axis=(0, 1))))

    def hints(self, spec: Spec) -> Hints:
        del spec
        return Hints(layout="lanes")
