"""The engine: a whole bandit run as one compiled program, for all seeds and settings at once.

A run is cut into *blocks* of rounds. For each block the environment (contexts and the rewards of
all arms) is made by one program, outside the agent's; a second program, the same for every block,
plays those rounds for all chains together. Chains are seeds × settings.

All settings of a sweep share their seed's noise; see `feelgood.engine.environment` for the keys.

**Failure is a value.** A chain whose probe stops being finite, or that chooses no arm that there
is, is marked with the round; the others go on.
"""

import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, Key, UInt32

from feelgood.core.arguments import (
    Seeds,
    parse_policies,
    parse_rounds,
    parse_seeds,
    parse_whole,
    require_callable,
    require_testbed,
)
from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.protocols import Policy, Testbed
from feelgood.core.spec import Spec
from feelgood.engine.compiling import BRIEFLY, ONCE, compiled, in_own_precision
from feelgood.engine.environment import (
    Block,
    BlockMaker,
    FirstKeys,
    block_length,
    fold_all,
    seed_array,
    settled,
)
from feelgood.engine.grouping import Group, on_cores, that_fit, usable_cores
from feelgood.engine.lifting import Lifted, has_method, stack_settings
from feelgood.engine.memory import memory_limit, say
from feelgood.engine.metrics import Tally
from feelgood.engine.resuming import OfTheseChains, OfThisLayout
from feelgood.numerics import lanes
from feelgood.numerics.lanes import AnyKey, LaneKeys
from feelgood.stats.effective_sample_size import effective_sample_size
from feelgood.targets import models
from feelgood.targets.history import Stats, on_accelerator

#: Draws with the final data from which the effective sample size is estimated.
REDRAWS = 200
#: A call into the compiled program aims at this long, so that progress and Ctrl-C are prompt.
CALL_SECONDS = 0.4
#: Rounds of the first call, before it is known how long one takes.
FIRST_CALL = 256


class Interrupted(Exception):
    """A stop was asked for in the middle of a run."""


