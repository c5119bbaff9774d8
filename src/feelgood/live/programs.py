"""What a live bandit computes, as programs that are compiled before the first request.

A program takes the packed `Carried` of a bandit and one packed `Request`, and gives the new one.
Programs are modules: equal ones share what is compiled.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, UInt32

from feelgood.core.policy import Needs, Policy
from feelgood.core.spec import Spec
from feelgood.engine.loop import Playing, strongly_typed
from feelgood.live.packing import MOST_WORDS, Packing
from feelgood.numerics.generator import THREEFRY
from feelgood.numerics.keys import AnyKey, LaneKeys, fold_all, fold_in, start_key
from feelgood.numerics.noise import RoundNoise, completed, noise_ahead

#: Rounds whose random numbers are drawn at once.
ROUNDS_AHEAD = 64
#: The fold of a round's key that says which member of an ensemble acts.
_MEMBER = 2
#: Words of a request before its numbers: arm, round, and two flags.
_ARM, _ROUND, _PLAYED, _DRAWS, _HEAD = range(5)

StateWords = UInt32[Array, " words"]
RequestWords = UInt32[Array, " request"]
LargeLeaves = list[Array]


class Carried(NamedTuple):
    """All that a bandit carries from call to call."""

    policy: Policy
    #: The words of each chain's stream.
    streams: UInt32[Array, "chains 2"]
    #: The share of the past that each reward leaves; 1: all of it.
    keep: Float[Array, ""]
    state: Any
    #: Those leaves of the state that `draw` changes, after the draw of the next round.
    ahead: list[Array]
    #: The parameters of that draw, where the agent reports any.
    parameters: Any


class Baked:
    """A policy whose numbers are constants of a program. Equal ones are equal, for programs' sake.

    What an agent hints at is about its numbers, so a program cannot trace it.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        leaves, tree = jax.tree.flatten(policy)
        self._key = (tree, tuple(np.asarray(leaf).tobytes() for leaf in leaves))

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
        self._first, self._mask, self._draw, self._choose, self._end = Form(game).starts
        self._nothing = np.zeros(game.spec.context_shape, np.float32)

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
        words = np.empty(self._end, np.uint32)
        numbers = words.view(np.float32)
        words[:_HEAD] = (arm, round, played, draws)
        numbers[_HEAD] = reward
        numbers[self._first : self._mask] = self._nothing.flat if context is None else context.flat
        numbers[self._mask : self._draw] = 1.0 if allowed is None else allowed
        if self._draw < self._end:
            numbers[self._draw : self._choose] = noise[0]
            numbers[self._choose :] = noise[1]
        return words


def per_chain(spec: Spec, value: Array) -> Array:
    """The same for every chain."""
    return jnp.broadcast_to(value[..., None], (*value.shape, *spec.lanes)) if spec.lanes else value


def changed_leaves(policy: Policy, needs: Needs, like: Any, keys: Any) -> tuple[int, ...]:
    """Which leaves of a state `draw` may change."""
    found: list[int] = []

    def draw(policy: Policy, state: Any, keys: AnyKey) -> Any:
        zeros = RoundNoise(*(jnp.zeros((a, *_lanes_of(keys))) for a in _numbers_of(needs)))
        noise = completed(zeros, needs, keys, jnp.zeros((), jnp.int32))
        drawn = policy.draw(noise.draw if needs.draw else None, state)
        pairs = zip(jax.tree.leaves(state), jax.tree.leaves(drawn), strict=True)
        found.extend(i for i, (before, after) in enumerate(pairs) if before is not after)
        return drawn

    jax.eval_shape(draw, policy, like, keys)
    return tuple(found)


def _numbers_of(needs: Needs) -> tuple[int, int]:
    return tuple(0 if amount == "key" else amount for amount in needs)  # type: ignore[return-value]


def _lanes_of(keys: AnyKey) -> tuple[int, ...]:
    return keys.keys.shape if isinstance(keys, LaneKeys) else ()


