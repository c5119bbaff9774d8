"""The agent of a live bandit: its state, its draws ahead, and the programs that move them.

A round is that of the engine: round t draws and chooses with the numbers of `round_key(stream, t)`.
The draw of the next round is made in the call that learns a reward. A draw that was not played is
dropped when another reward comes first, so every draw that is played knows all rewards before it.
"""

import inspect
import math
import threading
from typing import Any

import jax
import numpy as np

from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import Policy
from feelgood.core.spec import Layout, Spec
from feelgood.engine import compiling
from feelgood.engine.compiling import compiled, in_own_precision
from feelgood.engine.lifting import for_lanes
from feelgood.engine.plan import laid_out
from feelgood.live.calls import Baked, Form, Game, Writer
from feelgood.live.programs import (
    ROUNDS_AHEAD,
    Begin,
    Carried,
    ChooseStep,
    DrawStep,
    GrowStep,
    LawStep,
    LearnStep,
    NoiseBlock,
    PackedBegin,
    ScoresStep,
    changed_leaves,
)
from feelgood.live.state_words import Packing
from feelgood.stats.choice_probabilities import choice_probabilities
from feelgood.targets.room import SMALLEST_ROOM

_DIVERGED = (
    "the agent's numbers are no longer finite: load an earlier file, or choose settings with "
    "smaller steps."
)


class Programs:
    """All that is compiled for states of one shape."""

    def __init__(self, game: Game, packing: Packing, changed: tuple[int, ...], masks: bool) -> None:
        self.packing, hints = packing, game.agent.hints
        words = jax.ShapeDtypeStruct((packing.offsets[-1],), np.uint32)
        large = [jax.ShapeDtypeStruct(packing.shapes[i], packing.dtypes[i]) for i in packing.large]
        request = jax.ShapeDtypeStruct((Form(game).starts[-1],), np.uint32)

        def made(step: Any) -> Any:
            return compiled(step, words, large, request, effort=compiling.BRIEFLY)[0]

        self.learn = made(LearnStep(game, packing, changed))
        self.draw = made(DrawStep(game, packing, changed))
        self.choose = None if hints.linear else made(ChooseStep(game, packing, changed, masks))
        self.law = self.scores = None
        if hints.pmf is not None and not game.spec.lanes:
            self.law = made(LawStep(game, packing, changed, masks))
        elif hints.scores is not None and not game.spec.lanes:
            self.scores = made(ScoresStep(game, packing, changed))


def takes_masks(agent: Policy) -> bool:
    """Whether an agent can choose among some of the arms only."""
    return "allowed" in inspect.signature(agent.choose).parameters


