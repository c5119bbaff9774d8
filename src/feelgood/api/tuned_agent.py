"""`feelgood.tune`: the best of a few settings of one agent, on seeds that no comparison uses."""

import dataclasses
import html
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from feelgood.api.data_frames import to_pandas
from feelgood.api.run_result import RunResult
from feelgood.api.running import ProgressOption, run
from feelgood.core.arguments import parse_name, parse_rounds, parse_settings
from feelgood.core.errors import FeelgoodError
from feelgood.core.numbers import figure, setting_text
from feelgood.core.policy import AGENTS
from feelgood.core.testbed import Testbed
from feelgood.engine.building import (
    SettingValues,
    build_testbed,
    resolve_variants,
)
from feelgood.engine.results import AgentResult, run_in_words
from feelgood.studies.candidates import (
    BUDGET,
    HELD_OUT_SEEDS,
    held_out_seeds,
    make_candidates,
    searched_settings,
)
from feelgood.studies.searches import (
    OPTIMISTIC,
    best_candidate,
    by_merit,
    candidate_rows,
    candidates_csv,
    searched_values,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True, repr=False)
class TuneResult:
    """What `tune` found: every candidate in the order of trial, the agent as it is first.

    **Example:**

    >>> import feelgood
    >>> found = feelgood.tune("linucb", "linear-20", budget=3, rounds=50, seeds=2)
    >>> found.title
    'linucb on linear-20, 50 rounds, 2 seeds'
    >>> list(found.best), len(found.candidates), found.result.agent
    (['alpha'], 3, 'linucb')
    >>> found.rows()[0]["best"], len(list(found.cells())), len(found.to_pandas())
    (True, 3, 3)
    >>> found.to_csv().splitlines()[0].split(",")[0]
    'testbed'
    """

    candidates: RunResult

    @property
    def best(self) -> dict[str, Any]:
        """The settings that were searched, at the values that won; for `run` and study files."""
        return searched_values(self.candidates.results)[best_candidate(self.candidates.results)]

    @property
    def result(self) -> AgentResult:
        """The run of the best candidate; its regret is too good, for it was chosen by it."""
        return self.candidates.results[best_candidate(self.candidates.results)]

    def rows(self) -> list[dict[str, Any]]:
        """One row per candidate, from the best down: regret, difference from the first, intervals.

        The order is that of the choice: see `studies.searches.by_merit`.
        """
        rows = candidate_rows(self.candidates.results)
        return [rows[place] for place in by_merit(self.candidates.results)]

    def cells(self) -> Iterator[tuple[str, ...]]:
        """The rows as texts: settings, regret, interval, difference, its interval, a remark."""
        for row in self.rows():
            values = ", ".join(f"{k}={setting_text(v)}" for k, v in row["searched"].items())
            change = _number(row["difference"], row["regret"])
            sign = "+" if (row["difference"] or 0.0) > 0 else ""
            remarks = ["best"] * row["best"] + ["as it is"] * (row["candidate"] == 0)
            if row["diverged"]:
                remarks.append(f"{row['diverged']} of {row['seeds']} chains diverged")
            yield (
                values,
                _number(row["regret"], row["regret"]),
                _interval(row, "low", "high"),
                sign + change if row["candidate"] else "",
                _interval(row, "difference_low", "difference_high") if row["candidate"] else "",
                ", ".join(remarks),
            )

    @property
    def title(self) -> str:
        """What was run."""
        first = self.candidates.results[0]
        return f"{first.agent} on {run_in_words(self.candidates.results, first.testbed)}"

    def __repr__(self) -> str:
        texts = [HEADS, *self.cells()]
        widths = [max(len(row[i]) for row in texts) for i in range(len(HEADS))]
        lines = [self.title]
        lines += [
            "  " + "  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)).rstrip()
            for row in texts
        ]
        return "\n".join([*lines, OPTIMISTIC])

    def _repr_html_(self) -> str:
        def line(tag: str, cells: tuple[str, ...]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

        rows = "".join(line("td", cells) for cells in self.cells())
        return (
            f"<table><caption>{html.escape(self.title)}</caption>{line('th', HEADS)}{rows}</table>"
            f"<small>{html.escape(OPTIMISTIC)}</small>"
        )

    def to_csv(self) -> str:
        """One row per candidate in the order of trial, as a study saves its search."""
        return candidates_csv(candidate_rows(self.candidates.results))

    def to_pandas(self) -> "pd.DataFrame":
        """One row per candidate in the order of trial, the searched settings in columns."""
        from feelgood.core.arrow import pa

        rows = candidate_rows(self.candidates.results)
        texts = ("settings", "testbed_settings")
        flat = [
            {**row.pop("searched"), **row, **{name: json.dumps(row[name]) for name in texts}}
            for row in rows
        ]
        return to_pandas(pa.Table.from_pylist(flat))


HEADS = ("settings", "mean regret", "95 % interval", "beside as it is", "95 % interval", "")


def _number(value: float | None, like: float | None) -> str:
    return "–" if value is None else figure(value, like)


def _interval(row: Mapping[str, Any], low: str, high: str) -> str:
    if row[low] is None:
        return "–"
    return f"({figure(row[low], row['regret'])} to {figure(row[high], row['regret'])})"


def tune(
    agent: str | Any,
    testbed: str | Testbed | Any,
    *,
    budget: int | Any = BUDGET,
    rounds: int | Any | None = None,
    seeds: int | Any = HELD_OUT_SEEDS,
    settings: Mapping[str, SettingValues] | Any | None = None,
    preset: str | Any | None = None,
    progress: ProgressOption = None,
) -> TuneResult:
    """Try a few settings of an agent on held-out seeds, as one program.

    Searched are the settings that declare a range, `setting(…, tune=(low, high))`, and are not
    given here. The first candidate is the agent as it is; the others are points of Halton's
    sequence in the logarithms of these settings. The best has the lowest mean final regret; a
    chain that diverged is worse than any other, and the earlier candidate wins a tie.

    **Arguments:**

    - `agent`: a name. `testbed`: a name or a `Testbed`.
    - `budget`: how many candidates, the agent as it is among them.
    - `rounds`: of each; by default the testbed's usual horizon.
    - `seeds`: how many. They are those from 1,000,000 on, which no comparison should use.
    - `settings`: as of `run`, one value each; what is given for the agent is not searched.
    - `preset`, `progress`: as of `run`. The preset's settings are where the search starts.

    **Example:**

    >>> import feelgood
    >>> found = feelgood.tune("linucb", "linear-20", budget=4, rounds=100, seeds=3)
    >>> len(found.candidates), list(found.best)
    (4, ['alpha'])
    """
    name = parse_name("agent", agent)
    rules = AGENTS[name].settings
    given = parse_settings("settings", settings)
    mine = parse_settings(f"settings of {name}", given.pop(name, None))
    of_testbed = given.get("testbed", given.get(testbed) if isinstance(testbed, str) else None)
    label, built, _ = build_testbed(testbed, of_testbed)
    horizon = parse_rounds(built.rounds if rounds is None else rounds)
    starts = resolve_variants(name, mine, preset, label, built.spec, horizon)
    if len(starts) > 1:
        raise FeelgoodError(f"settings of {name} hold a list: give one value, or leave it out.")
    (start,) = starts
    if not searched_settings(name, start, mine):
        known = ", ".join(n for n, rule in rules.items() if rule.tune) or "none"
        raise FeelgoodError(
            f"{name} has no setting left to tune (those that it has: {known}): run it as it is."
        )
    candidates = make_candidates(name, start, budget, mine)
    found = run(
        testbed,
        name,
        rounds=horizon,
        seeds=held_out_seeds(seeds),
        settings={**given, name: candidates},
        progress=progress,
    )
    return TuneResult(found)
