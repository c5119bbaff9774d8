"""The logistic bandit of the published λ tables, and the one of the released file."""

import jax.numpy as jnp
from jax import random
from jaxtyping import Array, Float, Int, Key

from feelgood.core.settings import setting
from feelgood.testbeds.logistic import Logistic, LogisticState
from feelgood.testbeds.naming import register_numbered

SCALINGS = ("arms", "matrix")


@register_numbered(
    "released-logistic",
    "dim",
    ("released-logistic-20", "released-logistic-40"),
    listed=False,
)
class ReleasedLogistic(Logistic):
    """Bernoulli rewards as in `logistic-NUMBER`, but θ* ~ N(0, I) is not scaled to length 1.

    `scaling = "arms"` scales each arm's context to length 1: so the published λ tables are
    reproduced. `scaling = "matrix"` divides all contexts of a round by their matrix' largest
    singular value, as src/toy_example.py:83 does. `norm` multiplies θ*.
    """

    scaling: str = setting(
        "arms", "each arm's context to length 1, or all by their spectral norm", choices=SCALINGS
    )

    def init(self, key: Key[Array, ""]) -> LogisticState:
        return LogisticState(theta=self.norm * random.normal(key, (self.dim,)))

    def context(
        self, key: Key[Array, ""], state: LogisticState, t: Int[Array, ""]
    ) -> Float[Array, "dim arms"]:
        if self.scaling == "arms":
            return super().context(key, state, t)
        x = random.normal(key, (self.dim, self.arms))
        return x / jnp.linalg.norm(x, ord=2)