@runtime_checkable
class Checkpoints(Protocol):
    """Where groups of chains leave their progress, so that a later run can go on from it.

    Group i of a run is always the same chains, in the same order. What is loaded must be what was
    saved, bit for bit; then so is the result.
    """

    def load(self, group: int) -> Mapping[str, np.ndarray] | None:
        """What was saved last for this group; None: nothing."""

    def due(self, group: int) -> bool:
        """Whether it is time to save this group."""

    def save(self, group: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep this group's progress instead of what was saved before."""


@runtime_checkable
class Along(Protocol):
    """Measures that are taken along a run. They must leave the run as it is."""

    @property
    def every(self) -> int:
        """Rounds between two measurements; the last round of the run is measured too."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the values that `measure` returns."""

    def measure(
        self, policy: Policy, keys: AnyKey, state: Any, seen: Stats, t: int
    ) -> tuple[Float[np.ndarray, "names chains"], float]:
        """All values of every chain after round `t`, and the seconds that compiling took.

        `seen` are the sums of what every chain has observed.
        """


class Outcome(NamedTuple):
    """What one group of chains did; the leading axes are settings and seeds."""

    grid: Int[np.ndarray, " points"]
    curve: Float[np.ndarray, "settings seeds points"]
    final_regret: Float[np.ndarray, "settings seeds"]
    simple_regret: Float[np.ndarray, "settings seeds"]
    best_arm_rate: Float[np.ndarray, "settings seeds"]
    arm_counts: Int[np.ndarray, "settings seeds arms"]
    diverged_at: Int[np.ndarray, "settings seeds"]
    health: dict[str, Float[np.ndarray, "settings seeds points"]]
    #: Effective sample size of REDRAWS draws at the end, of the slowest parameter; NaN: none drawn.
    ess: Float[np.ndarray, "settings seeds"]
    #: What was measured along the run, by name, and after which rounds; empty: nothing.
    along: dict[str, Float[np.ndarray, "settings seeds moments"]]
    along_rounds: Int[np.ndarray, " moments"]
    compile_s: float
    run_s: float


# ---- the agent ------------------------------------------------------------------------------


class Playing(NamedTuple):
    """Everything that a group of chains carries from round to round."""

    state: Any
    diverged_at: Int[Array, "*lanes"]
    #: What the chains have seen, where something is measured along the run.
    seen: Stats | None = None


class Played(NamedTuple):
    """What a call records of its rounds; rows of rounds not played are 0."""

    arms: Int[Array, "block *lanes"]
    health: dict[str, Float[Array, "block *lanes"]]
    #: The draws of the last round, of agents that repeat theirs.
    draws: Float[Array, "draws parameters *lanes"] | None


class _NoiseMaker(eqx.Module):
    """Draws a policy's noise of many rounds; see `Policy.noise`."""

    spec: Spec = eqx.field(static=True)
    length: int = eqx.field(static=True)

    def __call__(
        self, policy: Policy, keys: Key[Array, "*seeds"], first: Int[Array, ""]
    ) -> Float[Array, "block numbers seeds"]:
        keys = keys.reshape(-1)
        # As `lanes.fold_in(keys, t + 1)` in the round.
        rounds = first + 1 + jnp.arange(self.length)
        each = fold_all(keys, rounds)
        drawn = jax.vmap(jax.vmap(lambda key: policy.noise(key, self.spec)))(each)
        return jnp.moveaxis(drawn, 0, -1)


def _strongly_typed(playing: Playing) -> Playing:
    """The same without weak types: a state that gains or loses one would compile anew."""

    def strong(x: Array) -> Array:
        is_key = jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
        return x if is_key else lax.convert_element_type(x, x.dtype)

    return jax.tree.map(strong, playing)


class _Beginner(eqx.Module):
    """Makes all that a group starts with; a module, so that equal ones share their program."""

    spec: Spec = eqx.field(static=True)
    settings: int = eqx.field(static=True)
    measured: bool = eqx.field(static=True)

    def __call__(
        self, testbed: Testbed, policy: Policy, seeds: UInt32[Array, " seeds"]
    ) -> tuple[tuple[Any, Key[Array, " seeds"]], Playing, AnyKey]:
        first = FirstKeys.of(seeds)
        single = self.settings * len(seeds) == 1
        shape = () if single else (self.settings * len(seeds),)

        def of_chains(keys: Key[Array, " seeds"]) -> AnyKey:
            return keys[0] if single else LaneKeys(keys=keys, settings=self.settings)

        playing = Playing(
            state=policy.init(of_chains(first.agent_start), self.spec, shape),
            diverged_at=jnp.full(shape, -1, jnp.int32),
            seen=Stats.empty(self.spec, shape) if self.measured else None,
        )
        return settled(testbed, first), _strongly_typed(playing), of_chains(first.agent)


def _play(
    spec: Spec,
    playing: Playing,
    policy: Policy,
    keys: AnyKey,
    block: Block,
    noise: Float[Array, "block numbers *seeds"] | None,
    first: Int[Array, ""],
    offset: Int[Array, ""],
    count: Int[Array, ""],
    draws: Int[Array, ""],
) -> tuple[Playing, Played]:
    """Play rounds `offset` to `offset + count` of a block whose first round is `first`.

    An agent that draws parameters acts by the last of `draws` draws: one in a round of the run.
    """
    settings = keys.settings if isinstance(keys, LaneKeys) else 1
    length, arms = block.rewards.shape[:2]
    shape = playing.diverged_at.shape

    # Compiled functions are traced once: here for the shape of a draw, below for the loop.
    @functools.partial(jax.jit, inline=True)
    def redraw(policy: Policy, key: AnyKey, state: Any) -> Any:
        return policy.redraw(key, state)

    drawn = None
    if has_method(policy, "arm_of_draw"):
        one_draw, _ = jax.eval_shape(redraw, policy, keys, playing.state)
        drawn = jnp.zeros((REDRAWS, *one_draw.shape), one_draw.dtype)
    nothing = Played(
        arms=jnp.zeros((length, *shape), jnp.int32),
        health={
            name: jnp.zeros((length, *value.shape), value.dtype)
            for name, value in jax.eval_shape(policy.health, playing.state).items()
        },
        draws=drawn,
    )

    # As `array[i]` and `array.at[i].set(value)`, without the code for negative indices.
    def row(array: Array, i: Array) -> Array:
        return lax.dynamic_index_in_dim(array, i, 0, keepdims=False)

    def put(array: Array, value: Array, i: Array) -> Array:
        return lax.dynamic_update_index_in_dim(array, value.astype(array.dtype), i, 0)

    def one_round(i: Int[Array, ""], carry: tuple[Playing, Played]) -> tuple[Playing, Played]:
        (state, diverged_at, seen), record = carry
        t = first + i
        context = lanes.tile(row(block.contexts, i), settings)
        drawn = record.draws
        if drawn is not None:

            def draw(j: Int[Array, ""], carry: tuple[Any, Array]) -> tuple[Any, Array]:
                theta, state = redraw(policy, lanes.fold_in(keys, t + 1 + j), carry[0])
                return state, put(carry[1], theta, j)

            state, drawn = lax.fori_loop(0, draws, draw, (state, drawn))
            arm = policy.arm_of_draw(state, context)
        elif noise is None:
            arm, state = policy.act(lanes.fold_in(keys, t + 1), state, context)
        else:
            arm, state = policy.decide(lanes.tile(row(noise, i), settings), state, context)
        lost = (arm < 0) | (arm >= arms)
        arm = jnp.where(lost, 0, arm)
        reward = lanes.pick(lanes.tile(row(block.rewards, i), settings), lanes.one_hot(arm, arms))
        state = policy.update(state, context, arm, reward)
        if seen is not None:
            seen = seen.add(*models.played(spec, context, arm), reward)
        broken = (lost | ~jnp.isfinite(policy.probe(state))) & (diverged_at < 0)
        record = Played(
            arms=put(record.arms, arm, i),
            health={
                name: put(record.health[name], value, i)
                for name, value in policy.health(state).items()
            },
            draws=drawn,
        )
        return Playing(state, jnp.where(broken, t + 1, diverged_at), seen), record

    playing, record = lax.fori_loop(offset, offset + count, one_round, (playing, nothing))
    return _strongly_typed(playing), record


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


# ---- the run --------------------------------------------------------------------------------


class _Measured:
    """What is measured along the run of one group of chains."""

    def __init__(self, along: Along | None, rounds: int, chains: int) -> None:
        self._along = along
        self.names = () if along is None else along.names
        moments = [] if along is None else [*range(along.every, rounds, along.every), rounds]
        self.rounds = np.array(moments, np.int64)
        self.values = np.full((len(self.names), chains, len(moments)), np.nan)

    def next_after(self, done: int, stop: int) -> int:
        """The round of the next measurement, or `stop` if that comes first."""
        later = self.rounds[self.rounds > done]
        return min(stop, int(later[0])) if len(later) else stop

    def take(self, policy: Policy, keys: AnyKey, playing: Playing, done: int) -> float:
        """Measure, if this round is to be measured; returns the seconds that compiling took."""
        (now,) = np.nonzero(self.rounds == done)
        if self._along is None or playing.seen is None or not len(now):
            return 0.0
        state, seen = playing.state, playing.seen
        values, seconds = self._along.measure(policy, keys, state, seen, done)
        self.values[:, :, now[0]] = values
        return seconds

    def save(self) -> dict[str, np.ndarray]:
        """What was measured so far, as a named array."""
        return {} if self._along is None else {"along": self.values}

    def load(self, saved: Mapping[str, np.ndarray]) -> None:
        """Go on from what `save` returned."""
        if self._along is not None:
            self.values = np.array(saved["along"])


class _Finished(NamedTuple):
    """What a group of chains leaves behind."""

    tally: Tally
    measured: _Measured
    diverged_at: Int[np.ndarray, " chains"]
    ess: Float[np.ndarray, " chains"]
    compile_s: float


class _GroupRun:
    """One group of chains, from the first round to the last."""

    def __init__(
        self, testbed: Testbed, policy: Policy, seeds: Sequence[int], settings: int, rounds: int
    ) -> None:
        self.testbed, self.policy, self.rounds = testbed, policy, rounds
        self.settings, self.seeds = settings, seed_array(seeds)
        self.chains = settings * len(seeds)
        self.length = block_length(testbed, len(seeds), rounds)
        segment = policy.segment_rounds(rounds, self.chains)
        if segment is not None:
            self.length = min(self.length, segment)
        #: Without segments the policy gets all its room at once, and one program serves the run.
        self.room_at_once = segment is None
        self.compile_s = 0.0
        #: The testbed's states and keys, once the run has begun.
        self._settled: tuple[Any, ...] = ()

    def _compiled(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        program, seconds = compiled(function, *args, **options)
        self.compile_s += seconds
        return program

    def _noise(self, keys: AnyKey, first: np.int32) -> Float[Array, "block numbers *seeds"] | None:
        """The agent's noise of a block, where it can be drawn ahead."""
        if not has_method(self.policy, "noise"):
            return None
        make = _NoiseMaker(spec=self.testbed.spec, length=self.length)
        args = (self.policy, keys.keys if isinstance(keys, LaneKeys) else keys, first)
        return self._one_chain(self._compiled(make, *args, effort=BRIEFLY)(*args))

    def _ess(self, playing: Playing, keys: AnyKey, block: Block) -> Float[np.ndarray, " chains"]:
        """Effective sample size of repeated draws at the end, of each chain's slowest parameter.

        One more round with many draws, of which nothing else is kept: the program that plays has
        all it takes, and another one for this would take a quarter of the compile time. `playing`
        is used up.
        """
        if not has_method(self.policy, "arm_of_draw"):
            return np.full(self.chains, np.nan)
        call = (self.testbed.spec, playing, self.policy, keys, block, None, np.int32(self.rounds))
        window = (np.int32(0), np.int32(1), np.int32(REDRAWS))
        _, record = self._compiled(_play, *call, *window, donate=(1,))(*call, *window)
        assert record.draws is not None
        by_chain = np.asarray(record.draws, np.float64).reshape(REDRAWS, -1, self.chains)
        sizes = effective_sample_size(by_chain.reshape(REDRAWS, -1))
        return sizes.reshape(-1, self.chains).min(axis=0)

    def run(
        self,
        advance: Callable[[int], None],
        checkpoints: Checkpoints | None,
        index: int,
        along: Along | None,
    ) -> "_Finished":
        """Play all rounds; `advance(n)` is called after every n chain-rounds and may raise.

        `index` is this group's place among the groups of the run, under which it is saved.
        """
        begin = _Beginner(self.testbed.spec, self.settings, measured=along is not None)
        args = (self.testbed, self.policy, self.seeds)
        self._settled, playing, keys = self._compiled(begin, *args, effort=ONCE)(*args)
        names = tuple(jax.eval_shape(self.policy.health, playing.state))
        tally = Tally(self.rounds, self.chains, self.testbed.spec.arms, names)
        measured = _Measured(along, self.rounds, self.chains)
        if checkpoints is not None:
            checkpoints = OfThisLayout(checkpoints, playing, tally.save(), measured.save())
        saved = checkpoints.load(index) if checkpoints is not None else None
        if saved is not None:
            playing = self._restored(playing, saved)
            tally.load(saved)
            measured.load(saved)
            advance(tally.done * self.chains)
        count = FIRST_CALL
        while tally.done < self.rounds:
            start = tally.done // self.length * self.length
            stop = min(start + self.length, self.rounds)
            room = self._room(start)
            playing = playing._replace(state=self.policy.reserve(playing.state, room))
            first = np.int32(start)
            block, means = self._block(first)
            noise = self._noise(keys, first)
            while tally.done < stop:
                count = min(count, measured.next_after(tally.done, stop) - tally.done)
                call = (self.testbed.spec, playing, self.policy, keys, block, noise, first)
                window = (np.int32(tally.done - start), np.int32(count), np.int32(1))
                program = self._compiled(_play, *call, *window, donate=(1,))
                began = time.perf_counter()
                playing, record = program(*call, *window)
                self._take_in(tally, record, means, tally.done - start, count)
                seconds = time.perf_counter() - began
                self.compile_s += measured.take(self.policy, keys, playing, tally.done)
                if checkpoints is not None and tally.done < self.rounds and checkpoints.due(index):
                    so_far = {**tally.save(), **measured.save(), **_leaves(playing, room)}
                    checkpoints.save(index, so_far)
                advance(count * self.chains)
                count = int(np.clip(count * CALL_SECONDS / max(seconds, 1e-9), 1, 4 * count))
        diverged_at = np.array(playing.diverged_at).reshape(self.chains)
        if saved is not None and "ess" in saved:
            ess = np.array(saved["ess"])
        else:
            last = _leaves(playing, self._room(self.rounds - 1)) if checkpoints is not None else {}
            ess = self._ess(playing, keys, block)
            if checkpoints is not None:
                checkpoints.save(index, {**tally.save(), **measured.save(), **last, "ess": ess})
        return _Finished(tally, measured, diverged_at, ess, self.compile_s)

    def _room(self, round_: int) -> int:
        """How many observations the policy has room for while it plays this round."""
        return self.rounds if self.room_at_once else (round_ // self.length + 1) * self.length

    def _restored(self, fresh: Playing, saved: Mapping[str, np.ndarray]) -> Playing:
        """The chains as they were saved; a fresh start shows how they are put together."""
        like = fresh._replace(state=self.policy.reserve(fresh.state, int(saved["room"])))
        leaves, structure = jax.tree.flatten(like)

        def put(leaf: Array, value: np.ndarray) -> Array:
            if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
                return jax.random.wrap_key_data(jnp.asarray(value), impl=jax.random.key_impl(leaf))
            return jnp.asarray(value, leaf.dtype)

        values = [saved[f"leaf.{i}"] for i in range(len(leaves))]
        return _strongly_typed(jax.tree.unflatten(structure, map(put, leaves, values)))

    def _block(self, first: np.int32) -> tuple[Block, Float[np.ndarray, "block arms seeds"]]:
        """The environment from round `first` on, and its means for the bookkeeping."""
        args = (self.testbed, *self._settled, first)
        block = self._compiled(BlockMaker(length=self.length), *args, effort=BRIEFLY)(*args)
        means = np.asarray(block.means)
        return self._one_chain(block), means

    def _one_chain(self, drawn: Any) -> Any:
        """Without the axis of seeds where there is one chain."""
        return jax.tree.map(lambda x: x[..., 0], drawn) if self.chains == 1 else drawn

    def _take_in(
        self,
        tally: Tally,
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
        tally.add(_regret(means[offset : offset + count], arms), arms, health)


def _leaves(playing: Playing, room: int) -> dict[str, np.ndarray]:
    """The chains as named arrays."""

    def plain(leaf: Array) -> np.ndarray:
        is_key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.array(jax.random.key_data(leaf) if is_key else leaf)

    leaves = {f"leaf.{i}": plain(leaf) for i, leaf in enumerate(jax.tree.leaves(playing))}
    return {**leaves, "room": np.asarray(room)}


@in_own_precision
def simulate(
    testbed: Testbed | Any,
    policies: Policy | Sequence[Policy] | Any,
    *,
    rounds: int | Any,
    seeds: Seeds,
    progress: Callable[[int], None] | Any | None = None,
    workers: int | Any | None = None,
    checkpoints: Checkpoints | Any | None = None,
    notify: Callable[[str], None] | Any = say,
    along: Along | Any | None = None,
) -> Outcome:
    """Run one agent, with one or many settings, over all `seeds`.

    **Arguments:**

    - `testbed`, `policies`: the problem, and the agent once a setting; all settings must have
      the same structure (they differ in array leaves only).
    - `rounds`, `seeds`: how long, and which seeds.
    - `progress`: called with the number of chain-rounds just played; raising stops the run.
    - `workers`: threads on CPU, each with its own chains; by default one a usable core.
    - `checkpoints`: where to leave progress, and to look for it first. How chains are grouped
      depends on `workers`, and on an accelerator on its memory: give the same to go on.
    - `notify`: called with a sentence when the chains do not fit into memory together.
    - `along`: what to measure every so many rounds, such as `feelgood.posterior.posterior_watch`;
      the run itself is the same bits with and without.
    """
    require_testbed(testbed)
    settings = parse_policies(policies)
    rounds, seeds = parse_rounds(rounds), parse_seeds(seeds)
    if workers is not None:
        workers = parse_whole("workers", workers, 1, 10_000)
    for name, function in (("progress", progress), ("notify", notify)):
        require_callable(name, function)
    for name, given, kind in (("checkpoints", checkpoints, Checkpoints), ("along", along, Along)):
        if given is not None and not isinstance(given, kind):
            raise FeelgoodError(
                f"{name} = {shown(given)} is not allowed: use a feelgood {kind.__name__}."
            )
    stacked, swept = stack_settings(settings)
    chain_bytes, limit = settings[0].memory(testbed.spec, rounds), memory_limit()
    if on_accelerator():
        workers = 1
        groups = that_fit(chain_bytes, limit, len(settings), len(seeds), notify)
    else:
        workers = usable_cores() if workers is None else workers
        size = (len(settings), len(seeds))
        groups, workers = on_cores(
            stacked, testbed.spec, chain_bytes, limit, *size, workers, notify
        )

    if checkpoints is not None:
        checkpoints = OfTheseChains(checkpoints, groups)
    stopping = threading.Event()
    lock = threading.Lock()

    def advance(chain_rounds: int) -> None:
        if stopping.is_set():
            raise Interrupted
        if progress is not None:
            with lock:
                progress(chain_rounds)

    @in_own_precision
    def run_group(index: int, group: Group) -> _Finished:
        chosen = np.asarray(group.settings)
        repeats = len(group.seeds)

        single = len(chosen) * repeats == 1

        def for_group(leaf: Array, several: bool) -> Array:
            if not several:
                return leaf
            if single:
                return leaf[group.settings[0]]
            return jnp.moveaxis(jnp.repeat(leaf[chosen], repeats, axis=0), 0, -1)

        leaves, structure = jax.tree.flatten(stacked)
        policy = jax.tree.unflatten(structure, map(for_group, leaves, swept))
        if not policy.laned and not single:
            policy = Lifted(one=policy, swept=swept)
        run = _GroupRun(testbed, policy, [seeds[i] for i in group.seeds], len(chosen), rounds)
        return run.run(advance, checkpoints, index, along)

    began = time.perf_counter()
    with ThreadPoolExecutor(max_workers=max(1, workers)) as pool:
        futures = [pool.submit(run_group, i, group) for i, group in enumerate(groups)]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            for failed in (f for f in futures if f.done() and f.exception() is not None):
                failed.result()
            finished = [future.result() for future in futures]
        except BaseException:
            stopping.set()
            for future in futures:
                future.cancel()
            raise
    elapsed = time.perf_counter() - began
    compile_s = sum(group.compile_s for group in finished)
    return _gather(groups, finished, len(settings), len(seeds), compile_s, elapsed - compile_s)


def _gather(
    groups: list[Group],
    finished: list[_Finished],
    settings: int,
    seeds: int,
    compile_s: float,
    run_s: float,
) -> Outcome:
    """Put the groups' chains back into their places."""
    first = finished[0].tally
    points, moments = len(first.grid), finished[0].measured.rounds
    size = (settings, seeds)
    out = Outcome(
        grid=first.grid,
        curve=np.empty((*size, points)),
        final_regret=np.empty(size),
        simple_regret=np.empty(size),
        best_arm_rate=np.empty(size),
        arm_counts=np.empty((*size, first.arms), np.int64),
        diverged_at=np.empty(size, np.int64),
        health={name: np.empty((*size, points)) for name in first.health_names},
        ess=np.empty(size),
        along={name: np.empty((*size, len(moments))) for name in finished[0].measured.names},
        along_rounds=moments,
        compile_s=compile_s,
        run_s=max(run_s, 0.0),
    )
    for group, (tally, measured, diverged_at, ess, _) in zip(groups, finished, strict=True):
        health = tally.health_means()
        chain = 0
        for g in group.settings:
            for n in group.seeds:
                out.curve[g, n] = tally.curve[chain]
                out.final_regret[g, n] = tally.total[chain]
                out.simple_regret[g, n] = tally.late[chain]
                out.best_arm_rate[g, n] = tally.best[chain] / tally.rounds
                out.arm_counts[g, n] = tally.counts[chain]
                out.diverged_at[g, n] = diverged_at[chain]
                out.ess[g, n] = ess[chain]
                for name, values in health.items():
                    out.health[name][g, n] = values[chain]
                for name, values in zip(measured.names, measured.values, strict=True):
                    out.along[name][g, n] = values[chain]
                chain += 1
    # A diverged chain has no regret to report from the round on in which it diverged.
    for g, n in zip(*np.nonzero(out.diverged_at >= 0), strict=True):
        late = out.grid >= out.diverged_at[g, n]
        out.curve[g, n, late] = np.nan
        out.final_regret[g, n] = out.simple_regret[g, n] = out.best_arm_rate[g, n] = np.nan
    return out
