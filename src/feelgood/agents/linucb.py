"""Linear upper confidence bounds."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.agents.ridge import RidgePolicy, RidgeState
from feelgood.core.policy import AGENTS, Hints, Needs
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.lanes import Mask
from feelgood.targets import models


@AGENTS.register("linucb", family="Upper confidence bounds")
class LinUCB(RidgePolicy):
    """Ridge estimate plus α times its standard error, for every arm.

    Plays argmax_a x·V⁻¹b + α √(x·V⁻¹x), with V = ρI + Σ x xᵀ and b = Σ r x. With V = L Lᵀ and
    w = L⁻¹x both terms come from one triangular solve: w·(L⁻¹b) and α‖w‖.

    Li, Chu, Langford and Schapire, "A contextual-bandit approach to personalized news article
    recommendation", WWW 2010.

    **Example:**

    >>> import feelgood
    >>> wide, narrow = feelgood.run(
    ...     "linear-20", "linucb", settings={"linucb": {"alpha": [10.0, 1.0]}}, rounds=200, seeds=3
    ... )
    >>> bool(narrow.regret.mean < wide.regret.mean)  # too much exploration costs
    True
    """

    alpha: Number = setting(
        1.0, "width α of the confidence bound", low=0.0, high=1e9, tune=(0.01, 10.0)
    )

    def needs(self, spec: Spec) -> Needs:
        del spec
        return Needs(choose=0)

    def choose(
        self,
        noise: None,
        state: RidgeState,
        context: Float[Array, "..."],
        allowed: Mask = None,
    ) -> Int[Array, "*lanes"]:
        del noise
        return lanes.argmax(self._bounds(state, context), allowed)

    def _bounds(
        self, state: RidgeState, context: Float[Array, "..."]
    ) -> Float[Array, "arms *lanes"]:
        x = models.features(state.spec, context)
        width = max(x.shape[1], state.spec.blocks)
        whitened = lanes.solve_lower(
            state.ridge.factor, jnp.broadcast_to(x, (x.shape[0], width, *x.shape[2:]))
        )
        mean = lanes.dot(whitened, state.ridge.white)
        return mean + self.alpha * jnp.sqrt(lanes.dot(whitened, whitened))

    def hints(self, spec: Spec) -> Hints:
        return super().hints(spec)._replace(pmf=self.pmf)

    def pmf(
        self, state: RidgeState, context: Float[Array, "..."], allowed: Mask = None
    ) -> Float[Array, "arms *lanes"]:
        """1 for the arm with the largest bound; the first of several."""
        return lanes.one_hot(self.choose(None, state, context, allowed), state.spec.arms)
