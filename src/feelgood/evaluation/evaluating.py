"""Which agent would have done better on a log?"""

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from feelgood.core.arguments import parse_level, parse_names, parse_whole
from feelgood.core.errors import FeelgoodError
from feelgood.evaluation.bandits import bandit_maker
from feelgood.evaluation.judging import AgentValue, difference, judge_agent
from feelgood.evaluation.log_arrays import LogArrays, log_arrays
from feelgood.evaluation.progressive import Maker, model_rewards, walk
from feelgood.logs.opening import open_events
from feelgood.stats.off_policy import PolicyValue, direct_method

#: Chains of an agent whose rule has no formula for its probabilities.
MEMBERS = 32
BLOCKS = 20


@dataclasses.dataclass(frozen=True)
class LogEvaluation:
    """What agents would have earned on a log, beside what it earned itself.

    `values` is in the order in which the agents were named, `log` the mean reward of the same
    decisions, `notes` what was noticed while the log was read.
    """

    log: PolicyValue
    values: tuple[AgentValue, ...]
    decisions: int
    learned_first: int
    blocks: int
    level: float
    notes: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where the log says too little."""
        return tuple(sentence for value in self.values for sentence in value.warnings)

    @property
    def sentence(self) -> str:
        """Which agent is best, by how much, and whether it beats the log."""
        order = sorted(self.values, key=lambda v: v.main.value, reverse=True)
        best = order[0]
        if math.isnan(best.main.value):
            return "No agent can be judged: the log never played what they would play."
        out = self._beside_log(best)
        if len(order) > 1:
            rival, level = order[1], 1.0 - (1.0 - self.level) / (len(order) - 1)
            apart = difference(best.main.terms, rival.main.terms, level)
            if apart.low == apart.high == 0.0:
                return f"{best.agent} and {rival.agent} would have played alike. {out}"
            by = f"{_signed(apart.mean)} per decision ({_interval(apart, level)})"
            seen = "earns most" if apart.is_seen else "has the highest estimate"
            but = "" if apart.is_seen else ", which cannot be told from chance"
            out = f"{best.agent} {seen}: {by} beside {rival.agent}, the next{but}. {out}"
        if best.warnings:
            out += f" Mind the warning about {best.agent}."
        return out

    def _beside_log(self, best: AgentValue) -> str:
        apart = difference(best.main.terms, self.log.terms, self.level)
        seen = "" if apart.is_seen else ", which cannot be told from chance"
        more = "more" if apart.mean >= 0 else "less"
        return (
            f"{best.agent} would have earned {abs(apart.mean):.4g} {more} per decision than the "
            f"log, which had {self.log.value:.4g} ({_interval(apart, self.level)}){seen}."
        )

    def to_json(self) -> dict[str, Any]:
        """All numbers, for a file."""
        return {
            "decisions": self.decisions,
            "learned_first": self.learned_first,
            "blocks": self.blocks,
            "level": self.level,
            "log": _numbers(self.log),
            "agents": [
                {
                    "agent": value.agent,
                    "members": value.members,
                    "effective_decisions": value.effective,
                    "estimates": {name: _numbers(v) for name, v in value.values.items()},
                    "shares": dict(value.shares),
                    "warnings": list(value.warnings),
                }
                for value in self.values
            ],
            "sentence": self.sentence,
            "notes": list(self.notes),
        }


def _numbers(value: PolicyValue) -> dict[str, Any]:
    found = {"value": value.value, "low": value.low, "high": value.high, "error": value.error}
    return {name: x if math.isfinite(x) else None for name, x in found.items()}


def _signed(x: float) -> str:
    return ("+" if x >= 0 else "−") + f"{abs(x):.4g}"


def _interval(apart: Any, level: float) -> str:
    return f"{100 * level:.3g} % interval {_signed(apart.low)} to {_signed(apart.high)}"


def _chances(
    make: Maker, name: str, arrays: LogArrays, blocks: int, members: int, tell: Any
) -> tuple[Any, int]:
    """The probabilities of the arms, by the agent's rule or by chains, and how many these were."""
    for used in (1, members):
        with contextlib.ExitStack() as after:
            learner = make(name, arrays, used)
            after.callback(getattr(learner, "close", lambda: None))
            chances = walk(learner, arrays, blocks, tell)
        if chances is not None:
            return chances, used
    raise FeelgoodError(f"{name} has no probabilities, even with {members} chains.")


def evaluate(
    log: Any,
    agents: Any,
    *,
    blocks: int | Any = BLOCKS,
    members: int | Any = MEMBERS,
    seed: int | Any = 0,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    level: float | Any = 0.95,
    format: str | None = None,
    intercept: bool = True,
    make: Maker | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> LogEvaluation:
    """Judge agents on a log that somebody else's decisions made.

    The log is cut into blocks. Each agent learns from a block and is then judged on the next one,
    by the probabilities that it gives to the arms there: those of its rule, or the shares of
    `members` chains where its rule has no formula. The first block is for learning alone. All
    agents are judged on the same decisions.

    **Arguments:**

    - `log`: the path of a log, a dictionary of `obp`, a data frame, or `Events`.
    - `agents`: names, one or several; `settings` has those of each, by name.
    - `level`: of the intervals, which are normal ones; see `feelgood.stats.off_policy`.
    - `format`: of the log, by default guessed; `intercept`: whether contexts get a constant.
    - `make`: makes an agent of another kind, with `learn` and `pmf`.
    - `progress`: called with the agent, the decisions done and all of them.

    **Example:**

    >>> import feelgood, pyarrow
    >>> log = pyarrow.table({"x": range(99), "arm": [0, 1, 1] * 33, "reward": [1, 0, 1] * 33})
    >>> feelgood.evaluate(log, "uniform", blocks=3).values[0].agent
    'uniform'
    """
    names = tuple(dict.fromkeys(parse_names("agents", agents)))
    level, blocks = parse_level("level", level), parse_whole("blocks", blocks, 2)
    members, seed = parse_whole("members", members, 2, 4096), parse_whole("seed", seed, 0)
    events = open_events(log, format)
    notes = list(events.notes)
    arrays = log_arrays(events, notes, intercept=intercept)
    maker = make or bandit_maker(seed, settings or {})
    model = model_rewards(arrays, blocks)
    judged = arrays.rows(len(arrays) - len(model), len(arrays))
    if np.isnan(judged.probabilities).any():
        notes.append(
            "The log lacks probabilities: only replay, which takes it for a uniform one, and the "
            "direct method are possible."
        )
    values = []
    for name in names:
        tell = progress and functools.partial(progress, name)
        chances, used = _chances(maker, name, arrays, blocks, members, tell)
        values.append(judge_agent(name, judged, chances, model, level, used))
    first = len(arrays) - len(judged)
    earned = direct_method(judged.rewards, level, judged.weights)
    return LogEvaluation(earned, tuple(values), len(judged), first, blocks, level, tuple(notes))
