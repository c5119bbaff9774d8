"""What a live bandit did: shares of arms, rewards and probabilities along its log, and drift."""

import dataclasses
import itertools
import math

import numpy as np

from feelgood.core.arrow import pc
from feelgood.logs.event_schema import Events
from feelgood.logs.obp_feedback import context_matrix
from feelgood.stats.student import t_quantile
from feelgood.stats.welch import welch_samples

#: Parts of the log along which things are shown.
LOG_PARTS = 24
#: Level of each family of checks: of all arms together, or of all numbers of a context.
LEVEL = 0.01


@dataclasses.dataclass(frozen=True)
class ArmSummary:
    """One arm: how often it was offered, played and expected to be played, and what it paid."""

    arm: str
    offered: int
    played: int
    expected: float
    reward: float
    half: float


@dataclasses.dataclass(frozen=True)
class LogPart:
    """A stretch of decisions: share of each arm, mean reward, chance of what was played."""

    end: int
    shares: dict[str, float]
    reward: float
    half: float
    probability: float


@dataclasses.dataclass(frozen=True)
class LogSummary:
    """A log in numbers; `findings` are sentences about drift and probabilities."""

    decisions: int
    rewarded: int
    reward: float
    half: float
    first: str
    last: str
    arms: tuple[ArmSummary, ...]
    parts: tuple[LogPart, ...]
    findings: tuple[str, ...]


def summarise(events: Events) -> LogSummary:
    """The numbers of a log."""
    labels = np.array(events.table["arm"].to_pylist(), object)
    rewards, chances = events.numbers("reward"), events.numbers("probability")
    arms = _arms(events, labels, rewards)
    ends = np.unique(np.linspace(0, len(events), min(LOG_PARTS, len(events)) + 1).astype(int))
    names = [arm.arm for arm in arms]
    parts = []
    for start, end in itertools.pairwise(ends.tolist()):
        mean, half = _mean(rewards[start:end])
        own = chances[start:end]
        known = own[np.isfinite(own)]
        shares = {name: float(np.mean(labels[start:end] == name)) for name in names}
        usual = float(known.mean()) if len(known) else math.nan
        parts.append(LogPart(end, shares, mean, half, usual))
    mean, half = _mean(rewards)
    times = [t for t in events.table["time"].to_pylist() if t is not None]
    first, last = (f(times).isoformat(" ", "seconds") if times else "" for f in (min, max))
    findings = (*_probabilities(arms, events), *_drift(events, rewards))
    rewarded = int(np.isfinite(rewards).sum())
    return LogSummary(
        len(events), rewarded, mean, half, first, last, arms, tuple(parts), tuple(findings)
    )


def _mean(values: np.ndarray) -> tuple[float, float]:
    """The mean and half of its 95 % interval."""
    kept = values[np.isfinite(values)]
    if not len(kept):
        return math.nan, math.nan
    if len(kept) < 2:
        return float(kept[0]), math.nan
    error = float(np.std(kept, ddof=1)) / math.sqrt(len(kept))
    return float(kept.mean()), t_quantile(0.95, len(kept) - 1.0) * error


def _arms(events: Events, labels: np.ndarray, rewards: np.ndarray) -> tuple[ArmSummary, ...]:
    """All arms, the most played first."""
    lists = events.table["arms"].combine_chunks()
    offered = np.array(lists.flatten().to_pylist(), object)
    known = not events.table["pmf"].null_count
    chances = pc.list_flatten(events.table["pmf"].combine_chunks()).to_numpy() if known else None
    out = []
    for name in events.arms:
        here = offered == name
        mine = labels == name
        expected = float(chances[here].sum()) if chances is not None else math.nan
        mean, half = _mean(rewards[mine])
        out.append(ArmSummary(name, int(here.sum()), int(mine.sum()), expected, mean, half))
    return tuple(sorted(out, key=lambda arm: -arm.played))


def _probabilities(arms: tuple[ArmSummary, ...], events: Events) -> list[str]:
    """Whether arms were played as often as their probabilities say."""
    chances = events.table["pmf"]
    if chances.null_count:
        missing = int(np.isnan(events.numbers("probability")).sum())
        if missing:
            return [f"{missing:,} decisions have no probability: IPS cannot use them."]
        return []
    lists = events.table["arms"].combine_chunks()
    offered = np.array(lists.flatten().to_pylist(), object)
    each = pc.list_flatten(chances.combine_chunks()).to_numpy()
    wrong = []
    for arm in arms:
        p = each[offered == arm.arm]
        spread = math.sqrt(float((p * (1 - p)).sum()))
        # Bernstein's bound: exact for any number of decisions, also of rare arms.
        apart = abs(arm.played - arm.expected)
        bound = 2.0 * math.exp(-(apart**2) / (2.0 * spread**2 + 2.0 * apart / 3.0)) if apart else 1
        if bound < LEVEL / len(arms):
            wrong.append(arm)
    if not wrong:
        return ["All arms were played about as often as their probabilities say."]
    worst = max(wrong, key=lambda arm: abs(arm.played - arm.expected))
    return [
        f"{worst.arm} was played {worst.played:,} times, and its probabilities add up to "
        f"{worst.expected:,.0f}: the logged probabilities are wrong."
    ]


def _drift(events: Events, rewards: np.ndarray) -> list[str]:
    """Whether the second half differs from the first, in rewards and in contexts."""
    middle = len(events) // 2
    out = []
    before, after = (part[np.isfinite(part)] for part in (rewards[:middle], rewards[middle:]))
    test = welch_samples(after, before, LEVEL)
    if test.rejects:
        out.append(
            f"Rewards changed by {test.difference:+.4g} from the first half of the log to the "
            f"second (p = {test.p:.2g})."
        )
    contexts = context_matrix(events)
    if contexts is None or len(events) < 4:
        return out
    tests = [welch_samples(x[middle:], x[:middle], LEVEL) for x in contexts.T.astype(np.float64)]
    moved = [k for k, one in enumerate(tests) if one.p * len(tests) <= LEVEL]
    if moved:
        worst = min(moved, key=lambda k: tests[k].p)
        out.append(
            f"{len(moved)} of {len(tests)} numbers of the context changed between the halves, most "
            f"clearly number {worst}, by {tests[worst].difference:+.4g}."
        )
    return out or ["Neither rewards nor contexts differ between the halves of the log."]
