"""What one call of a compiled program brings: everything in one array of 32-bit words."""

import ctypes
import itertools
import math
import struct
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, UInt32

from feelgood.core.policy import Needs, Policy
from feelgood.core.spec import Spec
from feelgood.numerics.generator import THREEFRY
from feelgood.numerics.keys import AnyKey, LaneKeys
from feelgood.numerics.noise import RoundNoise

#: Words of a request before its numbers: arm, round, its row of the noise, two flags, and 1.
_ARM, _ROUND, _ROW, _PLAYED, _DRAWS, _ONCE, _HEAD = range(7)
REQUEST_HEAD = struct.Struct("=6If")


#: How many rounds' random numbers are drawn at once, and how many of those.
MOST_ROUNDS_AHEAD, MOST_NORMALS_AHEAD = 64, 65_536


class Baked:
    """What a policy hints at, for programs: equal ones are equal, so that programs are shared.

    Hints depend on an agent's numbers, so a program cannot trace them.
    """

    def __init__(self, policy: Policy, spec: Spec) -> None:
        self.hints = policy.hints(spec)
        leaves, tree = jax.tree.flatten(policy)
        self._key = (tree, spec, tuple(np.asarray(leaf).tobytes() for leaf in leaves))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Baked) and self._key == other._key


class Game(eqx.Module):
    """What shapes the programs of a bandit, but for the room of its history."""

    #: The agent for one chain.
    agent: Baked = eqx.field(static=True)
    spec: Spec = eqx.field(static=True)
    needs: Needs = eqx.field(static=True)
    forgets: bool = eqx.field(static=True)

    @property
    def chains(self) -> int:
        """How many chains there are."""
        return max(self.spec.layout.chains, 1)

    def keys(self, streams: UInt32[Array, "chains 2"]) -> AnyKey:
        """The streams of all chains, as agents take them."""
        keys = jax.random.wrap_key_data(streams, impl=THREEFRY)
        return LaneKeys(keys=keys, settings=1) if self.spec.lanes else keys[0]

    @property
    def amounts(self) -> tuple[int, int]:
        """How many normals `draw` and `choose` take, per chain."""
        draw, choose = (0 if amount == "key" else amount for amount in self.needs)
        return draw, choose

    @property
    def normals(self) -> int:
        """How many normals a round takes."""
        return self.chains * sum(self.amounts)

    @property
    def rounds_ahead(self) -> int:
        """Rounds whose random numbers are drawn at once."""
        return max(1, min(MOST_ROUNDS_AHEAD, MOST_NORMALS_AHEAD // max(self.normals, 1)))


class Request(NamedTuple):
    """What one call brings, in one array: numbers of 32 bits."""

    arm: Int[Array, ""]
    round: Int[Array, ""]
    #: Where the round's normals are in the block of many rounds.
    row: Int[Array, ""]
    #: Whether the draw ahead was played since the last call: then it is the state now.
    played: Array
    #: Whether to draw for the next round.
    draws: Array
    reward: Float[Array, ""]
    context: Float[Array, "..."]
    allowed: Float[Array, " arms"]


def turns(words: UInt32[Array, " request"]) -> Int[Array, ""]:
    """1, which a compiler cannot know."""
    return words[_ONCE].astype(jnp.int32)


class Form(eqx.Module):
    """Where the parts of a request are."""

    game: Game

    @property
    def starts(self) -> tuple[int, ...]:
        """Where context and mask begin, and where all ends."""
        spec = self.game.spec
        out = [_HEAD + 1]
        for length in (math.prod(spec.context_shape), spec.arms):
            out.append(out[-1] + length)
        return tuple(out)

    def read(self, words: UInt32[Array, " request"]) -> Request:
        """The parts."""
        head = words[:_HEAD].astype(jnp.int32)
        numbers = lax.bitcast_convert_type(words, jnp.float32)
        context, allowed = (numbers[a:b] for a, b in itertools.pairwise(self.starts))
        return Request(
            arm=head[_ARM],
            round=head[_ROUND],
            row=head[_ROW],
            played=head[_PLAYED] > 0,
            draws=head[_DRAWS] > 0,
            reward=numbers[_HEAD],
            context=context.reshape(self.game.spec.context_shape),
            allowed=allowed,
        )

    def request(self, context: np.ndarray, allowed: np.ndarray | None) -> np.ndarray:
        """A request of its own, for what neither learns nor draws."""
        first, mask, end = self.starts
        numbers = np.zeros(end, np.float32)
        numbers[first:mask] = context.reshape(-1)
        numbers[mask:end] = 1.0 if allowed is None else allowed
        return numbers.view(np.uint32)

    def noise(self, block: Float[Array, "rounds normals"], row: Int[Array, ""]) -> RoundNoise:
        """The normals of one round, from those of many."""
        draw, choose = self.game.amounts
        chains, lead = self.game.chains, (-1, *self.game.spec.lanes)
        numbers = lax.dynamic_index_in_dim(block, row, keepdims=False)
        return RoundNoise(
            numbers[: draw * chains].reshape(lead) if draw else None,
            numbers[draw * chains :].reshape(lead) if choose else None,
        )


class Mailbox:
    """Where the host writes requests, and programs read them.

    On a CPU the memory is that of one array of JAX, so that a call transfers nothing: that takes
    longer than the rest of a small call. Who writes makes sure that no program still reads.
    """

    def __init__(self, game: Game) -> None:
        first, mask, end = Form(game).starts
        array = jnp.zeros(end, jnp.uint32)
        words = np.zeros(end, np.uint32)
        #: What programs take; None: a copy of the words.
        self.array: Any = None
        if jax.default_backend() == "cpu":
            place = array.block_until_ready().unsafe_buffer_pointer()
            memory = (ctypes.c_uint32 * end).from_address(place)
            words, self.array = np.ctypeslib.as_array(memory), array
        self._words, numbers = words, words.view(np.float32)
        #: Where `REQUEST_HEAD` writes its words and the reward; and where the context goes.
        self.head, self.context = words.data, numbers[first:mask].reshape(game.spec.context_shape)
        self._mask = numbers[mask:end]

    def copy(self) -> np.ndarray:
        """The request by itself."""
        return self._words.copy()

    def asking(self, context: np.ndarray, round: int, row: int, allowed: np.ndarray | None) -> Any:
        """A request to choose among these arms with the draw that is ready."""
        REQUEST_HEAD.pack_into(self.head, 0, 0, round, row, False, True, 1, 0.0)
        self.context[...] = context
        self._mask[:] = 1.0 if allowed is None else allowed
        return self.copy() if self.array is None else self.array
