"""What a live bandit computes, as programs that are compiled before the first request.

A program takes the packed `Carried` of a bandit and one packed `Request`, and gives the new one.
Programs are modules: equal ones share what is compiled.
"""

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, UInt32

from feelgood.core.policy import Needs, Policy
from feelgood.core.score_law import ScoreLaw
from feelgood.core.spec import Spec
from feelgood.engine.loop import Playing, strongly_typed
from feelgood.live.calls import Form, Game, Request, turns
from feelgood.live.state_words import Packing
from feelgood.numerics.generator import THREEFRY
from feelgood.numerics.keys import AnyKey, LaneKeys, fold_all, fold_in, start_key
from feelgood.numerics.noise import RoundNoise, completed, noise_ahead
from feelgood.numerics.rare import left_out

#: The fold of a round's key that says which member of an ensemble acts.
_MEMBER = 2

StateWords = UInt32[Array, " words"]
RequestWords = UInt32[Array, " request"]
NoiseRows = Float[Array, "rounds normals"]
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
    #: 1 where the last step left rare work out that was needed: it must be done again, in full.
    undone: Int[Array, ""]


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


def has_rare_work(policy: Policy, spec: Spec, like: Any) -> bool:
    """Whether `update` does work that a step can leave out."""

    def update(policy: Policy, state: Any) -> Any:
        context = per_chain(spec, jnp.zeros(spec.context_shape))
        arm, reward = jnp.zeros(spec.lanes, jnp.int32), jnp.zeros(spec.lanes)
        return policy.update(state, context, arm, reward)

    with left_out() as needed:
        jax.eval_shape(update, policy, like)
    return bool(needed)


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
        nothing = jnp.zeros((), jnp.int32)
        return strong(Carried(policy, streams, keep, state, ahead, parameters, nothing))


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
    """The random numbers of some rounds: a row for `draw` and `choose` each, and who acts."""

    game: Game

    def __call__(
        self, streams: UInt32[Array, "chains 2"], first: Int[Array, ""]
    ) -> tuple[Array, Array]:
        chains, rounds = self.game.chains, self.game.rounds_ahead
        keys = jax.random.wrap_key_data(streams, impl=THREEFRY)
        noise = noise_ahead(keys, self.game.needs, first, rounds)

        def flat(numbers: Array | None) -> Array:
            return jnp.zeros((rounds, 0)) if numbers is None else _rows(numbers)

        folded = fold_all(keys[:1], first + 1 + jnp.arange(rounds))[0]
        choosing = jax.vmap(lambda key: fold_in(key, _MEMBER))(folded)
        member = jax.vmap(lambda key: jax.random.randint(key, (), 0, chains))(choosing)
        return jnp.concatenate([flat(noise.draw), flat(noise.choose)], axis=1), member


def _rows(numbers: Array) -> Array:
    return numbers.reshape(len(numbers), -1)


class Step(eqx.Module):
    """What the programs of one shape share.

    A program takes the state's words, the request, the block of normals and the large leaves. They
    are flat, because every container costs time in every call.
    """

    game: Game
    packing: Packing = eqx.field(static=True)
    changed: tuple[int, ...] = eqx.field(static=True)

    def read(self, words: StateWords, large: LargeLeaves, request: Request) -> Carried:
        """The carried things; a draw that was played has become the state."""
        carried = self.packing.unpack(words, large)
        leaves, tree = jax.tree.flatten(carried.state)
        for i, drawn in zip(self.changed, carried.ahead, strict=True):
            # Of large leaves the caller has passed the right one.
            small = math.prod(drawn.shape) <= self.packing.most
            leaves[i] = _select(request.played, drawn, leaves[i]) if small else leaves[i]
        return carried._replace(state=jax.tree.unflatten(tree, leaves))

    def noise(self, carried: Carried, request: Request, block: NoiseRows) -> RoundNoise:
        """The random numbers of the request's round."""
        needs, keys = self.game.needs, self.game.keys(carried.streams)
        ahead = Form(self.game).noise(block, request.row)
        noise = completed(ahead, needs, keys, request.round)
        return RoundNoise(
            noise.draw if needs.draw else None, noise.choose if needs.choose else None
        )

    def drawn_state(self, carried: Carried) -> Any:
        """The state after the draw ahead."""
        leaves, tree = jax.tree.flatten(carried.state)
        for i, drawn in zip(self.changed, carried.ahead, strict=True):
            leaves[i] = drawn
        return jax.tree.unflatten(tree, leaves)

    def with_draw(self, carried: Carried, request: Request, block: NoiseRows) -> Carried:
        """With the draw of the request's round, where one is asked for."""
        policy = carried.policy

        def draw(state: Any) -> tuple[list[Array], Any]:
            drawn = policy.draw(self.noise(carried, request, block).draw, state)
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


