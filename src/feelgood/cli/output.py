"""What commands print and write: tables, progress, files."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from feelgood.errors import FeelgoodError
from feelgood.metrics import Summary
from feelgood.results import AgentResult, RunResult
from feelgood.saving import (  # noqa: F401  (the command takes the names from here)
    RESULTS_FILE,
    TABLE_FILE,
    prepare_folder,
)
from feelgood.simulate import REDRAWS

#: Width of tables that go to a file or a pipe.
WIDTH_OF_FILES = 120


def prepare_output(targets: Sequence[Path], force: bool) -> None:
    """Refuse to start a run whose results could not be written."""
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
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise FeelgoodError(f"cannot write {target} ({error.strerror}): free some space.") from None


def save(result: RunResult, json_file: Path | None, out: Path | None) -> None:
    """Write what was asked for; `prepare_output` has made sure that it may be replaced."""
    if json_file is not None:
        text = json.dumps(result.to_json(), indent=1, allow_nan=False)
        write_atomically(json_file, lambda path: path.write_text(text + "\n"))
    if out is not None:
        result.save(out, force=True)


def describe_settings(result: AgentResult, others: Sequence[AgentResult]) -> str:
    """The settings in which this row differs from the other rows of the same agent."""
    same = [r for r in others if r.agent == result.agent]
    return ", ".join(
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in result.settings.items()
        if any(r.settings.get(key) != value for r in same)
    )


def spread(summary: Summary, digits: int) -> str:
    """`mean ± std`; the mean alone of one chain, a dash where none is left."""
    if summary.count == 0:
        return "–"
    mean = f"{summary.mean:,.{digits}f}"
    return mean if summary.count == 1 else f"{mean} ± {summary.std:,.{digits}f}"


def result_table(results: Sequence[AgentResult]) -> Table:
    """Final and simple regret, mean ± std over seeds, with the median beside."""
    first = results[0]
    seeds = "1 seed" if len(first.seeds) == 1 else f"{len(first.seeds)} seeds (mean ± std)"
    table = Table(title=f"{first.testbed}, {first.rounds:,} rounds, {seeds}")
    table.add_column("agent")
    sweep = any(describe_settings(r, results) for r in results)
    if sweep:
        table.add_column("setting")
    for column in ("regret", "median", "last 500", "best arm", "compile s", "run s"):
        table.add_column(column, justify="right")
    broken = any(r.status != "ok" for r in results)
    if broken:
        table.add_column("diverged", justify="right", style="yellow")
    for r in results:
        row = [r.agent]
        if sweep:
            row.append(describe_settings(r, results))
        row += [
            spread(r.regret, 1),
            f"{r.regret.median:,.1f}" if r.regret.count else "–",
            spread(r.simple, 2),
            f"{100 * Summary.of(r.best_arm_rate).mean:.1f} %" if r.regret.count else "–",
            f"{r.compile_s:.2f}",
            f"{r.run_s:.2f}",
        ]
        if broken:
            row.append(f"{np.sum(r.diverged_at >= 0)} of {len(r.seeds)}")
        table.add_row(*row)
    return table


def health_table(results: Sequence[AgentResult]) -> Table:
    """How the samplers did: early, in the middle and at the end of the run."""
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
            table.add_row(label, f"ess of {REDRAWS} draws", "", "", f"{np.nanmean(r.ess):.1f}")
        if not r.health:
            table.add_row(label, "exact or no sampler", "", "", "")
    return table


class RateColumn(ProgressColumn):
    """Rounds a second, lately."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")


@contextmanager
def progress_bar(console: Console) -> Iterator[Any]:
    """A live bar on a terminal or in a notebook (rounds, rate, remaining time)."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} rounds"),
        RateColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    hidden = not (console.is_terminal or console.is_jupyter)
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        tasks: dict[str, Any] = {}

        def report(label: str, done: int, total: int) -> None:
            if done == 0:
                tasks[label] = bar.add_task(label, total=total)
            bar.update(tasks[label], completed=done)

        yield report