class Begin(eqx.Module):
    """Makes the first `Carried`, unpacked."""

    game: Game
    changed: tuple[int, ...] = eqx.field(static=True)
    room: int = eqx.field(static=True)

    def __call__(
        self, policy: Policy, streams: UInt32[Array, "chains 2"], keep: Float[Array, ""]
    ) -> Carried:
        spec = self.game.spec
        state = policy.init(start_key(self.game.keys(streams)), spec)
        state = strong(policy.reserve(state, self.room))
        leaves = jax.tree.leaves(state)
        parameters = policy.report(state).parameters
        ahead = [leaves[i] for i in self.changed]
        return strong(Carried(policy, streams, keep, state, ahead, parameters))


def strong(tree: Any) -> Any:
    """The same without weak types."""
    return strongly_typed(Playing(tree, jnp.zeros((), jnp.int32))).state


class PackedBegin(eqx.Module):
    """The same, packed."""

    begin: Begin
    packing: Packing = eqx.field(static=True)

    def __call__(
        self, policy: Policy, streams: UInt32[Array, "chains 2"], keep: Float[Array, ""]
    ) -> tuple[StateWords, LargeLeaves]:
        return self.packing.pack(self.begin(policy, streams, keep))


class NoiseBlock(eqx.Module):
    """The random numbers of some rounds: those of `draw` and `choose`, and who acts."""

    chains: int = eqx.field(static=True)
    needs: Needs = eqx.field(static=True)

    def __call__(
        self, streams: UInt32[Array, "chains 2"], first: Int[Array, ""]
    ) -> tuple[Array, Array, Array]:
        keys = jax.random.wrap_key_data(streams, impl=THREEFRY)
        noise = noise_ahead(keys, self.needs, first, ROUNDS_AHEAD)

        def flat(numbers: Array | None) -> Array:
            return jnp.zeros((ROUNDS_AHEAD, 0)) if numbers is None else _rows(numbers)

        rounds = fold_all(keys[:1], first + 1 + jnp.arange(ROUNDS_AHEAD))[0]
        choosing = jax.vmap(lambda key: fold_in(key, _MEMBER))(rounds)
        member = jax.vmap(lambda key: jax.random.randint(key, (), 0, self.chains))(choosing)
        return flat(noise.draw), flat(noise.choose), member


def _rows(numbers: Array) -> Array:
    return numbers.reshape(len(numbers), -1)


class Step(eqx.Module):
    """What the programs of one shape share."""

    game: Game
    packing: Packing = eqx.field(static=True)
    changed: tuple[int, ...] = eqx.field(static=True)

    def read(self, words: StateWords, large: LargeLeaves, request: Request) -> Carried:
        """The carried things; a draw that was played has become the state."""
        carried = self.packing.unpack(words, large)
        leaves, tree = jax.tree.flatten(carried.state)
        for i, drawn in zip(self.changed, carried.ahead, strict=True):
            # Of large leaves the caller has passed the right one.
            small = math.prod(drawn.shape) <= MOST_WORDS
            leaves[i] = _select(request.played, drawn, leaves[i]) if small else leaves[i]
        return carried._replace(state=jax.tree.unflatten(tree, leaves))

    def noise(self, carried: Carried, request: Request) -> RoundNoise:
        """The random numbers of the request's round."""
        needs, keys = self.game.needs, self.game.keys(carried.streams)
        noise = completed(request.noise, needs, keys, request.round)
        return RoundNoise(
            noise.draw if needs.draw else None, noise.choose if needs.choose else None
        )

    def drawn_state(self, carried: Carried) -> Any:
        """The state after the draw ahead."""
        leaves, tree = jax.tree.flatten(carried.state)
        for i, drawn in zip(self.changed, carried.ahead, strict=True):
            leaves[i] = drawn
        return jax.tree.unflatten(tree, leaves)

    def with_draw(self, carried: Carried, request: Request) -> Carried:
        """With the draw of the request's round, where one is asked for."""
        policy = carried.policy

        def draw(state: Any) -> tuple[list[Array], Any]:
            drawn = policy.draw(self.noise(carried, request).draw, state)
            leaves = jax.tree.leaves(drawn)
            return [leaves[i] for i in self.changed], policy.report(drawn).parameters

        def leave(state: Any) -> tuple[list[Array], Any]:
            del state
            return carried.ahead, carried.parameters

        ahead, parameters = strong(lax.cond(request.draws, draw, leave, carried.state))
        return carried._replace(ahead=ahead, parameters=parameters)

    def write(self, words: StateWords, carried: Carried) -> tuple[StateWords, LargeLeaves]:
        """Packed again."""
        leaves = jax.tree.leaves(carried._replace(state=strong(carried.state)))
        kept = len(jax.tree.leaves((carried.policy, carried.streams, carried.keep)))
        large = self.packing.large
        small = {i: x for i, x in enumerate(leaves) if i >= kept and i not in large}
        return self.packing.replace(words, small), [leaves[i] for i in large]


