"""What all released MCMC agents for linear models share: when they begin, and how they are lost."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.agents.thompson import Thompson, ThompsonState
from feelgood.core.policy import Report
from feelgood.core.settings import setting
from feelgood.numerics.keys import AnyKey
from feelgood.numerics.lanes import Mask


class ReleasedThompson(Thompson):
    """Thompson sampling by MCMC as released.

    `waits`: no step is made before the first observation (src/MCMC.py:50).

    `lost = "first arm"`: a chain that is not finite any more plays arm 0 for ever, for PyTorch's
    argmax takes a NaN for the largest number. With "diverged" its run counts as diverged.
    """

    waits: bool = setting(True, "no inner step before the first observation")
    lost: str = setting(
        "first arm",
        "a chain that is not finite plays arm 0, or has diverged",
        choices=("first arm", "diverged"),
    )

    def draw(self, noise: AnyKey, state: ThompsonState) -> ThompsonState:
        if not self.waits:
            return super().draw(noise, state)
        return lax.cond(
            state.data.count > 0,
            lambda s: super(ReleasedThompson, self).draw(noise, s),
            _as_is,
            state,
        )

    def choose(
        self,
        noise: None,
        state: ThompsonState,
        context: Float[Array, "..."],
        allowed: Mask = None,
    ) -> Int[Array, "*lanes"]:
        arm = super().choose(noise, state, context, allowed)
        return arm if self.lost == "diverged" else jnp.where(arm < state.spec.arms, arm, 0)

    def report(self, state: ThompsonState) -> Report:
        report = super().report(state)
        if self.lost == "diverged":
            return report
        return report._replace(finite=jnp.ones_like(report.finite))


def _as_is(state: ThompsonState) -> ThompsonState:
    return state