class LivePlayer:
    """An agent that plays live. Not for several threads at once."""

    @in_own_precision
    def __init__(
        self,
        agent: Policy,
        spec: Spec,
        streams: np.ndarray,
        *,
        keep: float = 1.0,
        room: int = SMALLEST_ROOM,
        state: Any = None,
    ) -> None:
        chains = len(streams)
        if chains > 1:
            spec = laid_out(spec, Layout(chains=chains))
        baked = Baked(agent, spec)
        self.hints = baked.hints
        self.policy = for_lanes(agent, spec, self.hints.layout)
        self.game = Game(baked, spec, self.policy.needs(spec), forgets=keep < 1.0)
        self.write = Writer(self.game)
        self.linear, self._takes_masks = self.hints.linear, takes_masks(agent)
        self.masks = self.linear or self._takes_masks
        # Plain attributes: those of modules take a microsecond each.
        self.chains, self.shared, self._arm_count = chains, spec.shared, spec.arms
        self._shape = (spec.dim, spec.blocks * chains)
        self._zeros, self.sums = np.zeros(spec.arms, np.float32), self.hints.sums
        laws = (self.hints.pmf, self.hints.scores)
        self.has_law = chains > 1 or any(law is not None for law in laws)
        self._scores_shape = (spec.arms, *spec.lanes)
        self.streams, self.keep, self.room = streams, np.float32(keep), room
        self._changed = self._find_changed()
        self._made: dict[int, Programs] = {}
        self._making = threading.Lock()
        self._noise_program = compiled(
            NoiseBlock(self.game.chains, self.game.needs),
            jax.ShapeDtypeStruct(streams.shape, np.uint32),
            np.int32(0),
            effort=compiling.BRIEFLY,
        )[0]
        self._noise_first = -ROUNDS_AHEAD
        self.round, self.version = 0, 0
        self.ready, self.played = False, False
        self.programs = self._programs(room)
        if state is None:
            self.words, self.large = self._begun()
        else:
            self._pack(self._with_state(state))
        self._split_large()
        self.grows = self._packing(2 * room) != self.programs.packing

    def _find_changed(self) -> tuple[int, ...]:
        keys = jax.eval_shape(self.game.keys, self.streams)
        like = jax.eval_shape(lambda key: self.policy.init(key, self.game.spec), keys)
        return changed_leaves(self.policy, self.game.needs, like, keys)

    # ---- shapes -------------------------------------------------------------------------

    def _begin(self, room: int) -> Begin:
        return Begin(self.game, self._changed, room)

    def _packing(self, room: int) -> Packing:
        like = jax.eval_shape(self._begin(room), self.policy, self.streams, self.keep)
        return Packing.of(like)

    def _begun(self) -> tuple[Any, list[Any]]:
        begin = PackedBegin(self._begin(self.room), self.programs.packing)
        arguments = (self.policy, self.streams, self.keep)
        return compiled(begin, *arguments, effort=compiling.ONCE)[0](*arguments)

    def _with_state(self, state: Any) -> Carried:
        """Carried things with a state, or its leaves, of the shapes that it has here."""
        like = jax.eval_shape(self._begin(self.room), self.policy, self.streams, self.keep)
        expected, tree = jax.tree.flatten(like.state)
        leaves = [as_leaf(x, one) for x, one in zip(jax.tree.leaves(state), expected, strict=True)]
        ahead = [leaves[i] for i in self._changed]
        parameters = jax.tree.map(lambda x: jax.numpy.zeros(x.shape, x.dtype), like.parameters)
        streams, keep = jax.numpy.asarray(self.streams), jax.numpy.asarray(self.keep)
        own = jax.tree.unflatten(tree, leaves)
        return Carried(self.policy, streams, keep, own, ahead, parameters)

    def _pack(self, carried: Carried) -> None:
        pack = compiled(self.programs.packing.pack, carried, effort=compiling.ONCE)[0]
        self.words, self.large = pack(carried)

    def _programs(self, room: int) -> Programs:
        with self._making:
            if room not in self._made:
                self._made = {r: p for r, p in self._made.items() if r >= self.room}
                self._made[room] = Programs(
                    self.game, self._packing(room), self._changed, self._takes_masks
                )
            return self._made[room]

    def _split_large(self) -> None:
        """Find the large leaves that a draw changes: of those there are two, before and after."""
        packing = self.programs.packing
        carried = jax.tree.unflatten(packing.tree, range(len(packing.shapes)))
        state = jax.tree.leaves(carried.state)
        pairs = [(state[i], j) for i, j in zip(self._changed, carried.ahead, strict=True)]
        place = {leaf: at for at, leaf in enumerate(packing.large)}
        self._pairs = [(place[a], place[b]) for a, b in pairs if a in place]
        if self.linear:
            (leaf,) = jax.tree.leaves(carried.parameters)
            start = packing.offsets[leaf]
            self._theta = slice(start, start + packing.size(leaf))
            self._large_theta = place.get(leaf)

    @in_own_precision
    def grow(self) -> None:
        """Twice the room."""
        step = GrowStep(self.programs.packing, self._changed, 2 * self.room)
        arguments = (self.words, self._current_large())
        carried = compiled(step, *arguments, effort=compiling.ONCE)[0](*arguments)
        self.room *= 2
        self.programs = self._programs(self.room)
        self._pack(carried)
        self._split_large()

    @in_own_precision
    def make_ahead(self) -> None:
        """Compile what the next growth needs."""
        self._programs(2 * self.room)

    # ---- one round ----------------------------------------------------------------------

    def noise(self, t: int) -> tuple[Any, Any, Any]:
        """The normals of round t's two calls, and which chain acts."""
        i = t - self._noise_first
        if not 0 <= i < ROUNDS_AHEAD:
            drawn = self._noise_program(self.streams, np.int32(t))
            self._noise = tuple(np.asarray(part) for part in drawn)
            self._noise_first, i = t, 0
        draw, choose, member = self._noise
        return draw[i], choose[i], member[i]

    def _current_large(self) -> list[Any]:
        """The large leaves with which the next program starts."""
        if self.played and self._pairs:
            large = list(self.large)
            for before, after in self._pairs:
                large[before] = large[after]
            return large
        return self.large

    def prepare(self) -> None:
        """Have the draw of the next round ready."""
        if not self._changed:
            self.ready = True
        if not self.ready:
            noise = self.noise(self.round)
            request = self.write(None, noise, self.round, played=self.played)
            self.words, self.large = self.programs.draw(self.words, self._current_large(), request)
            self.ready, self.played = True, False
            self._read_parameters()

    def _read_parameters(self) -> None:
        """The parameters of the draw ahead, for choices on the host."""
        if self.linear:
            if self._large_theta is None:
                drawn = np.asarray(self.words)[self._theta].view(np.float32)
            else:
                drawn = np.asarray(self.large[self._large_theta])
            self._parameters = drawn.reshape(self._shape)

    def arms(self, context: np.ndarray, allowed: np.ndarray | None) -> Any:
        """The arm that each chain plays in the next round, with the draw that is ready."""
        if not self.linear:
            noise = self.noise(self.round)
            request = self.write(context, noise, self.round, played=self.played, allowed=allowed)
            assert self.programs.choose is not None
            arms = np.asarray(self.programs.choose(self.words, self.large, request))
            if not (arms < self._arm_count).all() or (arms < 0).any():
                raise FeelgoodError(_DIVERGED)
            return arms
        scores = (context.T if self.shared else context).dot(self._parameters)
        if self.chains > 1 or self.shared:
            scores = scores.reshape(self._scores_shape)
        # 0 times what is not finite is not finite.
        if not math.isfinite(scores.dot(self._zeros) if scores.ndim == 1 else scores.sum()):
            raise FeelgoodError(_DIVERGED)
        if allowed is not None:
            shape = (-1,) + (1,) * (scores.ndim - 1)
            scores = np.where(allowed.reshape(shape), scores, -np.inf)
        return scores.argmax(0)

    def learn(self, context: np.ndarray, arm: int, reward: float, *, draws: bool = True) -> None:
        """One observed reward; with the draw of the next round."""
        if self.grows and self.version >= self.room:
            self.grow()
        noise = self.noise(self.round)
        request = self.write(
            context,
            noise,
            self.round,
            arm=arm,
            reward=reward,
            played=self.played,
            draws=draws,
        )
        self.words, self.large = self.programs.learn(self.words, self._current_large(), request)
        self.version += 1
        self.ready, self.played = draws, False
        if draws:
            self._read_parameters()

    def mark(self) -> tuple[Any, ...]:
        """Where the player is, to go back to."""
        return self.words, self.large, self.round, self.ready, self.played

    def go_back(self, mark: tuple[Any, ...]) -> None:
        """To where the player was."""
        self.words, self.large, self.round, self.ready, self.played = mark
        if self.ready:
            self._read_parameters()

    def play(self) -> None:
        """The draw that was ready has been played: the next round begins."""
        self.round += 1
        self.ready, self.played = False, bool(self._changed)

    def law(self, context: np.ndarray, allowed: np.ndarray | None) -> np.ndarray | None:
        """The probability of each arm that may be played next, where there is a rule for it."""
        arms = None
        if self.programs.law is None and self.has_law:
            self.prepare()
        if self.chains > 1:
            arms = self.arms(context, allowed)
        later = self.law_later(context, allowed, arms)
        return None if later is None else later()

    def law_later(self, context: np.ndarray, allowed: np.ndarray | None, arms: Any) -> Any:
        """What computes that from the state as it is now; None: there is no rule.

        `arms` are those that the chains have chosen.
        """
        offered = slice(None) if allowed is None else allowed
        if self.chains > 1:
            return lambda: (np.bincount(arms, minlength=self._arm_count) / self.chains)[offered]
        rule: Any = self.programs.law
        scores = self.programs.scores
        if rule is None and scores is None:
            return None
        words, large, played, round = self.words, self._current_large(), self.played, self.round

        def law() -> np.ndarray:
            request = self.write(context, (0.0, 0.0), round, played=played, allowed=allowed)
            if scores is None:
                return np.asarray(rule(words, large, request), np.float64)[offered]
            told = jax.tree.map(np.asarray, scores(words, large, request))
            return choice_probabilities(told, allowed).pmf[offered]

        return law

    def carried(self) -> Carried:
        """All that is carried, on the host; a draw that was played is the state."""
        packing = self.programs.packing
        unpack = compiled(packing.unpack, self.words, self._current_large(), effort=compiling.ONCE)
        carried = unpack[0](self.words, self._current_large())
        if self.played:
            leaves, tree = jax.tree.flatten(carried.state)
            for i, drawn in zip(self._changed, carried.ahead, strict=True):
                leaves[i] = drawn
            carried = carried._replace(state=jax.tree.unflatten(tree, leaves))
        return carried

    def copy(self, streams: np.ndarray) -> "LivePlayer":
        """Another player with this state and streams of its own."""
        copy = object.__new__(LivePlayer)
        copy.__dict__.update(self.__dict__)
        copy.large = list(self.large)
        copy.streams, copy._noise_first = streams, -ROUNDS_AHEAD
        copy.set_streams()
        return copy

    @in_own_precision
    def set_streams(self) -> None:
        """Put the streams into what is carried; a draw made ahead is that of another stream."""
        carried = self.carried()._replace(streams=jax.numpy.asarray(self.streams))
        self._pack(carried)
        self.ready = self.played = False

    def warm_up(self) -> None:
        """Call every program once, and have the first draw ready."""
        self.prepare()
        context = np.zeros(self.game.spec.context_shape, np.float32)
        self.arms(context, None)
        self.law(context, None)
        request = self.write(context, self.noise(0), 0, played=False)
        self.programs.learn(self.words, self._current_large(), request)

    def is_made_ahead(self) -> bool:
        """Whether the programs for twice the room are there."""
        return 2 * self.room in self._made


def as_leaf(value: Any, like: Any) -> Any:
    """An array as a leaf of a state; an error where it does not fit."""
    if jax.dtypes.issubdtype(like.dtype, jax.dtypes.prng_key):
        if not jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            value = jax.random.wrap_key_data(jax.numpy.asarray(value), impl=like.dtype._impl)
    elif value.dtype != like.dtype:
        raise TypeError(f"{value.dtype} is not {like.dtype}")
    if value.shape != like.shape:
        raise TypeError(f"{value.shape} is not {like.shape}")
    return jax.numpy.asarray(value)


def run_in_callers_thread() -> None:
    """Let programs run in the thread that calls them: otherwise each call waits for another one.

    JAX reads this once, before its first program, so it may be too late.
    """
    jax.config.update("jax_cpu_enable_async_dispatch", False)
