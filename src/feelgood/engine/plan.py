"""How a run is carried out: made once, from the agent's hints, the device and the chains.

All that makes a run fast is decided here. Which chains share a program, and how many threads play
them? How many rounds has a block? When does a history get more room, and what is drawn ahead?
Agents, samplers and targets are told by the `Layout` in their `Spec` and never ask for the device.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
from jaxtyping import Array

from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import Needs, Policy, require_playable
from feelgood.core.spec import Layout, Spec
from feelgood.core.testbed import Testbed
from feelgood.engine import device
from feelgood.engine.device import GIB
from feelgood.engine.environment import block_length
from feelgood.numerics import generator
from feelgood.numerics.keys import AnyKey, LaneKeys

#: Where passes read a whole store, its room grows in so many steps, each of which is compiled.
GROWTH_STEPS = 10
#: A store that grows there is there twice while it does, and is transposed for its passes. Chains
#: that need this many times as much have failed to fit otherwise (`fglmcts` on logistic-20).
GROWING_COPIES = 2
#: Inner steps of a network that an accelerator launches at a time.
ACCELERATOR_UNROLL = 5


class Group(NamedTuple):
    """Chains that share one program call: some settings × some seeds, perhaps padded."""

    settings: tuple[int, ...]
    seeds: tuple[int, ...]

    @property
    def chains(self) -> int:
        """How many there are."""
        return len(self.settings) * len(self.seeds)


@dataclasses.dataclass(frozen=True)
class Plan:
    """Everything about a run that depends on the device or on the agent's hints."""

    #: Which chains share a program; all groups have one shape.
    groups: tuple[Group, ...]
    #: Threads that play groups at the same time.
    workers: int
    #: The problem as the agent sees it in each group: with the layout of its chains.
    spec: Spec
    #: Rounds per block.
    block: int
    #: Whether the agent gets room for all rounds at once, or for one more block at a time.
    room_at_once: bool
    #: The random numbers of a round, and whether its draws are repeated at the end of the run,
    #: for their effective sample size.
    needs: Needs
    repeats_draws: bool
    #: Whether the program that plays repeats draws, too. Otherwise there is another one for them,
    #: and rounds have no loop whose length is not known: an accelerator waits for the host at each.
    one_program: bool
    #: `Hints.layout` of the agent.
    layout_hint: str

    def room(self, start: int, rounds: int) -> int:
        """Observations that there must be room for in the block that begins at `start`."""
        return rounds if self.room_at_once else start + self.block


def layout_of(chains: int, settings: int) -> Layout:
    """The layout of so many chains in one program on this device; a single one has no lanes."""
    accelerator = device.on_accelerator()
    return Layout(
        chains=0 if chains == 1 else chains,
        settings=settings,
        reads_all=accelerator,
        unroll=ACCELERATOR_UNROLL if accelerator else 1,
        steps="apart" if device.has_programs() else "together",
    )


def laid_out(spec: Spec, layout: Layout) -> Spec:
    """The same problem for chains in this layout."""
    return dataclasses.replace(spec, layout=layout)


def tell_missing_programs(
    policy: Policy, spec: Spec, layout: Layout, notify: Callable[[str], None]
) -> None:
    """Tell it where chains would have programs of their own with another version of JAX."""
    apart = dataclasses.replace(layout, steps="apart")
    if not policy.hints(laid_out(spec, apart)).grows:
        notify(
            f"JAX {jax.__version__} has no Triton in Pallas, so that all chains are stepped "
            "together, which takes several times as long: use JAX 0.10 or 0.11."
        )


