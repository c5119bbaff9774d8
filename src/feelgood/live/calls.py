"""What one call of a compiled program brings: everything in one array of 32-bit words."""

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

#: Words of a request before its numbers: arm, round, two flags, and 1.
_ARM, _ROUND, _PLAYED, _DRAWS, _ONCE, _HEAD = range(6)
_WORDS = struct.Struct("=5If")


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
        """How many normals a request brings for `draw` and `choose`, per chain."""
        draw, choose = (0 if amount == "key" else amount for amount in self.needs)
        return draw, choose


class Request(NamedTuple):
    """What one call brings, in one array: numbers of 32 bits."""

    arm: Int[Array, ""]
    round: Int[Array, ""]
    #: Whether the draw ahead was played since the last call: then it is the state now.
    played: Array
    #: Whether to draw for the next round.
    draws: Array
    reward: Float[Array, ""]
    context: Float[Array, "..."]
    allowed: Float[Array, " arms"]
    noise: RoundNoise


def turns(words: UInt32[Array, " request"]) -> Int[Array, ""]:
    """1, which a compiler cannot know."""
    return words[_ONCE].astype(jnp.int32)


class Form(eqx.Module):
    """Where the parts of a request are."""

    game: Game

    @property
    def starts(self) -> tuple[int, ...]:
        """Where context, mask and the two calls' normals begin, and where all ends."""
        spec, chains = self.game.spec, self.game.chains
        draw, choose = self.game.amounts
        lengths = (math.prod(spec.context_shape), spec.arms, draw * chains, choose * chains)
        out = [_HEAD + 1]
        for length in lengths:
            out.append(out[-1] + length)
        return tuple(out)

    def read(self, words: UInt32[Array, " request"]) -> Request:
        """The parts."""
        head = words[:_HEAD].astype(jnp.int32)
        numbers = lax.bitcast_convert_type(words, jnp.float32)
        starts, spec = self.starts, self.game.spec
        context, allowed, draw, choose = (numbers[a:b] for a, b in itertools.pairwise(starts))
        lead = (-1, *spec.lanes)
        noise = RoundNoise(
            draw.reshape(lead) if self.game.amounts[0] else None,
            choose.reshape(lead) if self.game.amounts[1] else None,
        )
        return Request(
            arm=head[_ARM],
            round=head[_ROUND],
            played=head[_PLAYED] > 0,
            draws=head[_DRAWS] > 0,
            reward=numbers[_HEAD],
            context=context.reshape(spec.context_shape),
            allowed=allowed,
            noise=noise,
        )


class Writer:
    """Writes requests, on the host."""

    def __init__(self, game: Game) -> None:
        first, mask, draw, choose, end = Form(game).starts
        self._context, self._mask = slice(first, mask), slice(mask, draw)
        self._draw, self._choose = slice(draw, choose), slice(choose, end)
        self._has = tuple(amount > 0 for amount in game.amounts)
        self._plain = np.zeros(end, np.float32)
        self._plain[self._mask] = 1.0

    def __call__(
        self,
        context: np.ndarray | None,
        noise: Any,
        round: int,
        *,
        arm: int = 0,
        reward: float = 0.0,
        played: bool = False,
        draws: bool = True,
        allowed: np.ndarray | None = None,
    ) -> np.ndarray:
        """One request."""
        numbers = self._plain.copy()
        _WORDS.pack_into(numbers.data, 0, arm, round, played, draws, 1, reward)
        if context is not None:
            numbers[self._context] = context if context.ndim == 1 else context.reshape(-1)
        if allowed is not None:
            numbers[self._mask] = allowed
        if self._has[0]:
            numbers[self._draw] = noise[0]
        if self._has[1]:
            numbers[self._choose] = noise[1]
        return numbers.view(np.uint32)
