"""Your agent beside those of the shipped results, seed by seed.

The package carries the final regret of every seed of the agents that were run out of the box and
with the paper's settings (`baselines.parquet`). A challenger is run on the same seeds, so that it
meets the same contexts and the same noise, and the difference to each of them is paired. Nothing
of the baselines is run again.
"""

import dataclasses
import functools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from feelgood.api.paired_table import FALSE_VERDICT_RATE
from feelgood.api.running import ProgressOption, run_each
from feelgood.core.errors import FeelgoodError, did_you_mean
from feelgood.core.policy import Policy
from feelgood.engine.results import AgentResult
from feelgood.stats.pairs import PairedDifference, paired_difference

FILE = Path(__file__).with_name("baselines.parquet")


@dataclasses.dataclass(frozen=True)
class Baseline:
    """One agent of the shipped results on one testbed."""

    testbed: str
    testbed_settings: dict[str, Any]
    agent: str
    settings: dict[str, Any]
    #: Whose settings: `"default"`, out of the box, the preset `"beta-1"` or `"paper"`, or several.
    preset: str
    rounds: int
    seeds: tuple[int, ...]
    #: Final regret per seed; NaN where the chain diverged.
    final_regret: Float[np.ndarray, " seeds"]


@dataclasses.dataclass(frozen=True)
class Beside:
    """The challenger beside one baseline: challenger minus baseline over their common seeds."""

    baseline: Baseline
    #: Mean regret of the baseline over the common seeds.
    regret: float
    difference: PairedDifference

    @property
    def verdict(self) -> str:
        """`better`, `worse` or `no difference seen`, for the challenger."""
        if self.difference.high < 0:
            return "better"
        return "worse" if self.difference.low > 0 else "no difference seen"


@dataclasses.dataclass(frozen=True)
class Challenge:
    """A challenger's run, and the same beside every baseline, the best of these first."""

    result: AgentResult
    beside: tuple[Beside, ...]
    level: float = FALSE_VERDICT_RATE

    @property
    def cost(self) -> float:
        """Microseconds per round and seed, without compiling."""
        return 1e6 * self.result.run_s / (self.result.rounds * len(self.result.seeds))

    @property
    def sentence(self) -> str:
        """How the challenger did, in one sentence."""
        total = len(self.beside)
        counts = {v: sum(b.verdict == v for b in self.beside) for v in ("better", "worse")}
        return (
            f"{self.result.agent} is better than {counts['better']} of {total} agents and worse "
            f"than {counts['worse']}; with the other {total - sum(counts.values())} no difference "
            f"is seen ({len(self.result.seeds)} seeds, level {self.level:g} for all rows together)."
        )


@functools.cache
def baselines() -> tuple[Baseline, ...]:
    """All baselines that the package carries.

    **Example:**

    >>> from feelgood.api.challenges import baselines
    >>> sorted({b.agent for b in baselines() if b.testbed == "linear-20"})[:3]
    ['epsgreedy', 'epsgreedy-tabular', 'fghmcts']
    """
    from feelgood.core.parquet import read_parquet

    try:
        return tuple(_read(read_parquet(FILE.read_bytes()).to_pylist()))
    except Exception as error:  # of a damaged file anything may be wrong
        raise FeelgoodError(
            f"the shipped results in {FILE} cannot be read ({type(error).__name__}): install the "
            "package again."
        ) from error


def _read(rows: Sequence[dict[str, Any]]) -> Iterator[Baseline]:
    for row in rows:
        regrets = [np.nan if r is None else r for r in row["final_regret"]]
        yield Baseline(
            testbed=row["testbed"],
            testbed_settings=json.loads(row["testbed_settings"]),
            agent=row["agent"],
            settings=json.loads(row["settings"]),
            preset=row["preset"],
            rounds=row["rounds"],
            seeds=tuple(row["seeds"]),
            final_regret=np.array(regrets, np.float64),
        )


def baselines_of(testbed: str) -> tuple[Baseline, ...]:
    """The baselines on a testbed; an error where there are none."""
    found = tuple(b for b in baselines() if b.testbed == testbed)
    if not found:
        known = {b.testbed for b in baselines()}
        raise FeelgoodError(
            f"there are no shipped results for the testbed '{testbed}': "
            f"{did_you_mean(testbed, known)}"
        )
    return found


def challenge(
    agent: str | Policy,
    testbed: str = "linear-20",
    *,
    seeds: int | None = None,
    progress: ProgressOption | None = None,
) -> list[Challenge]:
    """Run an agent on the seeds of the shipped results and pair it with every agent there.

    **Arguments:**

    - `agent`: a registered name, or a `Policy`.
    - `testbed`: one with shipped results, such as `"linear-20"`.
    - `seeds`: how many of the shipped seeds, from the first; by default all of them.
    - `progress`: as for `feelgood.run`.

    Returns one `Challenge` per kind of the testbed: a data set was run with its features
    standardised and as in the paper, which are two problems.

    **Example:**

    >>> import feelgood
    >>> (outcome,) = feelgood.challenge("uniform", "wheel-0.99", seeds=2)
    >>> outcome.beside[0].verdict
    'worse'
    """
    problems: dict[str, list[Baseline]] = {}
    for baseline in baselines_of(testbed):
        key = json.dumps([baseline.testbed_settings, baseline.rounds], sort_keys=True)
        problems.setdefault(key, []).append(baseline)
    works = []
    for own in problems.values():
        shipped = sorted(set.union(*(set(b.seeds) for b in own)))
        if seeds is not None and not 2 <= seeds <= len(shipped):
            raise FeelgoodError(
                f"seeds = {seeds} is not allowed: use 2 to {len(shipped)}, the seeds that the "
                f"shipped results of {testbed} have."
            )
        works.append(
            run_each(
                testbed,
                [agent],
                rounds=own[0].rounds,
                seeds=shipped[:seeds],
                settings={"testbed": own[0].testbed_settings},
                progress=progress,
            )
        )
    return [
        beside(result, own)
        for work, own in zip(works, problems.values(), strict=True)
        for result in work
    ]


def beside(result: AgentResult, others: Sequence[Baseline]) -> Challenge:
    """A run of the challenger paired with baselines of the same problem.

    The intervals hold together: each has the level 1 − 0.05 / k for k baselines.
    """
    where = {seed: i for i, seed in enumerate(result.seeds)}
    rows = []
    for other in others:
        common = [i for i, seed in enumerate(other.seeds) if seed in where]
        mine = np.array([where[other.seeds[i]] for i in common], np.int64)
        own = np.where(result.diverged_at[mine] >= 0, np.nan, result.final_regret[mine])
        theirs = other.final_regret[common]
        difference = paired_difference(own, theirs, level=1.0 - FALSE_VERDICT_RATE / len(others))
        rows.append(Beside(other, float(np.nanmean(theirs)), difference))
    return Challenge(result, tuple(sorted(rows, key=lambda row: row.regret)))
