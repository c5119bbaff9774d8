"""`feelgood run`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from feelgood.cli.app import DataOption, PluginOption, app, errors
from feelgood.cli.output import (
    RESULTS_FILE,
    TABLE_FILE,
    WIDTH_OF_FILES,
    health_table,
    prepare_output,
    progress_bar,
    result_table,
    save,
)
from feelgood.errors import FeelgoodError
from feelgood.plugins import load_plugins


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
    posterior_every: Annotated[
        int | None, typer.Option(help="Measure the agents' posteriors every so many rounds.")
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
    data: DataOption = None,
) -> None:
    """Run agents on a testbed and print a table."""
    from feelgood.datasets import use_data
    from feelgood.results import AgentResult, RunResult
    from feelgood.running import run_each

    load_plugins(plugin)
    use_data(data)
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
            posterior_every=posterior_every,
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
