"""An agent under test: a few rounds on small problems, played without the engine."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from feelgood.core.policy import Policy, Report, refusal
from feelgood.core.registry import Entry
from feelgood.core.spec import Layout, Spec
from feelgood.core.testbed import Testbed
from feelgood.engine.environment import Block, environment
from feelgood.engine.lifting import for_lanes
from feelgood.engine.plan import laid_out
from feelgood.numerics import lanes
from feelgood.numerics.keys import AGENT, LaneKeys, round_key, seed_array, seed_keys, start_key
from feelgood.numerics.noise import round_noise
from feelgood.testbeds import Linear, Logistic
from feelgood.testbeds.linear_trap import LinearTrap
from feelgood.testbeds.trap import Trap

#: One context for all arms, and one context per arm: the two kinds that there are. Then the kinds
#: of knowledge, for agents that refuse both of those.
PROBLEMS: Mapping[str, Testbed] = {
    "disjoint": Linear(parameters=6, arms=3),
    "shared": Logistic(dim=3, arms=4),
    "finite class": Trap(mass=0.4, gap=0.5),
    "normal arms": LinearTrap(coordinates=2, copies=2),
}
PLAIN = ("disjoint", "shared")
CHECKED_ROUNDS, CHECKED_SEEDS = 12, (0, 1, 2)


def problems_for(policy: Policy) -> tuple[str, ...]:
    """The problems that an agent is checked on: the plain ones, or else those with knowledge."""
    plays = [name for name, testbed in PROBLEMS.items() if _plays(policy, testbed)]
    return tuple(name for name in plays if name in PLAIN) or tuple(plays) or PLAIN


def _plays(policy: Policy, testbed: Testbed) -> bool:
    try:
        return refusal(policy, testbed.spec) is None
    except Exception:  # the checks say what is wrong with it
        return True


class PlayedRounds(NamedTuple):
    """Some rounds, played without the engine; lanes are the last axis, or there are none."""

    arms: np.ndarray
    state: Any
    report: Report


@dataclasses.dataclass(frozen=True, eq=False)
class AgentCase:
    """An agent under test: what it has played is kept, so that checks share their programs."""

    entry: Entry[Policy]
    problems: Mapping[str, Testbed] = dataclasses.field(default_factory=lambda: PROBLEMS)

    @functools.cached_property
    def policy(self) -> Policy:
        """The agent at its defaults."""
        return self.entry.build()

    def lifted(self, problem: str, lane_count: int) -> Policy:
        """The agent for so many lanes, none for one live decision."""
        spec = with_lanes(self.problems[problem].spec, lane_count)
        return for_lanes(self.policy, spec, self.policy.hints(spec).layout)

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
        policy = self.lifted(problem, 0 if live else len(seeds))
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


def with_lanes(spec: Spec, lane_count: int) -> Spec:
    """The same problem for so many chains."""
    return laid_out(spec, Layout(chains=lane_count))


def play_rounds(
    spec: Spec, lane_count: int, policy: Policy, keys: Any, contexts: Any, rewards: Any
) -> Any:
    """Play all rounds."""
    spec = with_lanes(spec, lane_count)
    used = LaneKeys(keys=keys, settings=1) if lane_count else keys[0]
    needs = policy.needs(spec)

    def one_round(state: Any, seen: Any) -> Any:
        t, context, reward = seen
        noise = round_noise(round_key(used, t), needs)
        state = policy.draw(noise.draw, state)
        arm = policy.choose(noise.choose, state, context)
        got = lanes.pick(reward, lanes.one_hot(arm, spec.arms))
        return policy.update(state, context, arm, got), arm

    state = policy.reserve(policy.init(start_key(used), spec), CHECKED_ROUNDS)
    state, arms = jax.lax.scan(one_round, state, (jnp.arange(CHECKED_ROUNDS), contexts, rewards))
    return arms, state, policy.report(state)
