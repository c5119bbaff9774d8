"""The ten linear bandits that the published linear numbers belong to."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import random
from jaxtyping import Array, Float, Int, Key, UInt32

from feelgood.core.errors import FeelgoodError
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.core.testbed import Testbed
from feelgood.numerics import generator, lanes
from feelgood.released.torch_normals import FEWEST, TorchNormals
from feelgood.testbeds.naming import register_numbered

#: How many instances there are, and rounds of each.
INSTANCES, ROUNDS = 10, 10_000


class Instance(NamedTuple):
    """Which of the ten, and its parameters, one column per arm."""

    number: Int[Array, ""]
    theta: Float[Array, "dim arms"]


@register_numbered(
    "released-linear",
    "parameters",
    ("released-linear-20", "released-linear-40"),
    listed=False,
)
class ReleasedLinear(Testbed):
    """Linear rewards on ten fixed instances: seed s plays instance s mod 10.

    Instance i has the contexts x = randn(T, p) and then θ* = randn(arms · p) of PyTorch's generator
    with seed i, T = 10,000 (run_linear_batch.py:67-89). All agents meet these; the rewards' noise
    is drawn anew for every seed. After round T the contexts come again.
    """

    contexts: Float[Array, "instances rounds dim"]
    thetas: Float[Array, "instances dim arms"]
    parameters: int = setting(20, "number of parameters, over all arms", low=FEWEST, high=1000)
    arms: int = setting(5, "number of arms; must divide the number of parameters", low=2, high=500)
    noise: Number = setting(0.5, "standard deviation of the rewards", low=0.0, high=1e6)

    def __init__(self, parameters: int = 20, arms: int = 5, noise: float | Number = 0.5) -> None:
        if parameters % arms:
            raise FeelgoodError(
                f"released-linear-{parameters} cannot be split over {arms} arms: "
                f"use a multiple of {arms}."
            )
        dim = parameters // arms
        streams = [TorchNormals(seed) for seed in range(INSTANCES)]
        contexts = [stream.randn(ROUNDS * dim).reshape(ROUNDS, dim) for stream in streams]
        thetas = [stream.randn(parameters).reshape(arms, dim).T for stream in streams]
        self.parameters, self.arms, self.noise = parameters, arms, jnp.asarray(noise, jnp.float32)
        self.contexts, self.thetas = jnp.asarray(np.stack(contexts)), jnp.asarray(np.stack(thetas))

    @property
    def spec(self) -> Spec:
        return Spec(arms=self.arms, dim=self.parameters // self.arms)

    @property
    def rounds(self) -> int:
        return ROUNDS

    def init(self, key: Key[Array, ""]) -> Instance:
        """Any of the ten, where there is no seed to say which."""
        return self._instance(random.randint(key, (), 0, INSTANCES))

    def begin(self, key: Key[Array, ""], seed: UInt32[Array, ""]) -> Instance:
        del key
        return self._instance((seed % INSTANCES).astype(jnp.int32))

    def _instance(self, number: Int[Array, ""]) -> Instance:
        return Instance(number=number, theta=self.thetas[number])

    def context(
        self, key: Key[Array, ""], state: Instance, t: Int[Array, ""]
    ) -> Float[Array, " dim"]:
        del key
        return self.contexts[state.number, t % ROUNDS]

    def mean_rewards(
        self, state: Instance, context: Float[Array, " dim"], t: Int[Array, ""]
    ) -> Float[Array, " arms"]:
        del t
        return lanes.dot(state.theta, context[:, None])

    def rewards(
        self, key: Key[Array, ""], state: Instance, means: Float[Array, " arms"]
    ) -> Float[Array, " arms"]:
        del state
        return means + self.noise * generator.normals(key, 1)

    def truth(self, state: Instance) -> Float[Array, "dim arms"]:
        return state.theta

    def reward_noise(self) -> Number:
        return self.noise
