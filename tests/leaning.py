"""A plug-in with an agent whose regret is a known function of its setting.

On `coins`, whose second arm always pays 2 more than the first, `leaning` plays the first arm for
10 |ln(width / 0.05)| rounds, rounded up, and then the second.
"""

from typing import Any

import jax
import jax.numpy as jnp

from feelgood import AGENTS, TESTBEDS, Policy, Spec, Testbed, setting
from feelgood.core.spec import Number

ROUNDS, BEST_WIDTH = 40, 0.05


@AGENTS.register("leaning")
class Leaning(Policy):
    """Plays the wrong arm for a while that its setting decides."""

    width: Number = setting(1.0, "how far from the best", above=0.0, tune=(0.01, 100.0))
    size: Number = setting(1.0, "nothing depends on it", above=0.0)

    def init(self, key: Any, spec: Spec) -> Any:
        return jnp.zeros(spec.lanes)

    def choose(self, noise: Any, state: Any, context: Any) -> Any:
        wrong = state < 10.0 * jnp.abs(jnp.log(self.width / BEST_WIDTH))
        return jnp.where(wrong, 0, 1)

    def update(self, state: Any, context: Any, arm: Any, reward: Any) -> Any:
        return state + 1.0


@TESTBEDS.register("coins")
class Coins(Testbed):
    """Two arms that pay 0 and 2; the context is noise."""

    @property
    def spec(self) -> Spec:
        return Spec(arms=2, dim=2)

    @property
    def rounds(self) -> int:
        return ROUNDS

    def init(self, key: Any) -> tuple[()]:
        return ()

    def context(self, key: Any, state: Any, t: Any) -> Any:
        return jax.random.normal(key, (2,))

    def mean_rewards(self, state: Any, context: Any, t: Any) -> Any:
        return jnp.array([0.0, 2.0])

    def rewards(self, key: Any, state: Any, means: Any) -> Any:
        return means + jax.random.normal(key, (2,))
