"""One group of chains, from the first round to the last."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from feelgood.core.policy import Policy
from feelgood.core.testbed import Testbed
from feelgood.engine.compiling import BRIEFLY, ONCE, compiled
from feelgood.engine.environment import Block, BlockMaker
from feelgood.engine.loop import (
    REPEATED_DRAWS,
    Beginner,
    NoiseMaker,
    Played,
    Player,
    Playing,
    Window,
    strongly_typed,
)
from feelgood.engine.plan import Plan
from feelgood.engine.resuming import Checkpoints, CheckpointsOfLayout
from feelgood.engine.tally import Tally
from feelgood.engine.watching import Measurements, Watch
from feelgood.numerics.keys import LaneKeys, seed_array
from feelgood.numerics.noise import RoundNoise
from feelgood.stats.effective_sample_size import effective_sample_size

#: A call into the compiled program aims at this long, so that progress and Ctrl-C are prompt.
CALL_SECONDS = 0.4
#: Rounds of the first call, before it is known how long one takes.
FIRST_CALL = 256


class GroupOutcome(NamedTuple):
    """What a group of chains leaves behind."""

    tally: Tally
    measured: Measurements
    diverged_at: Int[np.ndarray, " chains"]
    ess: Float[np.ndarray, " chains"]
    compile_s: float


class GroupRun:
    """The chains of one group: some settings × some seeds, in that order.

    `index` is the group's place among the groups of the run, under which it is saved. `advance(n)`
    is called after every n chain-rounds and may raise.
    """

    def __init__(
        self,
        plan: Plan,
        testbed: Testbed,
        policy: Policy,
        seeds: Sequence[int],
        rounds: int,
        *,
        index: int,
        advance: Callable[[int], None],
        checkpoints: Checkpoints | None,
        watch: Watch | None,
    ) -> None:
        self.plan, self.testbed, self.policy, self.rounds = plan, testbed, policy, rounds
        self.index, self.advance, self.watch = index, advance, watch
        self.checkpoints: Checkpoints | None = checkpoints
        self.seeds = seed_array(seeds)
        self.chains = max(1, plan.spec.layout.chains)
        self.compile_s = 0.0
        self._player = Player(plan.spec, plan.needs, plan.repeats_draws and plan.one_program)
        #: Rounds of the next call.
        self._count = FIRST_CALL

    def run(self) -> GroupOutcome:
        """Play all rounds."""
        playing, saved = self._begin()
        while self.tally.done < self.rounds:
            playing = self._play_block(playing)
        diverged_at = np.array(playing.diverged_at).reshape(self.chains)
        if "ess" in saved:
            ess = np.array(saved["ess"])
        else:
            last = self._progress(playing) if self.checkpoints is not None else {}
            ess = self._ess(playing)
            if self.checkpoints is not None:
                self.checkpoints.save(self.index, {**last, "ess": ess})
        return GroupOutcome(self.tally, self.measured, diverged_at, ess, self.compile_s)

    def _begin(self) -> tuple[Playing, Mapping[str, np.ndarray]]:
        """The chains at their start, or as they were saved, and what was saved of them."""
        begin = Beginner(self.plan.spec, measured=self.watch is not None)
        args = (self.testbed, self.policy, self.seeds)
        #: The testbed's states and keys, and the agent's keys.
        self._settled, playing, self._keys = self._compiled(begin, *args, effort=ONCE)(*args)
        names = tuple(jax.eval_shape(self.policy.report, playing.state).health)
        self.tally = Tally(self.rounds, self.chains, self.testbed.spec.arms, names)
        self.measured = Measurements(self.watch, self.rounds, self.chains)
        if self.checkpoints is None:
            return playing, {}
        like = (playing, self.tally.save(), self.measured.save())
        self.checkpoints = CheckpointsOfLayout(self.checkpoints, *like)
        saved = self.checkpoints.load(self.index)
        if saved is None:
            return playing, {}
        self.tally.load(saved)
        self.measured.load(saved)
        self.advance(self.tally.done * self.chains)
        return self._restored(playing, saved), saved

    def _play_block(self, playing: Playing) -> Playing:
        """The rest of the block that the next round is in, in calls of about the same length."""
        tally, checkpoints = self.tally, self.checkpoints
        start = tally.done // self.plan.block * self.plan.block
        stop = min(start + self.plan.block, self.rounds)
        state = self.policy.reserve(playing.state, self._room(start))
        playing = playing._replace(state=state)
        self._last_block, means = self._block(start)
        ahead = self._ahead(self._player, start)
        while tally.done < stop:
            count = min(self._count, self.measured.next_after(tally.done, stop) - tally.done)
            offset = tally.done - start
            window = Window.of(start, offset, count)
            program, call = self._call(self._player, playing, ahead, window)
            began = time.perf_counter()
            playing, record = program(*call)
            self._take_in(record, means, offset, count)
            seconds = time.perf_counter() - began
            self.compile_s += self.measured.take(self.policy, self._keys, playing, tally.done)
            if checkpoints is not None and tally.done < self.rounds and checkpoints.due(self.index):
                checkpoints.save(self.index, self._progress(playing))
            self.advance(count * self.chains)
            wanted = count * CALL_SECONDS / max(seconds, 1e-9)
            self._count = int(np.clip(wanted, 1, 4 * count))
        return playing

    def _progress(self, playing: Playing) -> dict[str, np.ndarray]:
        """All that a later run needs to go on from here."""
        chains = _leaves(playing, self._room(self.tally.done - 1))
        return {**self.tally.save(), **self.measured.save(), **chains}

    def _compiled(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        program, seconds = compiled(function, *args, **options)
        self.compile_s += seconds
        return program

    def _room(self, round_: int) -> int:
        """How many observations the policy has room for while it plays this round."""
        return self.plan.room(round_ // self.plan.block * self.plan.block, self.rounds)

    def _call(
        self, player: Player, playing: Playing, ahead: RoundNoise, window: Window
    ) -> tuple[Any, tuple[Any, ...]]:
        """The player's program, and what to call it with; `playing` is used up by the call."""
        call = (playing, self.policy, self._keys, self._last_block, ahead, window)
        return self._compiled(player, *call, donate=(0,)), call

    def _ahead(self, player: Player, first: int) -> RoundNoise:
        """The random numbers of a block that the player wants drawn before it is played."""
        needs = player.needs
        if player.repeats_draws:
            needs = needs._replace(draw="key")
        if not any(isinstance(amount, int) and amount for amount in needs):
            return RoundNoise(None, None)
        make = NoiseMaker(needs=needs, length=self.plan.block)
        keys = self._keys
        stream = keys.keys if isinstance(keys, LaneKeys) else keys.reshape(1)
        args = (stream, np.int32(first))
        return self._one_chain(self._compiled(make, *args, effort=BRIEFLY)(*args))

    def _block(self, first: int) -> tuple[Block, Float[np.ndarray, "block arms seeds"]]:
        """The environment from round `first` on, and its means for the bookkeeping."""
        args = (self.testbed, *self._settled, np.int32(first))
        make = BlockMaker(length=self.plan.block)
        block = self._compiled(make, *args, effort=BRIEFLY)(*args)
        means = np.asarray(block.means)
        return self._one_chain(block), means

    def _one_chain(self, drawn: Any) -> Any:
        """Without the axis of seeds where there is one chain."""
        return jax.tree.map(lambda x: x[..., 0], drawn) if self.chains == 1 else drawn

    def _take_in(
        self,
        record: Played,
        means: Float[np.ndarray, "block arms seeds"],
        offset: int,
        count: int,
    ) -> None:
        """Add the rounds of one call to the sums."""

        def played(values: Array) -> np.ndarray:
            return np.asarray(values)[offset : offset + count].reshape(count, self.chains)

        arms = played(record.arms)
        health = {name: played(values) for name, values in record.health.items()}
        self.tally.add(_regret(means[offset : offset + count], arms), arms, health)

    def _ess(self, playing: Playing) -> Float[np.ndarray, " chains"]:
        """Effective sample size of repeated draws at the end, of each chain's slowest parameter.

        They come from one more round with many draws, of which nothing else is kept. On a
        processor the program that plays does it, too; another one would take a quarter of the
        compile time. `playing` is used up.
        """
        if not self.plan.repeats_draws:
            return np.full(self.chains, np.nan)
        window = Window.of(self.rounds, 0, 1, REPEATED_DRAWS)
        player = Player(self.plan.spec, self.plan.needs, repeats_draws=True)
        program, call = self._call(player, playing, self._ahead(player, self.rounds), window)
        _, record = program(*call)
        by_chain = np.asarray(record.draws, np.float64).reshape(REPEATED_DRAWS, -1, self.chains)
        sizes = effective_sample_size(by_chain.reshape(REPEATED_DRAWS, -1))
        return sizes.reshape(-1, self.chains).min(axis=0)

    def _restored(self, fresh: Playing, saved: Mapping[str, np.ndarray]) -> Playing:
        """The chains as they were saved; a fresh start shows how they are put together."""
        like = fresh._replace(state=self.policy.reserve(fresh.state, int(saved["room"])))
        leaves, structure = jax.tree.flatten(like)

        def put(leaf: Array, value: np.ndarray) -> Array:
            if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
                return jax.random.wrap_key_data(jnp.asarray(value), impl=jax.random.key_impl(leaf))
            return jnp.asarray(value, leaf.dtype)

        values = [saved[f"leaf.{i}"] for i in range(len(leaves))]
        return strongly_typed(jax.tree.unflatten(structure, map(put, leaves, values)))


def _leaves(playing: Playing, room: int) -> dict[str, np.ndarray]:
    """The chains as named arrays."""

    def plain(leaf: Array) -> np.ndarray:
        is_key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.array(jax.random.key_data(leaf) if is_key else leaf)

    leaves = {f"leaf.{i}": plain(leaf) for i, leaf in enumerate(jax.tree.leaves(playing))}
    return {**leaves, "room": np.asarray(room)}


def _regret(
    means: Float[np.ndarray, "rounds arms seeds"], arms: Int[np.ndarray, "rounds lanes"]
) -> Float[np.ndarray, "rounds lanes"]:
    """max_a mean_a − mean_played, for every round and chain."""
    _, count, seeds = means.shape
    settings = arms.shape[-1] // seeds
    # By position in the flat array: several times faster than indexing along an axis.
    position = np.arange(0, means.size, count * seeds)[:, None] + arms * seeds
    got = means.reshape(-1).take(position + np.tile(np.arange(seeds), settings))
    return np.tile(means.max(axis=1), settings) - got
