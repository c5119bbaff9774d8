"""The command line: thin. It parses, calls, prints; everything else lives elsewhere."""

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
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
from feelgood.simulate import REDRAWS

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Feel-Good and MCMC Thompson Sampling for contextual bandits.",
)
errors = Console(stderr=True, highlight=False, soft_wrap=True)

PluginOption = Annotated[
    list[str] | None,
    typer.Option("--plugin", help="Python file or module that registers agents or testbeds."),
]


def main() -> None:
    """Entry point: bad input is one sentence and exit code 2, never a traceback."""
    try:
        app()
    except FeelgoodError as error:
        errors.print(f"feelgood: {error}", style="red", markup=False)
        sys.exit(2)


def load_plugins(plugins: Sequence[str] | None) -> None:
    """Import the files and modules that register more agents and testbeds."""
    for plugin in plugins or ():
        path = Path(plugin)
        try:
            if path.suffix == ".py":
                spec = importlib.util.spec_from_file_location(path.stem, path)
                if spec is None or spec.loader is None or not path.exists():
                    raise FeelgoodError(f"plugin file '{plugin}' does not exist: check the path.")
                module = importlib.util.module_from_spec(spec)
                sys.modules[path.stem] = module
                spec.loader.exec_module(module)
            else:
                importlib.import_module(plugin)
        except FeelgoodError:
            raise
        except Exception as error:
            raise FeelgoodError(
                f"plugin '{plugin}' could not be imported ({type(error).__name__}: {error}): "
                "mend it or leave it out."
            ) from error


def parse_value(text: str) -> Any:
    """`0.1`, `true`, `sqrt`, or a comma-separated list of such: a sweep."""
    parts = [part.strip() for part in text.split(",")]
    values: list[Any] = []
    for part in parts:
        try:
            values.append(json.loads(part))
        except ValueError:
            values.append(part)
    return values if len(values) > 1 else values[0]