def chain_bytes(policy: Policy, spec: Spec, rounds: int) -> int:
    """Bytes that one chain needs at most, with its share of what settings of a seed have together.

    Where the agent does not say, it is three times its state with room for all rounds. A round
    holds the old state, the new one, and what it computes on the way.
    """
    hints, layout = policy.hints(spec), spec.layout
    if hints.memory is not None:
        return hints.memory[0] + hints.memory[1] * rounds
    if hints.layout != "lanes":
        spec = laid_out(spec, dataclasses.replace(layout, chains=0, settings=1))

    def last(key: Array) -> object:
        every: AnyKey = key
        if spec.lanes:
            keys = jax.random.split(key, layout.chains // layout.settings)
            every = LaneKeys(keys=keys, settings=layout.settings)
        return policy.reserve(policy.init(every, spec), rounds)

    leaves = jax.tree.leaves(jax.eval_shape(last, generator.key(0)))
    total = sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)
    return 3 * -(-total // max(1, spec.layout.chains))


def draws_parameters(policy: Policy, spec: Spec) -> bool:
    """Whether an agent draws parameters, and shows them."""
    report = jax.eval_shape(lambda key: policy.report(policy.init(key, spec)), generator.key(0))
    return policy.needs(spec).draw != 0 and report.parameters is not None


def make_plan(
    policy: Policy,
    testbed: Testbed,
    *,
    settings: int,
    seeds: int,
    rounds: int,
    workers: int | None,
    notify: Callable[[str], None],
) -> Plan:
    """The plan for `settings` × `seeds` chains of this agent."""
    spec = testbed.spec
    require_playable(policy, spec, type(policy).__name__, testbed.name)
    hints = policy.hints(spec)
    limit = device.memory_limit()
    if device.on_accelerator():
        all_chains = laid_out(spec, layout_of(settings * seeds, settings))
        size = chain_bytes(policy, all_chains, rounds)
        if policy.hints(all_chains).grows:
            size *= GROWING_COPIES
        groups, workers = that_fit(size, limit, settings, seeds, notify), 1
    else:
        size = chain_bytes(policy, spec, rounds)
        wanted = device.usable_cores() if workers is None else workers
        groups, workers = on_cores(hints.company, size, limit, settings, seeds, wanted, notify)
    first = groups[0]
    layout = layout_of(first.chains, len(first.settings))
    block = block_length(testbed, len(first.seeds), rounds)
    grows = layout.reads_all and policy.hints(laid_out(spec, layout)).grows
    if grows and device.on_nvidia() and not device.has_programs():
        tell_missing_programs(policy, spec, layout, notify)
    if grows:
        block = min(block, -(-rounds // GROWTH_STEPS))
    return Plan(
        groups=tuple(groups),
        workers=max(1, workers),
        spec=laid_out(spec, layout),
        block=block,
        room_at_once=not grows,
        needs=policy.needs(spec),
        repeats_draws=draws_parameters(policy, spec) and not hints.exact_draws,
        one_program=not layout.reads_all,
        layout_hint=hints.layout,
    )


# ---- which chains share a program -----------------------------------------------------------


def cut_evenly(count: int, size: int) -> list[tuple[int, ...]]:
    """Indices 0 … count − 1 in parts of exactly `size`; the last repeats its last index."""
    parts = [list(range(i, min(i + size, count))) for i in range(0, count, size)]
    return [tuple(part + [part[-1]] * (size - len(part))) for part in parts]


def chains_that_fit(size: int, wanted: int, limit: int | None) -> int:
    """How many of `wanted` chains of `size` bytes fit at once; an error where not even one does."""
    if size <= 0 or limit is None:
        return wanted
    if size > limit:
        raise FeelgoodError(
            f"one chain of this agent needs about {size / GIB:.1f} GiB and the device has "
            f"{limit / GIB:.1f} GiB for it: use narrower layers, fewer updates, rounds, "
            "arms or features."
        )
    return min(wanted, limit // size)


def on_cores(
    company: Literal["any", "seed", "none"],
    size: int,
    limit: int | None,
    settings: int,
    seeds: int,
    workers: int,
    notify: Callable[[str], None],
) -> tuple[list[Group], int]:
    """The chains in groups for this many threads, and how many of these memory allows.

    Every thread has some chains, and all programs have one shape. No more than fit are played at
    once by all threads together. A program holds chains that are company for each other.
    """
    chains = settings * seeds
    fit = chains_that_fit(size, workers * chains, limit)
    if fit < min(chains, workers if company == "none" else chains):
        notify(
            f"{chains} chains need about {chains * size / GIB:.1f} GiB, more than this "
            f"machine has: no more than {fit} run at once."
        )
    if seeds >= workers:
        g_size, n_size = settings, math.ceil(seeds / workers)
    else:
        g_size, n_size = math.ceil(settings / workers), seeds
    most = 1 if company == "none" else max(1, fit // workers)
    g_size = min(g_size, most)
    n_size = 1 if company == "seed" else max(1, min(n_size, most // g_size))
    groups = [Group(g, n) for g in cut_evenly(settings, g_size) for n in cut_evenly(seeds, n_size)]
    return groups, min(workers, fit)


def that_fit(
    size: int,
    limit: int | None,
    settings: int,
    seeds: int,
    notify: Callable[[str], None],
) -> list[Group]:
    """All chains as one group, or as several of one size where memory is short."""
    fit = chains_that_fit(size, settings * seeds, limit)
    g_size = min(settings, fit)
    n_size = max(1, min(seeds, fit // settings))
    groups = [Group(g, n) for g in cut_evenly(settings, g_size) for n in cut_evenly(seeds, n_size)]
    if len(groups) > 1:
        notify(
            f"{settings * seeds} chains need about {settings * seeds * size / GIB:.1f} GiB, "
            f"more than the device has: running them in {len(groups)} parts of "
            f"{g_size * n_size}, one after the other."
        )
    return groups
