"""The engine: a whole bandit run as one compiled program, for all seeds and settings at once.

A run is cut into *blocks* of rounds. For each block the environment (contexts and the rewards of
all arms) is made by one program, outside the agent's. A second program, the same for every block,
plays those rounds for all chains together. Chains are seeds × settings. `engine.plan` decides how,
`engine.group` carries it out, `engine.loop` is what is compiled.

All settings of a sweep share their seed's noise; see `numerics.keys`.

**Failure is a value.** A chain that reports itself as not finite, or that chooses no arm that there
is, is marked with the round; the others go on.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

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
from feelgood.core.notices import print_notice
from feelgood.core.policy import Policy
from feelgood.core.testbed import Testbed
from feelgood.engine import schema
from feelgood.engine.compiling import in_own_precision
from feelgood.engine.group import GroupOutcome, GroupRun
from feelgood.engine.lifting import for_lanes, stack_settings
from feelgood.engine.plan import Group, Plan, make_plan
from feelgood.engine.resuming import Checkpoints, CheckpointsOfChains
from feelgood.engine.schema import Axes
from feelgood.engine.threads import in_threads
from feelgood.engine.watching import Watch


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
    #: Effective sample size of repeated draws at the end, of the slowest parameter; NaN: none.
    ess: Float[np.ndarray, "settings seeds"]
    #: What was measured along the run, by name, and after which rounds; empty: nothing.
    along: dict[str, Float[np.ndarray, "settings seeds moments"]]
    along_rounds: Int[np.ndarray, " moments"]
    compile_s: float
    run_s: float
    #: Numbers of `schema.QUANTITIES` that have no field here, by name.
    extra: dict[str, Any]

    def number(self, name: str) -> Any:
        """The values of a number: an array, or a dictionary of arrays."""
        return getattr(self, name) if name in self._fields else self.extra[name]


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
    notify: Callable[[str], None] | Any = print_notice,
    along: Watch | Any | None = None,
) -> Outcome:
    """Run one agent, with one or many settings, over all `seeds`.

    **Arguments:**

    - `testbed`, `policies`: the problem, and the agent once per setting; all settings must have
      the same structure (they differ in array leaves only).
    - `rounds`, `seeds`: how long, and which seeds.
    - `progress`: called with the number of chain-rounds just played; raising stops the run.
    - `workers`: threads on CPU, each with its own chains; by default one per usable core.
    - `checkpoints`: where to leave progress, and to look for it first. How chains are grouped
      depends on `workers`, and on an accelerator on its memory: give the same to go on.
    - `notify`: called with a sentence when the chains do not fit into memory together.
    - `along`: what to measure every so many rounds, such as `feelgood.posterior.posterior_watch`;
      the run itself is the same bits with and without.

    **Example:**

    >>> from feelgood import AGENTS, TESTBEDS, simulate
    >>> agents = [AGENTS["linucb"].build({"alpha": a}) for a in (0.1, 1.0)]
    >>> outcome = simulate(TESTBEDS["linear-20"].build(), agents, rounds=50, seeds=3)
    >>> outcome.final_regret.shape
    (2, 3)
    """
    require_testbed(testbed)
    settings = parse_policies(policies)
    rounds, seeds = parse_rounds(rounds), parse_seeds(seeds)
    if workers is not None:
        workers = parse_whole("workers", workers, 1, 10_000)
    require_callable("progress", progress)
    require_callable("notify", notify)
    _require_kind("checkpoints", checkpoints, Checkpoints)
    _require_kind("along", along, Watch)
    plan = make_plan(
        settings[0],
        testbed,
        settings=len(settings),
        seeds=len(seeds),
        rounds=rounds,
        workers=workers,
        notify=notify,
    )
    began = time.perf_counter()
    job = _Job(plan, testbed, settings, seeds, rounds, checkpoints, along)
    finished = in_threads(job.run_group, len(plan.groups), plan.workers, progress)
    elapsed = time.perf_counter() - began
    compile_s = sum(group.compile_s for group in finished)
    size = (len(settings), len(seeds))
    return _gather(plan.groups, finished, *size, compile_s, elapsed - compile_s)


class _Job:
    """All groups of a run, each to be played by one thread."""

    def __init__(
        self,
        plan: Plan,
        testbed: Testbed,
        settings: Sequence[Policy],
        seeds: Sequence[int],
        rounds: int,
        checkpoints: Checkpoints | None,
        watch: Watch | None,
    ) -> None:
        self.plan, self.testbed, self.seeds, self.rounds = plan, testbed, seeds, rounds
        self.stacked, self.swept = stack_settings(settings)
        self.watch = watch
        self.checkpoints = (
            None if checkpoints is None else CheckpointsOfChains(checkpoints, plan.groups)
        )

    def run_group(self, index: int, advance: Callable[[int], None]) -> GroupOutcome:
        group = self.plan.groups[index]
        policy = _of_group(self.stacked, self.swept, self.plan, group)
        seeds = [self.seeds[i] for i in group.seeds]
        run = GroupRun(
            *(self.plan, self.testbed, policy, seeds, self.rounds),
            index=index,
            advance=advance,
            checkpoints=self.checkpoints,
            watch=self.watch,
        )
        return run.run()


def _require_kind(name: str, given: Any, kind: type) -> None:
    if given is not None and not isinstance(given, kind):
        raise FeelgoodError(
            f"{name} = {shown(given)} is not allowed: use a feelgood {kind.__name__}."
        )


def _of_group(stacked: Policy, swept: Sequence[bool], plan: Plan, group: Group) -> Policy:
    """The policy with the settings of a group, one per lane where they differ."""

    def for_group(leaf: Array, several: bool) -> Array:
        if not several:
            return leaf
        if not plan.spec.lanes:
            return leaf[group.settings[0]]
        chosen = leaf[np.asarray(group.settings)]
        return jnp.moveaxis(jnp.repeat(chosen, len(group.seeds), axis=0), 0, -1)

    leaves, structure = jax.tree.flatten(stacked)
    policy = jax.tree.unflatten(structure, map(for_group, leaves, swept))
    return for_lanes(policy, plan.spec, plan.layout_hint, swept)


def _gather(
    groups: Sequence[Group],
    finished: list[GroupOutcome],
    settings: int,
    seeds: int,
    compile_s: float,
    run_s: float,
) -> Outcome:
    """Put the groups' chains back into their places."""
    size = (settings, seeds)
    found = [
        one.tally.numbers() | {"diverged_at": one.diverged_at, "ess": one.ess} for one in finished
    ]
    numbers = {
        q.name: _placed(groups, [own[q.name] for own in found], size, whole=q.whole)
        for q in schema.QUANTITIES
    }
    watched = [dict(zip(f.measured.names, f.measured.values, strict=True)) for f in finished]
    grid = finished[0].tally.grid
    _forget_after_divergence(numbers, grid)
    return Outcome(
        grid=grid,
        **{name: numbers.pop(name) for name in list(numbers) if name in Outcome._fields},
        along=_placed(groups, watched, size),
        along_rounds=finished[0].measured.rounds,
        compile_s=compile_s,
        run_s=max(run_s, 0.0),
        extra=numbers,
    )


