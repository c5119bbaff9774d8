"""One arm for ever: what the published wheel table is."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.core.policy import Hints, Needs, Policy, Report
from feelgood.core.settings import setting
from feelgood.core.spec import Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.numerics.lanes import Mask
from feelgood.released.released_names import register_agent


@register_agent("one-arm")
class OneArm(Policy):
    """Always the same arm, or the nearest one that there is.

    The published wheel table is the regret of one outer arm with μ = (0.15, 0.1, 1). The released
    wheel makes its agents fail, but for an underdamped one that plays arm 0 (src/game.py:43-83).
    """

    arm: int = setting(1, "the arm that is played", low=0, high=100_000)

    def init(self, key: AnyKey, spec: Spec) -> Int[Array, "arms *lanes"]:
        del key
        return jnp.zeros((spec.arms, *spec.lanes), jnp.int32)

    def needs(self, spec: Spec) -> Needs:
        del spec
        return Needs(choose=0)

    def choose(
        self,
        noise: None,
        state: Int[Array, "arms *lanes"],
        context: Float[Array, "..."],
        allowed: Mask = None,
    ) -> Int[Array, "*lanes"]:
        del noise, context
        return lanes.argmax(self._preference(state), allowed)

    def _preference(self, state: Int[Array, "arms *lanes"]) -> Float[Array, "arms *lanes"]:
        arms = jnp.arange(len(state)).reshape(-1, *(1,) * (state.ndim - 1))
        return jnp.broadcast_to(-jnp.abs(arms - self.arm).astype(jnp.float32), state.shape)

    def update(
        self,
        state: Int[Array, "arms *lanes"],
        context: Float[Array, "..."],
        arm: Int[Array, "*lanes"],
        reward: Float[Array, "*lanes"],
    ) -> Int[Array, "arms *lanes"]:
        del context, arm, reward
        return state

    def report(self, state: Int[Array, "arms *lanes"]) -> Report:
        return Report(finite=jnp.ones(state.shape[1:], bool))

    def hints(self, spec: Spec) -> Hints:
        del spec
        return Hints(layout="lanes", pmf=self.pmf)

    def pmf(
        self,
        state: Int[Array, "arms *lanes"],
        context: Float[Array, "..."],
        allowed: Mask = None,
    ) -> Float[Array, "arms *lanes"]:
        """1 for the arm that is played."""
        return lanes.one_hot(self.choose(None, state, context, allowed), len(state))
