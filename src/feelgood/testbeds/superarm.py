"""The super arm: many coins must all show heads before it is the best."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from feelgood.core.knowledge import FiniteClass
from feelgood.core.settings import setting
from feelgood.core.spec import Spec
from feelgood.testbeds.naming import register_numbered
from feelgood.testbeds.worlds import FixedArms, told_number, world_setting


@register_numbered("superarm", "coins", ("superarm-40", "superarm-80"))
class SuperArm(FixedArms):
    """A safe arm that is good, and a risky one that pays the share of heads of many coins.

    The safe arm is known to pay `safe`. The risky one pays k/m with m = `coins` and the prior
    k ~ Binomial(m, ½): to pay more it needs a share of heads whose prior mass is exponentially
    small in m. All m coins show heads in the bad world, half of them in its mirror.

    With `relaxed`, linear agents see the coins: rewards are counted from ½, the risky arm shows
    1/(2m) for each coin, which is 1 or −1, and the safe arm a coordinate of its own. The model with
    prior 1 and the noise told is then the normal relaxation, in which the safe arm is not known.
    """

    coins: int = setting(40, "number of coins m", low=2, high=1_000)
    world: str = world_setting(
        "bad: all coins show heads; mirror: half of them; prior: each as it falls"
    )
    safe: float = told_number(0.75, "mean reward of the safe arm", high=1.0)
    noise: float = told_number(0.5, "standard deviation of the rewards, which agents are told")
    relaxed: bool = setting(False, "show the coins as features, and count rewards from ½")

    @property
    def spec(self) -> Spec:
        m, start = self.coins, 0.5 if self.relaxed else 0.0
        means = tuple((self.safe - start, k / m - start) for k in range(m + 1))
        masses = tuple(math.comb(m, k) / 2**m for k in range(m + 1))
        known = FiniteClass(means, masses, self.noise)
        if self.relaxed:
            return Spec(arms=2, dim=m + 1, shared=True, known=known)
        return Spec(arms=2, dim=1, known=known)

    def shown(self) -> Float[Array, "..."]:
        if not self.relaxed:
            return jnp.ones(1)
        safe = jnp.zeros(self.coins + 1).at[0].set(self.safe - 0.5)
        risky = jnp.full(self.coins + 1, 0.5 / self.coins).at[0].set(0.0)
        return jnp.stack([safe, risky], axis=1)

    def parameters_of(self, key: Key[Array, ""]) -> Float[Array, "dim ..."]:
        if self.world == "prior":
            coins = jax.random.bernoulli(key, 0.5, (self.coins,))
        else:
            heads = self.coins if self.world == "bad" else self.coins // 2
            coins = jnp.arange(self.coins) < heads
        if self.relaxed:
            return jnp.concatenate([jnp.ones(1), jnp.where(coins, 1.0, -1.0)])
        return jnp.stack([jnp.asarray(self.safe), jnp.sum(coins) / self.coins])[None]
