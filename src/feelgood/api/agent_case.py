"""An agent under test: a few rounds on small problems, played without the engine."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from feelgood.core.protocols import Policy, Testbed
from feelgood.core.registry import Entry
from feelgood.core.spec import Spec
from feelgood.engine.environment import AGENT, Block, environment, seed_array, seed_keys
from feelgood.engine.lifting import Lifted
from feelgood.numerics import lanes
from feelgood.numerics.lanes import LaneKeys
from feelgood.testbeds import Linear, Logistic

#: One context for all arms, and one context per arm: the two kinds that there are.
PROBLEMS: Mapping[str, Testbed] = {
    "disjoint": Linear(parameters=6, arms=3),
    "shared": Logistic(dim=3, arms=4),
}
CHECKED_ROUNDS, CHECKED_SEEDS = 12, (0, 1, 2)


class PlayedRounds(NamedTuple):
    """Some rounds, played without the engine; lanes are the last axis, or there are none."""

    arms: np.ndarray
    state: Any
    probe: jax.Array
    health: dict[str, jax.Array]
    draw: Any


@dataclasses.dataclass(frozen=True, eq=False)
class AgentCase:
    """An agent under test: what it has played is kept, so that checks share their programs."""

    entry: Entry[Policy]
    problems: Mapping[str, Testbed] = dataclasses.field(default_factory=lambda: PROBLEMS)

    @functools.cached_property
    def policy(self) -> Policy:
        """The agent at its defaults."""
        return self.entry.build()

    def lifted(self, lane_count: int) -> Policy:
        """The agent for so many lanes, none for one live decision."""
        policy = self.policy
        if lane_count and not policy.laned:
            return Lifted(one=policy, swept=(False,) * len(jax.tree.leaves(policy)))
        return policy

    @functools.cached_property
    def _blocks(self) -> dict[Any, Block]:
        return {}

    @functools.cached_property
    def _players(self) -> dict[Any, Any]:
        return {}

    def block(self, problem: str, seeds: tuple[int, ...]) -> Block:
        """The rounds that are played."""
        if (problem, seeds) not in self._blocks:
            self._blocks[problem, seeds] = _block(self.problems[problem], seeds)
        return self._blocks[problem, seeds]

    def player(self, problem: str, lane_count: int) -> Any:
        """A compiled function from (policy, seeds, contexts, rewards) to what was played."""
        if (problem, lane_count) not in self._players:
            play = functools.partial(play_rounds, self.problems[problem].spec, lane_count)
            self._players[problem, lane_count] = jax.jit(play, compiler_options=quick_options())
        return self._players[problem, lane_count]

    def inputs(self, problem: str, seeds: tuple[int, ...], live: bool) -> tuple[Any, ...]:
        """What a player takes."""
        block = self.block(problem, seeds)
        contexts, rewards = block.contexts, block.rewards
        if live:
            (contexts, rewards) = (contexts[..., 0], rewards[..., 0])
        policy = self.lifted(0 if live else len(seeds))
        return policy, seed_keys(seed_array(seeds), AGENT), contexts, rewards

    def played(self, problem: str, seeds: tuple[int, ...], live: bool = False) -> PlayedRounds:
        """Some rounds of these seeds; a `live` agent plays the first of them, without lanes."""
        play = self.player(problem, 0 if live else len(seeds))
        arms, *rest = play(*self.inputs(problem, seeds, live))
        return PlayedRounds(np.asarray(arms), *rest)


def quick_options() -> dict[str, bool | int | str] | None:
    """Less optimisation: these few rounds are compiled for longer than they run."""
    return {"xla_backend_optimization_level": 1} if jax.default_backend() == "cpu" else None


@functools.lru_cache(maxsize=64)
def _kept_block(name: str, seeds: tuple[int, ...]) -> Block:
    return environment(PROBLEMS[name], seeds, CHECKED_ROUNDS)


def _block(testbed: Testbed, seeds: tuple[int, ...]) -> Block:
    """The first rounds of a testbed; those of our own problems are made once."""
    for name, ours in PROBLEMS.items():
        if testbed is ours:
            return _kept_block(name, seeds)
    return environment(testbed, seeds, CHECKED_ROUNDS)


def play_rounds(
    spec: Spec, lane_count: int, policy: Policy, keys: Any, contexts: Any, rewards: Any
) -> Any:
    """Play all rounds."""
    shape = (lane_count,) if lane_count else ()
    used = LaneKeys(keys=keys, settings=1) if shape else keys[0]

    def one_round(state: Any, seen: Any) -> Any:
        t, context, reward = seen
        arm, state = policy.act(lanes.fold_in(used, t + 1), state, context)
        got = lanes.pick(reward, lanes.one_hot(arm, spec.arms))
        return policy.update(state, context, arm, got), arm

    state = policy.reserve(policy.init(lanes.fold_in(used, 0), spec, shape), CHECKED_ROUNDS)
    state, arms = jax.lax.scan(one_round, state, (jnp.arange(CHECKED_ROUNDS), contexts, rewards))
    draw = policy.redraw(lanes.fold_in(used, CHECKED_ROUNDS + 1), state)
    return arms, state, policy.probe(state), policy.health(state), draw