def parse_settings(pairs: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """`agent.key=value` pairs as a nested dictionary; the key is what follows the last dot."""
    out: dict[str, dict[str, Any]] = {}
    for pair in pairs or ():
        left, equals, value = pair.partition("=")
        owner, dot, key = left.rpartition(".")
        if not equals or not dot or not owner or not key or not value:
            raise FeelgoodError(
                f"--set {pair} is not understood: write agent.key=value, such as linucb.alpha=0.5."
            )
        if key in out.setdefault(owner, {}):
            raise FeelgoodError(f"--set {owner}.{key} is given twice: give one value, or a list.")
        out[owner][key] = parse_value(value)
    return out


# ---- output ---------------------------------------------------------------------------------

#: Width of tables that go to a file or a pipe.
WIDTH_OF_FILES = 120
RESULTS_FILE, TABLE_FILE = "results.json", "results.parquet"


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
    """Write what was asked for."""
    text = json.dumps(result.to_json(), indent=1, allow_nan=False)
    if json_file is not None:
        write_atomically(json_file, lambda path: path.write_text(text + "\n"))
    if out is not None:
        import pyarrow.parquet as pq

        write_atomically(out / RESULTS_FILE, lambda path: path.write_text(text + "\n"))
        write_atomically(out / TABLE_FILE, lambda path: pq.write_table(result.to_arrow(), path))


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
    """A live bar on a terminal (rounds, rate, remaining time); nothing elsewhere."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} rounds"),
        RateColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        tasks: dict[str, Any] = {}

        def report(label: str, done: int, total: int) -> None:
            if done == 0:
                tasks[label] = bar.add_task(label, total=total)
            bar.update(tasks[label], completed=done)

        yield report


# ---- commands -------------------------------------------------------------------------------


@app.command("list")
def list_command(
    what: Annotated[str, typer.Argument(help="agents or testbeds; both if left out.")] = "all",
    all_: Annotated[
        bool, typer.Option("--all", help="Also the combinations that the paper did not run.")
    ] = False,
    settings: Annotated[bool, typer.Option("--settings", help="Show every setting too.")] = False,
    plugin: PluginOption = None,
) -> None:
    """List agents and testbeds, with what they are and what can be set."""
    from feelgood.running import AGENTS, TESTBEDS

    load_plugins(plugin)
    if what not in ("all", "agents", "testbeds"):
        raise FeelgoodError(f"cannot list '{what}': use agents or testbeds.")
    out = Console(highlight=False, soft_wrap=True)
    for title, registry in (("agents", AGENTS), ("testbeds", TESTBEDS)):
        if what not in ("all", title):
            continue
        if what == "all":
            out.print(title, style="bold")
        names = registry.names(more=all_)
        width = max(len(name) for name in names)
        for name in names:
            entry = registry[name]
            out.print(f"  {name:<{width}}  {entry.doc}", markup=False)
            if settings:
                for key, rule in entry.settings.items():
                    line = f"{key} = {rule.default}  ({rule.describe()})  {rule.doc}"
                    out.print(f"  {'':<{width}}    {line}", markup=False)


@app.command()
def run(
    testbed: Annotated[str, typer.Argument(help="For example linear-20; see 'feelgood list'.")],
    agents: Annotated[list[str], typer.Argument(help="One or more agents, such as lints linucb.")],
    rounds: Annotated[int | None, typer.Option(help="Rounds; default: the testbed's.")] = None,
    seeds: Annotated[str, typer.Option(help="N for seeds 0 to N-1, or a range A:B.")] = "10",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="agent.key=value; a list a,b,c is a sweep; testbed.key too."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="paper: the paper's settings; see docs/reproducing.md.")
    ] = None,
    health: Annotated[
        bool, typer.Option("--health", help="Show how the samplers did, too.")
    ] = False,
    json_: Annotated[
        str | None, typer.Option("--json", help="Write results to this file, or - for stdout.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help=f"Write {RESULTS_FILE} and {TABLE_FILE} into this folder.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing results.")] = False,
    plugin: PluginOption = None,
) -> None:
    """Run agents on a testbed and print a table."""
    from feelgood.running import run_each

    load_plugins(plugin)
    given = parse_settings(set_)
    json_file = None if json_ in (None, "-") else Path(str(json_))
    targets = [json_file] if json_file else []
    targets += [out / RESULTS_FILE, out / TABLE_FILE] if out else []
    # Printing JSON to stdout leaves the people's view to stderr.
    view = Console(stderr=json_ == "-", highlight=False)
    if not view.is_terminal:
        view.width = WIDTH_OF_FILES
    finished: list[AgentResult] = []
    interrupted = False
    with progress_bar(errors) as report:
        work = run_each(
            testbed,
            agents,
            rounds=rounds,
            seeds=seeds,
            settings=given,
            preset=preset,
            progress=report,
        )
        prepare_output(targets, force)
        try:
            for result in work:
                finished.append(result)
        except KeyboardInterrupt:
            interrupted = True
    if finished:
        view.print(result_table(finished))
    if finished and health:
        view.print(health_table(finished))
    for result in finished:
        if result.status != "ok":
            view.print(f"{result.agent}: {result.status}", style="yellow", markup=False)
    outcome = RunResult(tuple(finished), interrupted=interrupted)
    if not finished:
        targets = []  # stopped before the first result: older files stay as they are
    else:
        save(outcome, json_file, out)
    if json_ == "-":
        print(json.dumps(outcome.to_json(), allow_nan=False))
    for target in targets:
        view.print(f"wrote {target}", markup=False, soft_wrap=True)
    if interrupted:
        errors.print(f"feelgood: interrupted; {len(finished)} finished result(s) are kept.")
        raise typer.Exit(130)


@app.command()
def doctor() -> None:
    """Versions, devices, cache folder, dataset availability: what to paste into a report."""
    import platform
    from importlib.metadata import version

    import jax

    from feelgood.compiling import cache_folder
    from feelgood.datasets import availability
    from feelgood.simulate import usable_cores

    out = Console(highlight=False, soft_wrap=True)
    rows = [("python", platform.python_version()), ("platform", platform.platform())]
    rows += [(name, version(name)) for name in ("feelgood", "jax", "jaxlib", "equinox", "optax")]
    rows += [(name, version(name)) for name in ("blackjax", "numpy", "pyarrow")]
    rows.append(("devices", ", ".join(f"{d.device_kind} ({d.platform})" for d in jax.devices())))
    rows.append(("cores", str(usable_cores())))
    rows.append(("cache", str(cache_folder())))
    folder, found, missing = availability()
    rows.append(("data folder", str(folder) if folder else "not set (FEELGOOD_DATA)"))
    rows.append(("datasets here", ", ".join(found) or "none"))
    rows.append(("datasets absent", ", ".join(missing) or "none"))
    for label, value in rows:
        out.print(f"{label:<16}{value}", markup=False)