def _placed(
    groups: Sequence[Group], parts: Sequence[Any], size: tuple[int, int], whole: bool = False
) -> Any:
    """Arrays with one entry per chain of a group, or dictionaries of such, by setting and seed."""
    if isinstance(parts[0], dict):
        names = parts[0]
        return {name: _placed(groups, [own[name] for own in parts], size) for name in names}
    shape = np.shape(parts[0])[1:]
    out = np.empty((*size, *shape), np.int64 if whole else np.float64)
    for group, values in zip(groups, parts, strict=True):
        own = (len(group.settings), len(group.seeds))
        chains = np.asarray(values)[: own[0] * own[1]]
        out[np.ix_(group.settings, group.seeds)] = chains.reshape(*own, *shape)
    return out


def _forget_after_divergence(numbers: dict[str, Any], grid: Int[np.ndarray, " points"]) -> None:
    """A diverged chain has no numbers to report from the round on in which it diverged."""
    diverged_at = numbers["diverged_at"]
    late = (diverged_at[..., None] >= 0) & (grid >= diverged_at[..., None])
    for quantity in schema.QUANTITIES:
        if quantity.axes is Axes.POINT:
            numbers[quantity.name][late] = np.nan
        elif quantity.axes is Axes.SEED and not quantity.whole and quantity.of_whole_run:
            numbers[quantity.name][diverged_at >= 0] = np.nan
