"""Networks that learn from resampled rewards."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from feelgood.agents.neural import TrainedState
from feelgood.agents.neural_members import MembersPolicy
from feelgood.core.policy import AGENTS
from feelgood.core.settings import setting
from feelgood.numerics import lanes
from feelgood.numerics.keys import fold_in
from feelgood.targets.replay import Batch

RESAMPLINGS = ("double-or-nothing", "poisson", "none")
#: P(N ≤ j) of the Poisson law with mean 1, up to the last j that single precision knows.
_POISSON = np.cumsum([math.exp(-1.0) / math.factorial(j) for j in range(10)]).astype(np.float32)


@AGENTS.register("neural-bootstrap", family="Networks")
class NeuralBootstrap(MembersPolicy):
    """A network drawn from those that saw resampled rewards plays its best arm.

    In the loss of member k reward i counts w_ki times, drawn once and for all: 0 or 2 with equal
    probabilities, or a Poisson number with mean 1. That is the online form of drawing as many
    rewards with replacement. With one member and no resampling it is the greedy network.

    Osband, Blundell, Pritzel and Van Roy, "Deep exploration via bootstrapped DQN", NeurIPS 2016.
    Owen and Eckles, "Bootstrapping data arrays of arbitrary order", Annals of Applied Statistics
    2012, for the weights 0 and 2. Oza and Russell, "Online bagging and boosting", 2001, for Poisson
    ones.
    """

    resampling: str = setting(
        "double-or-nothing", "how often a reward counts for a network", choices=RESAMPLINGS
    )

    def made_to_see(
        self, state: TrainedState, batch: Batch
    ) -> tuple[Float[Array, "members rows"], Float[Array, "members rows"]]:
        counts = self.resampled(state, batch)
        return jnp.zeros_like(counts), counts

    def resampled(self, state: TrainedState, batch: Batch) -> Float[Array, "members rows"]:
        """w_ki, from the key of the state and the number of the round."""
        if self.resampling == "none":
            return jnp.ones((self.members, len(batch.numbers)))
        key = fold_in(state.extra.key, 0)  # learning takes the folds from 1 on
        uniform = jax.vmap(lambda i: lanes.uniform(fold_in(key, i), self.members))(batch.numbers).T
        if self.resampling == "poisson":
            return jnp.sum(1.0 * (uniform[..., None] >= _POISSON), axis=-1)
        return 2.0 * (uniform < 0.5)