def _select(first: Array, yes: Array, no: Array) -> Array:
    if jax.dtypes.issubdtype(yes.dtype, jax.dtypes.prng_key):
        return jnp.where(first, yes, no)
    return lax.select(jnp.broadcast_to(first, yes.shape), yes, no)


class DrawStep(Step):
    """A draw for the round of the request."""

    def __call__(
        self, words: StateWords, large: LargeLeaves, request: RequestWords
    ) -> tuple[StateWords, LargeLeaves]:
        asked = Form(self.game).read(request)
        carried = self.read(words, large, asked)
        return self.write(words, self.with_draw(carried, asked))


class LearnStep(Step):
    """One observed reward, and a draw for the round of the request."""

    def __call__(
        self, words: StateWords, large: LargeLeaves, request: RequestWords
    ) -> tuple[StateWords, LargeLeaves]:
        asked, spec = Form(self.game).read(request), self.game.spec
        carried = self.read(words, large, asked)
        policy, state = carried.policy, carried.state
        if self.game.forgets:
            rebuilt = self.game.agent.policy.hints(spec).rebuilt
            assert rebuilt is not None
            state = rebuilt(state, carried.keep)
        context = per_chain(spec, asked.context)
        arm, reward = per_chain(spec, asked.arm), per_chain(spec, asked.reward)
        state = strong(policy.update(state, context, arm, reward))
        return self.write(words, self.with_draw(carried._replace(state=state), asked))


class ChooseStep(Step):
    """The arm of each chain, after the draw ahead."""

    masks: bool = eqx.field(static=True)

    def __call__(
        self, words: StateWords, large: LargeLeaves, request: RequestWords
    ) -> Int[Array, "*lanes"]:
        asked, spec = Form(self.game).read(request), self.game.spec
        carried = self.packing.unpack(words, large)
        state, noise = self.drawn_state(carried), self.noise(carried, asked)
        context = per_chain(spec, asked.context)
        given = {"allowed": per_chain(spec, asked.allowed) > 0.0} if self.masks else {}
        return carried.policy.choose(noise.choose, state, context, **given)


class LawStep(Step):
    """The probability of each arm by the agent's own rule, before the draw."""

    masks: bool = eqx.field(static=True)

    def __call__(
        self, words: StateWords, large: LargeLeaves, request: RequestWords
    ) -> Float[Array, " arms"]:
        asked, spec = Form(self.game).read(request), self.game.spec
        carried = self.read(words, large, asked)
        pmf = self.game.agent.policy.hints(spec).pmf
        assert pmf is not None
        given = {"allowed": asked.allowed > 0.0} if self.masks else {}
        return pmf(carried.state, asked.context, **given)


class GrowStep(eqx.Module):
    """The carried things with room for more rounds, unpacked."""

    packing: Packing = eqx.field(static=True)
    changed: tuple[int, ...] = eqx.field(static=True)
    room: int = eqx.field(static=True)

    def __call__(self, words: StateWords, large: Sequence[Array]) -> Carried:
        carried = self.packing.unpack(words, large)
        leaves, tree = jax.tree.flatten(carried.state)
        for i, drawn in zip(self.changed, carried.ahead, strict=True):
            leaves[i] = drawn
        both = (carried.state, jax.tree.unflatten(tree, leaves))
        state, drawn_state = (carried.policy.reserve(one, self.room) for one in both)
        drawn_leaves = jax.tree.leaves(drawn_state)
        ahead = [drawn_leaves[i] for i in self.changed]
        return strong(carried._replace(state=state, ahead=ahead))
