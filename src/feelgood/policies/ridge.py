"""The ridge posterior that the closed-form agents share."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood import history, lanes, models
from feelgood.lanes import AnyKey
from feelgood.protocols import Policy
from feelgood.settings import setting
from feelgood.types import Number, Spec


class Ridge(NamedTuple):
    """Cholesky factors of V_a = ρI + Σ x xᵀ and the moments b_a = Σ r x, a block each."""

    factor: Float[Array, "dim dim blocks *lanes"]
    moment: Float[Array, "dim blocks *lanes"]


class RidgeState(eqx.Module):
    """A ridge posterior with the shape of its problem and the number of observations."""

    ridge: Ridge
    count: Int[Array, ""]
    spec: Spec = eqx.field(static=True)


def whitened_mean(state: RidgeState) -> Float[Array, "dim blocks *lanes"]:
    """L⁻¹ b; the ridge estimate is L⁻ᵀ of it."""
    return lanes.solve_lower(state.ridge.factor, state.ridge.moment)


class RidgePolicy(Policy):
    """What the closed-form agents share: a ridge posterior, updated by every reward."""

    rho: Number = setting(0.01, "prior precision ρ", above=0.0, high=1e9)

    laned = True

    def init(self, key: AnyKey, spec: Spec, shape: tuple[int, ...] = ()) -> RidgeState:
        """No data: V = ρI, b = 0."""
        del key
        return RidgeState(
            ridge=Ridge(
                factor=history.scaled_identity(spec, self.rho, shape),
                moment=jnp.zeros((spec.dim, spec.blocks, *shape)),
            ),
            count=jnp.zeros((), jnp.int32),
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
        return RidgeState(
            ridge=Ridge(
                factor=history.update_factor(state.ridge.factor, x, block),
                moment=state.ridge.moment + (reward * x)[:, None] * block,
            ),
            count=state.count + 1,
            spec=state.spec,
        )

    def probe(self, state: RidgeState) -> Float[Array, "*lanes"]:
        """Sum of the moments: not finite once a context or a reward was not."""
        return jnp.sum(state.ridge.moment, axis=(0, 1))
