"""What commands print and write: tables, files."""

import importlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions
from rich.table import Table
from rich.text import Text

from feelgood.api.run_folder import RESULTS_FILE, prepare_folder
from feelgood.core.errors import FeelgoodError
from feelgood.core.numbers import mean_and_std, with_minus

if TYPE_CHECKING:
    from feelgood.api.run_result import RunResult
    from feelgood.engine.results import AgentResult
    from feelgood.stats.summary import Summary

#: Width of tables that go to a file or a pipe.
WIDTH_OF_FILES = 120
#: What files need that end like this; where a package is missing, the import says which.
WRITERS = {".html": "feelgood.report.charting", ".parquet": "feelgood.core.parquet"}


def console_for(json_: str | None) -> Console:
    """Where people look: standard output, or standard error while JSON goes to the former."""
    view = Console(stderr=json_ == "-", highlight=False)
    if not view.is_terminal:
        view.width = WIDTH_OF_FILES
    return view


def prepare_output(targets: Sequence[Path], force: bool) -> None:
    """Refuse to start a run whose results could not be written."""
    for suffix in {target.suffix for target in targets} & WRITERS.keys():
        importlib.import_module(WRITERS[suffix])
    for target in targets:
        try:
            if target.is_dir():
                raise FeelgoodError(f"{target} is a folder: name a file.")
            if target.exists() and not force:
                raise FeelgoodError(
                    f"{target} exists already: choose another place, or add --force."
                )
            if target.name == RESULTS_FILE:  # the folder of a run, which must not be a study's
                prepare_folder(target.parent, force=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            probe = target.with_name(f".{target.name}.{os.getpid()}.tmp")
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise FeelgoodError(
                f"cannot write to {target.parent} ({error.strerror}): choose another folder."
            ) from None


def write_atomically(target: Path, write: Any) -> None:
    """Write through a temporary file, so that a half-written result is never left behind."""
    from feelgood.core import atomic

    atomic.remove_leftovers_of_the_dead(target)
    try:
        with atomic.replacing(target) as temporary:
            write(temporary)
    except OSError as error:
        raise FeelgoodError(f"cannot write {target} ({error.strerror}): free some space.") from None


def save_run(result: "RunResult", json_file: Path | None, out: Path | None) -> None:
    """Write what was asked for; `prepare_output` has made sure that it may be replaced."""
    if json_file is not None:
        text = json.dumps(result.to_json(), indent=1, allow_nan=False)
        write_atomically(json_file, lambda path: path.write_text(text + "\n"))
    if out is not None:
        result.save(out, force=True)


def write_page(results: "Sequence[AgentResult]", target: Path) -> None:
    """Write the interactive page about these results."""
    from feelgood.report.matching import find_comparisons
    from feelgood.report.page import build_page

    title = ", ".join(dict.fromkeys(r.testbed for r in results))
    text = build_page(results, title, find_comparisons(results))
    write_atomically(target, lambda path: path.write_text(text, encoding="utf-8"))


def command_to_open(page: Path) -> str:
    """What to type to see a page in the browser of this machine."""
    quoted = shlex.quote(str(page))
    if sys.platform == "win32":
        return f'start "" "{page}"'
    if sys.platform == "darwin":
        return f"open {quoted}"
    if shutil.which("xdg-open"):
        return f"xdg-open {quoted}"
    return f"python3 -m webbrowser -t {shlex.quote(page.resolve().as_uri())}"


def describe_settings(result: "AgentResult", others: "Sequence[AgentResult]") -> str:
    """The settings in which this row differs from the other rows of the same agent."""
    same = [r for r in others if r.agent == result.agent]
    return ", ".join(
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in result.settings.items()
        if any(r.settings.get(key) != value for r in same)
    )


def spread(summary: "Summary", digits: int) -> str:
    """`mean ± std` over seeds."""
    return mean_and_std(summary.mean, summary.std, summary.count, digits)


class ResultTable:
    """Final and simple regret, mean ± std over seeds, with the median beside.

    Where the terminal is too narrow, the less important columns are left out and named below.
    """

    #: In the order in which columns are left out; the others always stay.
    EXPENDABLE = ("compile s", "median", "run s", "last 500", "best arm")

    def __init__(self, results: "Sequence[AgentResult]") -> None:
        self.results = results

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        columns = self._columns()
        left_out: list[str] = []
        table = self._table(columns)
        for name in self.EXPENDABLE:
            if console.measure(table, options=_unbounded(options)).maximum <= options.max_width:
                break
            del columns[name]
            left_out.append(name)
            table = self._table(columns)
        if left_out:
            table.caption = f"too narrow for: {', '.join(left_out)}"
        yield table

    def _columns(self) -> dict[str, list[str]]:
        import numpy as np

        from feelgood.stats.summary import Summary

        results = self.results
        columns = {"agent": [r.agent for r in results]}
        if any(describe_settings(r, results) for r in results):
            columns["setting"] = [describe_settings(r, results) for r in results]
        columns |= {
            "regret": [spread(r.regret, 1) for r in results],
            "median": [f"{r.regret.median:,.1f}" if r.regret.count else "–" for r in results],
            "last 500": [spread(r.simple, 2) for r in results],
            "best arm": [
                f"{100 * Summary.of(r.best_arm_rate).mean:.1f} %" if r.regret.count else "–"
                for r in results
            ],
            "compile s": [f"{r.compile_s:.2f}" for r in results],
            "run s": [f"{r.run_s:.2f}" for r in results],
        }
        if any(r.status != "ok" for r in results):
            columns["diverged"] = [
                f"{np.sum(r.diverged_at >= 0)} of {len(r.seeds)}" for r in results
            ]
        return columns

    def _table(self, columns: dict[str, list[str]]) -> Table:
        first = self.results[0]
        seeds = "1 seed" if len(first.seeds) == 1 else f"{len(first.seeds)} seeds (mean ± std)"
        table = Table(title=f"{first.testbed}, {first.rounds:,} rounds, {seeds}")
        for name in columns:
            table.add_column(
                name,
                justify="left" if name in ("agent", "setting") else "right",
                style="yellow" if name == "diverged" else None,
            )
        for row in zip(*columns.values(), strict=True):
            table.add_row(*map(Text, row))
        return table


def _unbounded(options: ConsoleOptions) -> ConsoleOptions:
    """The options of a terminal that is wider than any table."""
    return options.update(width=10_000)


def result_table(results: "Sequence[AgentResult]") -> ResultTable:
    """The results of one testbed, for a terminal of any width."""
    return ResultTable(results)


#: Level of "is best": how often a best agent is named where two are equally good.
BEST_LEVEL = 0.05


def best_of(results: "Sequence[AgentResult]") -> str | None:
    """Which agent of one testbed is best and by how much, in a sentence; None for a single one.

    The rule is that of `stats.ranks.rank`; the interval is the one of its paired t-test,
    so that it holds 0 exactly where the two cannot be told apart.
    """
    from feelgood.report.ranking import compare_results, rank_results
    from feelgood.stats.student import t_quantile

    names = [" ".join(filter(None, [r.agent, describe_settings(r, results)])) for r in results]
    by_name = dict(zip(names, results, strict=True))
    if len(by_name) < 2:
        return None
    if len(results[0].seeds) < 2:
        return "One seed cannot tell agents apart: use more, such as --seeds 10."
    (ranking,) = rank_results(list(by_name.values()), list(by_name), level=BEST_LEVEL)[0].values()
    standings = ranking.standings
    left = [s for s in standings if s.may_be_best]
    if not left:
        return "No agent is best: chains of all of them diverged."
    first, rival = left[0], (left + [s for s in standings if not s.may_be_best])[1]
    if rival.diverged:
        return f"{first.name} is best: it is the only agent of which no chain diverged."
    pair, _ = compare_results(by_name[rival.name], by_name[first.name])
    level = 1.0 - BEST_LEVEL / (len(by_name) - 1)
    half = t_quantile(level, pair.count - 1.0) * pair.error
    by = (
        f"by {with_minus(pair.mean)} ({100 * level:.3g} % interval "
        f"{with_minus(pair.mean - half)} to {with_minus(pair.mean + half)}, "
        f"{pair.count} paired seeds)"
    )
    if len(left) == 1:
        return f"{first.name} is best: the regret of {rival.name}, the next, is higher {by}."
    others = [s.name for s in left[1:]]
    shown = " and ".join(others) if len(others) < 3 else f"{others[0]} and {len(others) - 1} others"
    return (
        f"{first.name} has the lowest mean regret, but cannot be told apart from {shown}: the "
        f"regret of {rival.name} is higher {by}."
    )


def health_table(results: "Sequence[AgentResult]") -> Table:
    """How the samplers did: early, in the middle and at the end of the run."""
    import numpy as np

    from feelgood.engine.loop import REPEATED_DRAWS

    table = Table(title="sampler health (means over seeds)")
    table.add_column("agent")
    table.add_column("measure")
    for column in ("first tenth", "middle", "last tenth"):
        table.add_column(column, justify="right")
    for r in results:
        label = " ".join(filter(None, [r.agent, describe_settings(r, results)]))
        share = r.curve_rounds / r.rounds
        spans = (share <= 0.1, (share > 0.1) & (share <= 0.9), share > 0.9)
        for name, values in r.health.items():
            kept = [v[np.isfinite(v)] for v in (values[:, span] for span in spans)]
            cells = [f"{v.mean():.4g}" if v.size else "–" for v in kept]
            table.add_row(label, name, *cells)
        if np.isfinite(r.ess).any():
            table.add_row(
                label, f"ess of {REPEATED_DRAWS} draws", "", "", f"{np.nanmean(r.ess):.1f}"
            )
        if not r.health:
            table.add_row(label, "exact or no sampler", "", "", "")
    return table
