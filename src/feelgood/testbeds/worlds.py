"""What the worlds share in which plain Thompson sampling fails: fixed arms, a prior that is told.

Each tells its agents what they would need to know to be exact (`Spec.known`), and comes in three:

- `bad`: the truth is a rare one, and plain Thompson sampling pays for it;
- `mirror`: its mirror image, where what makes an agent bold costs instead;
- `prior`: the truth is drawn from the prior that the agents are told.
"""

from abc import abstractmethod
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from feelgood.core.settings import setting
from feelgood.core.spec import Number
from feelgood.core.testbed import Testbed
from feelgood.numerics import generator, lanes

WORLDS = ("bad", "mirror", "prior")


def world_setting(words: str) -> Any:
    """Which of the three a testbed is; `words` say what that means there."""
    return setting("bad", words, choices=WORLDS)


def told_number(
    default: float | str, doc: str, *, high: float = 1e6, open_word: str | None = None
) -> Any:
    """A number above 0 that agents are told, or that the truth is made of.

    It is part of the problem that a program is compiled for.
    """
    return setting(default, doc, above=0.0, high=high, open_word=open_word, static=True)


class FixedArmsState(NamedTuple):
    """The true parameters: one vector that the arms share, or one column per arm."""

    theta: Float[Array, "dim ..."]


class FixedArms(Testbed):
    """Arms that show the same in every round, or in every round of one copy; normal noise."""

    noise: float = told_number(1.0, "standard deviation of the rewards, which agents are told")
    horizon: int = setting(10_000, "usual number of rounds", low=1, high=1_000_000_000)

    @property
    def rounds(self) -> int:
        return self.horizon

    @abstractmethod
    def parameters_of(self, key: Key[Array, ""]) -> Float[Array, "dim ..."]:
        """The true parameters in this world."""

    @abstractmethod
    def shown(self) -> Float[Array, "..."]:
        """The context of every round."""

    def init(self, key: Key[Array, ""]) -> FixedArmsState:
        return FixedArmsState(theta=self.parameters_of(key))

    def context(self, key: Key[Array, ""], state: Any, t: Int[Array, ""]) -> Float[Array, "..."]:
        del key, state, t
        return self.shown()

    def mean_rewards(
        self, state: FixedArmsState, context: Float[Array, "..."], t: Int[Array, ""]
    ) -> Float[Array, " arms"]:
        del t
        if self.spec.shared:
            return lanes.dot(state.theta[:, None], context)
        return lanes.dot(state.theta, context[:, None])

    def rewards(
        self, key: Key[Array, ""], state: FixedArmsState, means: Float[Array, " arms"]
    ) -> Float[Array, " arms"]:
        del state
        return means + self.noise * generator.normals(key, 1)

    def truth(self, state: FixedArmsState) -> Float[Array, "dim ..."] | None:
        return state.theta

    def reward_noise(self) -> Number | None:
        return jnp.asarray(self.noise, jnp.float32)
