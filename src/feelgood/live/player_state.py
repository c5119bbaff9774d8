"""The state of a live agent: where its words are, how they grow, and what is compiled for them.

On a CPU programs change the words in place, and the host reads them there. So a draw that was made
ahead costs nothing to look at.
"""

import ctypes
import threading
from typing import Any

import jax
import numpy as np

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

#: Up to so many arms, the largest score is found by Python itself.
_FEW_ARMS = 32


class PlayerState:
    """An agent with its state, its draw ahead, and the programs that move them."""

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
        self._few = self.linear and chains == 1 and not spec.shared and spec.arms <= _FEW_ARMS
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
        self._place, self._lost = -1, False
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
        places: set[int] = set()
        for at, leaf in enumerate(self.large):  # programs change each in place
            if leaf.unsafe_buffer_pointer() in places:
                self.large[at] = jax.numpy.array(leaf)
            places.add(self.large[at].unsafe_buffer_pointer())
        self._large_theta: int | None = None
        if self.linear:
            (leaf,) = jax.tree.leaves(carried.parameters)
            self._theta = slice(packing.offsets[leaf], packing.offsets[leaf] + packing.size(leaf))
            self._large_theta = place.get(leaf)
        self._look()

    @in_own_precision
    def grow(self) -> None:
        """Twice the room."""
        step = GrowStep(self.programs.packing, self._changed, 2 * self.room)
        arguments = (self.words, *self.large)
        carried = compiled(step, *arguments, effort=compiling.ONCE)[0](*arguments)
        self.room *= 2
        self.programs = self._programs(self.room)
        self._pack(carried)
        self._split_large()

    @in_own_precision
    def make_ahead(self) -> None:
        """Compile what the next growth needs."""
        self._programs(2 * self.room)

    # ---- words --------------------------------------------------------------------------

    def _current_large(self) -> Any:
        """The large leaves with which the next program starts.

        Once a draw was played, it is the state, and the old state is room for the next draw.
        """
        if not (self.played and self._pairs):
            return self.large
        large = list(self.large)
        for before, after in self._pairs:
            large[before], large[after] = large[after], large[before]
        return large

    def _large_copied(self) -> list[Any]:
        """The large leaves as they are now, which nothing will change."""
        return [jax.numpy.array(leaf) for leaf in self.large]

    def _look(self) -> None:
        """See the words where they are, on a CPU for as long as they stay there."""
        if self._mail.array is None:
            self._place, self._whole = -1, np.asarray(self.words)
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
            # A copy: what the host looks at cannot be changed in place.
            drawn = np.array(self.large[self._large_theta])
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

    def carried(self) -> Carried:
        """All that is carried, on the host; a draw that was played is the state."""
        packing = self.programs.packing
        arguments = (self.words, self.large)
        carried = compiled(packing.unpack, *arguments, effort=compiling.ONCE)[0](*arguments)
        if self.played:
            leaves, tree = jax.tree.flatten(carried.state)
            for i, drawn in zip(self._changed, carried.ahead, strict=True):
                leaves[i] = drawn
            carried = carried._replace(state=jax.tree.unflatten(tree, leaves))
        return carried

    def copy(self, streams: np.ndarray) -> Any:
        """Another player with this state and streams of its own."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.streams = streams
        copy._equip()
        copy.set_streams()
        return copy

    @in_own_precision
    def set_streams(self) -> None:
        """Put the streams into what is carried; a draw made ahead is that of another stream."""
        carried = self.carried()._replace(streams=jax.numpy.asarray(self.streams))
        self._pack(carried)
        self.large = self._large_copied()  # a program returns what it was given as it is
        self._split_large()
        self.ready = self.played = False

    def is_made_ahead(self) -> bool:
        """Whether the programs for twice the room are there."""
        return 2 * self.room in self._made
