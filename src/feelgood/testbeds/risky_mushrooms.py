"""Mushrooms as a gamble: who eats a poisonous one may be lucky."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, UInt32

from feelgood.core.spec import Spec
from feelgood.data.catalogue import BANDIT_PROBLEMS
from feelgood.testbeds.classification import Classification
from feelgood.testbeds.problems import register_testbed


class RiskyMushrooms(Classification):
    """Eat a mushroom (arm 0) or leave it (arm 1, reward 0).

    An edible one pays 5; a poisonous one 5 or −35 with probability 1/2 each, −15 on average.
    Regret is against the better expected reward: 5 for an edible one, 0 for a poisonous one.
    """

    @property
    def spec(self) -> Spec:
        return Spec(arms=2, dim=self.table.dim)

    def mean_rewards(
        self, state: UInt32[Array, " words"], context: Float[Array, " dim"], t: Int[Array, ""]
    ) -> Float[Array, " arms"]:
        edible = super().mean_rewards(state, context, t)[0] > 0
        return jnp.stack([jnp.where(edible, 5.0, -15.0), jnp.zeros(())])

    def rewards(
        self, key: Key[Array, ""], state: UInt32[Array, " words"], means: Float[Array, " arms"]
    ) -> Float[Array, " arms"]:
        del state
        swing = jnp.where(jax.random.bernoulli(key), 20.0, -20.0)
        return means + jnp.where(means < 0, swing, 0.0)


register_testbed(
    dataclasses.replace(
        BANDIT_PROBLEMS["mushroom"],
        name="mushroom-risky",
        doc="Eat a mushroom (+5, or −35 if unlucky) or not.",
        rewards="squared",
    ),
    RiskyMushrooms,
)
