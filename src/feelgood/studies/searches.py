"""What a search found: which candidate is the best, and the table that shows all of them."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.intervals import bootstrap
from feelgood.stats.pairs import paired_difference

#: What every showing of a search says.
OPTIMISTIC = (
    "The best was chosen on these seeds, so that its own figure is too good; compare it on others."
)
#: Columns of a table of candidates.
COLUMNS = (
    *("testbed", "testbed_settings", "agent", "candidate", "best", "searched", "settings"),
    *("rounds", "first_seed", "seeds", "diverged"),
    *("regret", "low", "high", "difference", "difference_low", "difference_high"),
)


def by_merit(results: Sequence[AgentResult]) -> list[int]:
    """The places of the results from the lowest mean final regret up.

    No candidate is left out. A chain that diverged is worse than any that did not: fewer of them
    come first, then the lower mean of the others. Where candidates are equal the earlier one comes
    first, so that the usual settings, which are tried first, win every tie.
    """

    def order(place: int) -> tuple[int, float, int]:
        summary = results[place].regret
        diverged = len(results[place].seeds) - summary.count
        return diverged, summary.mean if summary.count else 0.0, place

    return sorted(range(len(results)), key=order)


def best_candidate(results: Sequence[AgentResult]) -> int:
    """The place of the best result, as `by_merit` orders them."""
    return by_merit(results)[0]


def searched_values(results: Sequence[AgentResult]) -> list[dict[str, Any]]:
    """Of each candidate the settings in which the candidates differ."""
    first = results[0].settings
    names = [n for n in first if any(r.settings[n] != first[n] for r in results)]
    return [{name: r.settings[name] for name in names} for r in results]


def candidate_rows(results: Sequence[AgentResult]) -> list[dict[str, Any]]:
    """One row per candidate: mean final regret, and its difference from the first's, by seed.

    Intervals are those of `stats`, at 95 %. None: too few chains are left for a number.
    """
    best, first = best_candidate(results), results[0]
    rows = []
    for place, (result, values) in enumerate(zip(results, searched_values(results), strict=True)):
        mean = bootstrap(result.final_regret)
        pair = paired_difference(result.final_regret, first.final_regret)
        numbers = (mean.value, mean.low, mean.high, pair.mean, pair.low, pair.high)
        names = COLUMNS[COLUMNS.index("regret") :]
        rows.append(
            {
                "testbed": result.testbed,
                "testbed_settings": dict(result.testbed_settings),
                "agent": result.agent,
                "candidate": place,
                "best": place == best,
                "searched": values,
                "settings": dict(result.settings),
                "rounds": result.rounds,
                "first_seed": result.seeds[0],
                "seeds": len(result.seeds),
                "diverged": len(result.seeds) - result.regret.count,
                **{
                    name: float(value) if np.isfinite(value) else None
                    for name, value in zip(names, numbers, strict=True)
                },
            }
        )
    return rows


def candidates_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = COLUMNS) -> str:
    """Rows of candidates as CSV; settings are JSON."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_field(row[name]) for name in columns])
    return text.getvalue()


def _field(value: Any) -> Any:
    if isinstance(value, Mapping):
        return json.dumps(dict(value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