def in_one_piece(
    step: Callable[..., Any], words: StateWords, request: RequestWords, large: LargeLeaves
) -> tuple[Array, ...]:
    """`step` of these, as a loop of one turn: XLA compiles small loops whole.

    How many turns there are the compiler must not know, and the request changes with every turn:
    else what depends on it alone would be computed before the loop.
    """

    def turn(_: Array, carry: tuple[Array, Array, LargeLeaves]) -> Any:
        words, request, large = carry
        words, large = step(words, request, large)
        return words, request + jnp.uint32(1), large

    words, _, large = lax.fori_loop(0, turns(request), turn, (words, request, large))
    return words, *large


class DrawStep(Step):
    """A draw for the round of the request."""

    def __call__(
        self, words: StateWords, request: RequestWords, block: NoiseRows, *large: Array
    ) -> tuple[Array, ...]:
        def draw(words: Array, request: Array, large: LargeLeaves) -> tuple[Array, LargeLeaves]:
            asked = Form(self.game).read(request)
            carried = self.read(words, large, asked)
            return self.write(words, self.with_draw(carried, asked, block))

        return in_one_piece(draw, words, request, list(large))


class LearnStep(Step):
    """One observed reward, and a draw for the round of the request.

    If it is `sparing`, it leaves rare work out and says whether that was needed.
    """

    sparing: bool = eqx.field(static=True)

    def __call__(
        self, words: StateWords, request: RequestWords, block: NoiseRows, *large: Array
    ) -> tuple[Array, ...]:
        def learn(words: Array, request: Array, large: LargeLeaves) -> tuple[Array, LargeLeaves]:
            asked = Form(self.game).read(request)
            carried = self.read(words, large, asked)
            needed: list[Array] = []
            with left_out() if self.sparing else nullcontext(needed) as needed:
                carried = self.updated(carried, asked)
            undone = jnp.any(jnp.array(needed, bool)).astype(jnp.int32)
            carried = self.with_draw(carried, asked, block)._replace(undone=undone)
            return self.write(words, carried)

        return in_one_piece(learn, words, request, list(large))

    def updated(self, carried: Carried, asked: Request) -> Carried:
        """With the request's reward learned."""
        spec, policy, state = self.game.spec, carried.policy, carried.state
        if self.game.forgets:
            rebuilt = self.game.agent.hints.rebuilt
            assert rebuilt is not None
            state = rebuilt(state, carried.keep)
        context = per_chain(spec, asked.context)
        arm, reward = per_chain(spec, asked.arm), per_chain(spec, asked.reward)
        return carried._replace(state=strong(policy.update(state, context, arm, reward)))


class ChooseStep(Step):
    """The arm of each chain, after the draw ahead."""

    masks: bool = eqx.field(static=True)

    def __call__(
        self, words: StateWords, request: RequestWords, block: NoiseRows, *large: Array
    ) -> Int[Array, "*lanes"]:
        asked, spec = Form(self.game).read(request), self.game.spec
        carried = self.packing.unpack(words, large)
        state, noise = self.drawn_state(carried), self.noise(carried, asked, block)
        context = per_chain(spec, asked.context)
        given = {"allowed": per_chain(spec, asked.allowed) > 0.0} if self.masks else {}
        return carried.policy.choose(noise.choose, state, context, **given)


class LawStep(Step):
    """The probability of each arm by the agent's own rule, before the draw."""

    masks: bool = eqx.field(static=True)

    def __call__(
        self, words: StateWords, request: RequestWords, *large: Array
    ) -> Float[Array, " arms"]:
        asked = Form(self.game).read(request)
        carried = self.read(words, list(large), asked)
        pmf = self.game.agent.hints.pmf
        assert pmf is not None
        given = {"allowed": asked.allowed > 0.0} if self.masks else {}
        return pmf(carried.state, asked.context, **given)


class ScoresStep(Step):
    """The law of the scores whose largest is played, after the draw ahead."""

    def __call__(self, words: StateWords, request: RequestWords, *large: Array) -> ScoreLaw:
        scores = self.game.agent.hints.scores
        assert scores is not None
        state = self.drawn_state(self.packing.unpack(words, large))
        return scores(state, Form(self.game).read(request).context)


class GrowStep(eqx.Module):
    """The carried things with room for more rounds, unpacked."""

    packing: Packing = eqx.field(static=True)
    changed: tuple[int, ...] = eqx.field(static=True)
    room: int = eqx.field(static=True)

    def __call__(self, words: StateWords, *large: Array) -> Carried:
        carried = self.packing.unpack(words, large)
        leaves, tree = jax.tree.flatten(carried.state)
        for i, drawn in zip(self.changed, carried.ahead, strict=True):
            leaves[i] = drawn
        both = (carried.state, jax.tree.unflatten(tree, leaves))
        state, drawn_state = (carried.policy.reserve(one, self.room) for one in both)
        drawn_leaves = jax.tree.leaves(drawn_state)
        ahead = [drawn_leaves[i] for i in self.changed]
        return strong(carried._replace(state=state, ahead=ahead))
