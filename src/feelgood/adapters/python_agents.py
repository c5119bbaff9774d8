"""Agents written in NumPy, PyTorch or anything else: played outside the compiled loop.

Such an agent meets the contexts and the noise that every agent meets on a seed, and is measured by
the same sums. So it can be compared, seed by seed, with the agents of this library. It is called
once per round from Python, which is slower by orders of magnitude.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from feelgood.api.run_result import RunResult
from feelgood.core.arguments import Seeds, parse_rounds, parse_seeds
from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.notices import print_notice
from feelgood.core.spec import Spec
from feelgood.core.testbed import Testbed
from feelgood.engine import schema
from feelgood.engine.building import build_testbed
from feelgood.engine.environment import environment
from feelgood.engine.results import AgentResult, absent, in_fields
from feelgood.engine.tally import Tally


@runtime_checkable
class PythonAgent(Protocol):
    """What such an agent has: it chooses an arm, and learns from its reward."""

    def choose(self, context: np.ndarray) -> int:
        """The arm to play, from 0; the context has the shape `spec.context_shape`."""

    def update(self, context: np.ndarray, arm: int, reward: float) -> None:
        """Learn from the reward of the arm that was played."""


#: From the problem's shape and a seed to a new agent; it must take all its luck from that seed.
MakeAgent = Callable[[Spec, int], PythonAgent]


def play(
    testbed: str | Testbed | Any,
    agents: Mapping[str, MakeAgent] | Any,
    *,
    rounds: int | None = None,
    seeds: Seeds = 10,
    settings: Mapping[str, Any] | None = None,
    notify: Callable[[str], None] | None = print_notice,
) -> RunResult:
    """Play agents that are written in plain Python; the result is that of `feelgood.run`.

    **Arguments:**

    - `testbed`, `rounds`, `seeds`: as for `feelgood.run`.
    - `agents`: by name, functions that make an agent from a `Spec` and a seed.
    - `settings`: of the testbed.
    - `notify`: called with a sentence that says what the Python loop cost; None: silence.

    **Example:**

    >>> import numpy as np
    >>> from feelgood.adapters.python_agents import play
    >>> class First:
    ...     def choose(self, context): return 0
    ...     def update(self, context, arm, reward): pass
    >>> made = {"first": lambda spec, seed: First()}
    >>> result = play("linear-20", made, rounds=50, seeds=2, notify=None)
    >>> result["first"].arm_counts[:, 0].tolist()
    [50, 50]
    """
    name, problem, chosen = build_testbed(testbed, settings)
    length = problem.rounds if rounds is None else parse_rounds(rounds)
    numbers = parse_seeds(seeds)
    if not isinstance(agents, Mapping) or not agents:
        raise FeelgoodError(
            f"agents = {shown(agents)} is not allowed: give a dictionary of names to functions "
            "that make an agent."
        )
    if not all(callable(make) for make in agents.values()):
        raise FeelgoodError("every agent must be a function of a Spec and a seed that makes one.")
    results = []
    for label, make in agents.items():
        began = time.perf_counter()
        measured = _measured(problem, label, make, numbers, length)
        result = AgentResult(
            agent=label,
            testbed=name,
            settings={},
            testbed_settings=chosen,
            rounds=length,
            seeds=tuple(numbers),
            compile_s=0.0,
            run_s=time.perf_counter() - began,
            **measured,
        )
        results.append(result)
        if notify is not None:
            notify(_cost(result))
    return RunResult(tuple(results))


def _cost(result: AgentResult) -> str:
    cost = 1e6 * result.run_s / (result.rounds * len(result.seeds))
    return (
        f"{result.agent} was played outside the compiled loop, at {cost:,.0f} µs per round and "
        "seed; its regret compares with that of other agents, its time does not."
    )


def _measured(
    testbed: Testbed, label: str, make: MakeAgent, seeds: Sequence[int], rounds: int
) -> dict[str, Any]:
    """What a run measures, as arguments of `AgentResult`: one seed after the other."""
    spec, tallies = testbed.spec, []
    for seed in seeds:
        block = environment(testbed, [seed], rounds)
        contexts, rewards, means = (np.asarray(part)[..., 0] for part in block)
        arms = _played(make(spec, seed), label, contexts, rewards)
        regret = means.max(axis=1) - means[np.arange(rounds), arms]
        tally = Tally(rounds, 1, spec.arms, ())
        tally.add(regret[:, None], arms[:, None], {})
        tallies.append(tally)
    parts = [tally.numbers() for tally in tallies]
    numbers = {q.name: absent(q, len(seeds), len(tallies[0].grid)) for q in schema.QUANTITIES}
    for name in parts[0]:
        if name != "health":
            numbers[name] = np.concatenate([part[name] for part in parts])
    return {**in_fields(numbers), "curve_rounds": tallies[0].grid}


def _played(
    agent: PythonAgent, label: str, contexts: np.ndarray, rewards: np.ndarray
) -> np.ndarray:
    """The arms that an agent plays; it sees the rewards of these alone."""
    rounds, count = rewards.shape
    arms = np.zeros(rounds, np.int64)
    for t in range(rounds):
        arm = agent.choose(contexts[t].copy())
        try:
            chosen = int(arm)
        except (TypeError, ValueError):
            chosen = -1
        if not 0 <= chosen < count or chosen != arm:
            raise FeelgoodError(
                f"{label} chose {shown(arm)} in round {t + 1}: return a whole number from 0 to "
                f"{count - 1}."
            )
        arms[t] = chosen
        agent.update(contexts[t].copy(), chosen, float(rewards[t, chosen]))
    return arms
