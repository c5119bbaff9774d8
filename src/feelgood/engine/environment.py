"""The environment of a run, in blocks of rounds; `numerics.keys` says which keys it uses."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, UInt32

from feelgood.core.testbed import Testbed
from feelgood.engine.compiling import BRIEFLY, ONCE, compiled, in_own_precision
from feelgood.numerics.keys import FirstKeys, fold_all, seed_array

MIN_BLOCK, MAX_BLOCK = 64, 2048
BLOCK_BYTES = 64 * 2**20


class Block(NamedTuple):
    """A stretch of rounds as the environment made them; seeds are the last axis."""

    contexts: Float[Array, "block *context seeds"]
    rewards: Float[Array, "block arms seeds"]
    means: Float[Array, "block arms seeds"]


def settle(testbed: Testbed, seeds: UInt32[Array, " seeds"]) -> tuple[Any, Key[Array, " seeds"]]:
    """What stays the same in all rounds of each seed: the testbed's state and its stream of keys.

    It is not part of the blocks: fused into them, it would be computed again for every round.
    """
    return settled(testbed, FirstKeys.of(seeds), seeds)


def settled(
    testbed: Testbed, first: FirstKeys, seeds: UInt32[Array, " seeds"]
) -> tuple[Any, Key[Array, " seeds"]]:
    """The same where the keys are there already."""
    return jax.vmap(testbed.begin)(first.fixed, seeds), first.rounds


class BlockMaker(eqx.Module):
    """Makes blocks of one length.

    A module, so that equal makers share their compiled program.
    """

    length: int = eqx.field(static=True)

    def __call__(
        self, testbed: Testbed, states: Any, stream: Key[Array, " seeds"], first: Int[Array, ""]
    ) -> Block:
        rounds = first + jnp.arange(self.length)
        # Round t takes its context from key 2t of the stream and its rewards from key 2t + 1.
        keys = fold_all(stream, 2 * first + jnp.arange(2 * self.length))
        see, pay = keys[:, ::2], keys[:, 1::2]
        turns = jnp.broadcast_to(rounds, see.shape)

        def each(function: Callable[..., Any]) -> Callable[..., Any]:
            """Over seeds and rounds; there is one state per seed."""
            return jax.vmap(jax.vmap(function, in_axes=(None, 0, 0)), in_axes=(0, 0, 0))

        contexts = each(lambda s, k, t: testbed.context(k, s, t))(states, see, turns)
        means = each(testbed.mean_rewards)(states, contexts, turns)
        rewards = each(lambda s, k, mean: testbed.rewards(k, s, mean))(states, pay, means)
        made = Block(contexts=contexts, rewards=rewards, means=means)
        return jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), made)


def block_length(testbed: Testbed, seeds: int, rounds: int) -> int:
    """How many rounds are made at once, for a run of so many rounds with so many seeds."""
    spec = testbed.spec
    per_round = 4 * seeds * (math.prod(spec.context_shape) + 2 * spec.arms)
    # A power of two, so that runs of similar length share their programs.
    enough = max(MIN_BLOCK, 1 << (rounds - 1).bit_length())
    return max(1, min(enough, MAX_BLOCK, BLOCK_BYTES // per_round))


@in_own_precision
def environment(testbed: Testbed, seeds: Sequence[int], rounds: int) -> Block:
    """The first `rounds` rounds that any agent meets on `testbed` with these seeds.

    **Example:**

    >>> import feelgood
    >>> from feelgood.engine.environment import environment
    >>> testbed = feelgood.TESTBEDS["linear-20"].build()
    >>> contexts, rewards, means = environment(testbed, seeds=range(3), rounds=10)
    >>> contexts.shape, rewards.shape  # rounds, then the problem's own axes, then seeds
    ((10, 4, 3), (10, 5, 3))
    """
    begin, _ = compiled(settle, testbed, seed_array(seeds), effort=ONCE)
    args = (testbed, *begin(testbed, seed_array(seeds)), jnp.asarray(0))
    program, _ = compiled(BlockMaker(length=rounds), *args, effort=BRIEFLY)
    return program(*args)
