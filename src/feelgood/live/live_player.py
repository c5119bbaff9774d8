"""The agent of a live bandit: its state, its draws ahead, and the programs that move them.

A round is that of the engine: round t draws and chooses with the numbers of `round_key(stream, t)`.
The draw of the next round is made in the call that learns a reward. A draw that was not played is
dropped when another reward comes first, so every draw that is played knows all rewards before it.
"""

import ctypes
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
from feelgood.live.callers_thread import runs_in_callers_thread
from feelgood.live.calls import Baked, Game, Mailbox
from feelgood.live.program_set import ProgramSet, noise_program, takes_masks
from feelgood.live.programs import (
    Begin,
    Carried,
    GrowStep,
    PackedBegin,
    changed_leaves,
    has_rare_work,
)
from feelgood.live.state_words import Packing, as_leaf
from feelgood.targets.room import SMALLEST_ROOM

_DIVERGED = (
    "the agent's numbers are no longer finite: load an earlier file, or choose settings with "
    "smaller steps."
)


#: Up to so many arms, the largest score is found by Python itself.
_FEW_ARMS = 32


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
        self._agent, self.policy = agent, for_lanes(agent, spec, self.hints.layout)
        self.game = Game(baked, spec, self.policy.needs(spec), forgets=keep < 1.0)
        self.linear, self._takes_masks = self.hints.linear, takes_masks(agent)
        self.masks = self.linear or self._takes_masks
        # Plain attributes: those of modules take a microsecond each.
        self.chains, self.shared, self._arm_count = chains, spec.shared, spec.arms
        self.sums = self.hints.sums
        self._few = chains == 1 and not spec.shared and spec.arms <= _FEW_ARMS
        self._scores_shape = (spec.arms, *spec.lanes)
        self.streams, self.keep, self.room = streams, np.float32(keep), room
        self._changed, self._sparing = self._look_at_agent()
        self._moves, self._waits = bool(self._changed), not runs_in_callers_thread()
        self._made: dict[int, ProgramSet] = {}
        self._making = threading.Lock()
        self._noise_program = noise_program(self.game, streams)
        self.round, self.version = 0, 0
        self.ready, self.played = False, False
        self.programs = self._programs(room)
        self.has_law = chains > 1 or self.programs.has_law
        self._equip()
        if state is None:
            self.words, self.large = self._begun()
        else:
            self._pack(self._with_state(state))
        self._split_large()
        self.grows = self._packing(2 * room) != self.programs.packing

    def _equip(self) -> None:
        """What no two players may share: requests, noise, and parameters on the host."""
        self._mail, self._rounds_ahead = Mailbox(self.game), self.game.rounds_ahead
        self._noise_first = -self._rounds_ahead
        self._place: int | None = None
        self._copied: Any = None

    def _look_at_agent(self) -> tuple[tuple[int, ...], bool]:
        """Which leaves of its state `draw` changes, and whether `update` does rare work."""
        spec = self.game.spec
        keys = jax.eval_shape(self.game.keys, self.streams)
        like = jax.eval_shape(lambda key: self.policy.init(key, spec), keys)
        changed = changed_leaves(self.policy, self.game.needs, like, keys)
        # What is found within a `vmap` cannot be told to the program around it.
        lifted = self.policy is not self._agent
        sparing = not lifted and jax.default_backend() == "cpu"
        return changed, sparing and has_rare_work(self.policy, spec, like)

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
        undone = jax.numpy.zeros((), np.int32)
        return Carried(self.policy, streams, keep, own, ahead, parameters, undone)

    def _pack(self, carried: Carried) -> None:
        pack = compiled(self.programs.packing.pack, carried, effort=compiling.ONCE)[0]
        self.words, self.large = pack(carried)
        self._copied = None

    def _programs(self, room: int) -> ProgramSet:
        with self._making:
            if room not in self._made:
                self._made = {r: p for r, p in self._made.items() if r >= self.room}
                self._made[room] = ProgramSet(
                    self.game, self._packing(room), self._changed, self._takes_masks, self._sparing
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
            self._theta = slice(packing.offsets[leaf], packing.offsets[leaf] + packing.size(leaf))
            self._large_theta = place.get(leaf)
        self._look()

    @in_own_precision
    def grow(self) -> None:
        """Twice the room."""
        step = GrowStep(self.programs.packing, self._changed, 2 * self.room)
        arguments = (self.words, *self._current_large())
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

    def _row(self) -> int:
        """Where the normals of the next round are in the block of many rounds."""
        row = self.round - self._noise_first
        if not 0 <= row < self._rounds_ahead:
            self._noise, members = self._noise_program(self.streams, np.int32(self.round))
            self._members, self._noise_first, row = np.asarray(members), self.round, 0
        return row

    def acting(self) -> int:
        """Which chain acts in the next round."""
        return int(self._members[self._row()])

    def _current_large(self) -> Any:
        """The large leaves with which the next program starts."""
        if self.played and self._pairs:
            large = list(self.large)
            for before, after in self._pairs:
                large[before] = large[after]
            return large
        return self.large

    def _run(self, program: Any, request: Any) -> None:
        """Move the state by a program; when this returns, nothing reads the request any more.

        On a CPU it changes the words where they are; a copy is kept of what they were.
        """
        before = self._copied
        if before is None:
            before = self.copied()
        program = getattr(program, "_call", None) or program  # spares a call in Python
        try:
            if self.large:
                large = self._current_large()
                words, *self.large = program(self.words, request, self._noise, *large)
            else:
                (words,) = program(self.words, request, self._noise)
            if self._waits:
                words.block_until_ready()
        except BaseException:
            self._put(before)
            raise
        self.words, self._copied = words, None
        if self._place is None or self._place != words.unsafe_buffer_pointer():
            self._look()
        elif self.linear and self._large_theta is not None:
            self._read_theta()

    def prepare(self) -> None:
        """Have the draw of the next round ready."""
        if not self._changed:
            self._row()
            self.ready = True
        if not self.ready:
            row = self._row()
            request = self._mail.write(None, self.round, row, played=self.played)
            self._run(self.programs.draw, request)
            self.ready, self.played = True, False

    def _look(self) -> None:
        """See the words where they are, on a CPU for as long as they stay there."""
        if self._mail.array is None:
            self._whole = np.asarray(self.words)
            self._undone: Any = self._whole
        else:
            self._place = self.words.unsafe_buffer_pointer()
            memory = (ctypes.c_uint32 * len(self.words)).from_address(self._place)
            self._whole, self._undone = np.ctypeslib.as_array(memory), memory
        if self.linear:
            self._read_theta()

    def _read_theta(self) -> None:
        """The parameters of the draw ahead, for choices on the host."""
        if self._large_theta is None:
            drawn = self._whole[self._theta].view(np.float32)
        else:
            drawn = np.asarray(self.large[self._large_theta])
        spec = self.game.spec
        self._parameters = drawn.reshape(spec.dim, spec.blocks * self.chains)

    def copied(self) -> Any:
        """The words as they are now, which nothing will change."""
        if self._copied is None:
            self._copied = self.words if self._mail.array is None else self._whole.copy()
        return self._copied

    def _put(self, words: Any) -> None:
        """Have these words, of `copied`, again."""
        self.words, self._copied = jax.numpy.array(words), words
        self._look()

    def decide(self, context: np.ndarray, allowed: np.ndarray | None) -> tuple[int, Any]:
        """Play a round: the arm, and what its law can be computed by, where there is one."""
        if not self.ready:
            self.prepare()
        arms = self.arms(context, allowed)
        arm = int(arms if self.chains == 1 else arms[self.acting()])
        law = None
        if self.has_law:
            law = self.law_of, (self.programs, self.copied(), self.large, context, allowed, arms)
        self.round += 1
        self.ready, self.played = False, self._moves
        return arm, law

    def arms(self, context: np.ndarray, allowed: np.ndarray | None) -> Any:
        """The arm that each chain plays in the next round, with the draw that is ready."""
        if not self.linear:
            self._mail.allow(allowed)
            request = self._mail.write(context, self.round, self._row(), played=self.played)
            choose = self.programs.choose
            assert choose is not None
            arms = np.asarray(choose(self.words, request, self._noise, *self.large))
            if not (arms < self._arm_count).all() or (arms < 0).any():
                raise FeelgoodError(_DIVERGED)
            return arms
        if self._few and allowed is None:
            # The same with numbers of Python, which for a few arms takes half the time.
            few = context.dot(self._parameters).tolist()
            if not math.isfinite(sum(few)):
                raise FeelgoodError(_DIVERGED)
            return few.index(max(few))
        scores = (context.T if self.shared else context).dot(self._parameters)
        scores = scores.reshape(self._scores_shape)
        if not np.isfinite(scores).all():
            raise FeelgoodError(_DIVERGED)
        if allowed is not None:
            shape = (-1,) + (1,) * (scores.ndim - 1)
            scores = np.where(allowed.reshape(shape), scores, -np.inf)
        return scores.argmax(0)

    def learn(self, context: np.ndarray, arm: int, reward: float, *, draws: bool = True) -> None:
        """One observed reward; with the draw of the next round."""
        if self.grows and self.version >= self.room:
            self.grow()
        row, before, large = self._row(), self.copied(), self.large
        request = self._mail.write(context, self.round, row, arm, reward, self.played, draws)
        self._run(self.programs.learn, request)
        if self._undone[-1]:
            self.large = large
            self._put(before)
            self._run(self.programs.learn_fully, request)
        self.version += 1
        self.ready, self.played = draws, False

    def mark(self) -> tuple[Any, ...]:
        """Where the player is, to go back to."""
        return self.copied(), self.large, self.round, self.ready, self.played

    def go_back(self, mark: tuple[Any, ...]) -> None:
        """To where the player was."""
        words, self.large, self.round, self.ready, self.played = mark
        self._put(words)

    def play(self) -> None:
        """The draw that was ready has been played: the next round begins."""
        self.prepare()
        self.round += 1
        self.ready, self.played = False, self._moves

    def law(self, context: np.ndarray, allowed: np.ndarray | None) -> np.ndarray | None:
        """The probability of each arm that may be played next, where there is a rule for it."""
        if not self.has_law:
            return None
        self.prepare()
        arms = self.arms(context, allowed) if self.chains > 1 else None
        return self.law_of((self.programs, self.copied(), self.large, context, allowed, arms))

    def law_of(self, moment: tuple[Any, ...]) -> np.ndarray:
        """The probabilities of each arm at that moment, which may be long ago."""
        programs, words, large, context, allowed, arms = moment
        if self.chains == 1:
            return programs.law(words, large, context, allowed)
        shares = np.bincount(arms, minlength=self._arm_count) / self.chains
        return shares if allowed is None else shares[allowed]

    def carried(self) -> Carried:
        """All that is carried, on the host; a draw that was played is the state."""
        packing = self.programs.packing
        arguments = (self.words, list(self._current_large()))
        carried = compiled(packing.unpack, *arguments, effort=compiling.ONCE)[0](*arguments)
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
        copy.large, copy.streams = list(self.large), streams
        copy._equip()
        copy.set_streams()
        return copy

    @in_own_precision
    def set_streams(self) -> None:
        """Put the streams into what is carried; a draw made ahead is that of another stream."""
        carried = self.carried()._replace(streams=jax.numpy.asarray(self.streams))
        self._pack(carried)
        self._look()
        self.ready = self.played = False

    def warm_up(self) -> None:
        """Call every program once, and have the first draw ready."""
        self.prepare()
        context = np.zeros(self.game.spec.context_shape, np.float32)
        self.arms(context, None)
        self.law(context, None)
        request = self._mail.write(context, 0, self._row())
        for learn in (self.programs.learn, self.programs.learn_fully):
            if learn is not None:
                own = jax.numpy.array(self.words)
                learned = learn(own, request, self._noise, *self._current_large())
                jax.block_until_ready(learned)

    def is_made_ahead(self) -> bool:
        """Whether the programs for twice the room are there."""
        return 2 * self.room in self._made
