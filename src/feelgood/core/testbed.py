"""The protocol of testbeds, and the table they register in."""

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Float, Int, Key, UInt32

from feelgood.core.registry import Registry
from feelgood.core.spec import Number, Spec


class Testbed(eqx.Module):
    """A contextual bandit problem, written for one seed.

    `init` draws what stays fixed in a run (the true parameters), and `context` what an agent sees
    in round `t`. `mean_rewards` is the expected reward of every arm there, and `rewards` one noisy
    reward of **every** arm. So all agents meet the same contexts and the same noise. The engine
    lifts these functions over rounds and seeds.

    The noise of a round may be one number for all its arms. Only one of the rewards is ever seen,
    so no agent's law changes, and agents that play different arms are compared more closely.

    **Example:**

    >>> import jax
    >>> import jax.numpy as jnp
    >>> import feelgood
    >>> testbed = feelgood.TESTBEDS["linear-20"].build()
    >>> testbed.name, testbed.spec.arms, testbed.rounds, float(testbed.reward_noise())
    ('Linear', 5, 10000, 0.5)
    >>> key, t = jax.random.key(0), jnp.array(0)
    >>> state = testbed.init(key)  # `testbed.begin(key, seed)` where instances are numbered
    >>> context = testbed.context(key, state, t)
    >>> means = testbed.mean_rewards(state, context, t)
    >>> testbed.rewards(key, state, means).shape, testbed.truth(state).shape
    ((5,), (4, 5))
    """

    __test__: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """What results call it; a testbed that is built by its name is called by that."""
        return type(self).__name__

    @property
    @abstractmethod
    def spec(self) -> Spec:
        """Shape of the problem."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """The usual horizon."""

    @abstractmethod
    def init(self, key: Key[Array, ""]) -> Any:
        """What stays fixed in a run."""

    def begin(self, key: Key[Array, ""], seed: UInt32[Array, ""]) -> Any:
        """What stays fixed in the run of this seed: by default `init(key)`.

        A testbed whose instances are numbered takes the number from the seed.
        """
        del seed
        return self.init(key)

    @abstractmethod
    def context(self, key: Key[Array, ""], state: Any, t: Int[Array, ""]) -> Float[Array, "..."]:
        """The context of round `t`, of shape `spec.context_shape`."""

    @abstractmethod
    def mean_rewards(
        self, state: Any, context: Float[Array, "..."], t: Int[Array, ""]
    ) -> Float[Array, " arms"]:
        """Expected reward of each arm in this context of round `t`."""

    @abstractmethod
    def rewards(
        self, key: Key[Array, ""], state: Any, means: Float[Array, " arms"]
    ) -> Float[Array, " arms"]:
        """One noisy reward of each arm, given the expected ones."""

    def truth(self, state: Any) -> Float[Array, "..."] | None:
        """The true parameters θ of a linear model: `dim` numbers for every block of parameters.

        An array of the state as it is there. A testbed that returns one says that the expected
        reward of an arm is θ · x, or its logistic function where `spec.rewards` is "bernoulli".
        None: no linear model is right here.
        """
        del state
        return None

    def reward_noise(self) -> Number | None:
        """Standard deviation of the rewards' normal noise; None: their noise is something else."""
        return None


TESTBEDS: Registry[Testbed] = Registry("testbed", "feelgood.testbeds", "feelgood.released")
