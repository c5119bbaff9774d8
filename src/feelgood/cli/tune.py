"""`feelgood tune`."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from feelgood.api.progress import progress_bar
from feelgood.cli.app import app, errors
from feelgood.cli.options import (
    DataOption,
    ForceFileOption,
    PluginOption,
    RoundsOption,
)
from feelgood.cli.output import console_for, prepare_output, write_atomically
from feelgood.cli.set_options import parse_single_values
from feelgood.core.plugins import load_plugins

if TYPE_CHECKING:
    from feelgood.api.tuned_agent import TuneResult


@app.command("tune", epilog="Example: feelgood tune linucb linear-20 --budget 16 --rounds 2k")
def tune_command(
    agent: Annotated[str, typer.Argument(help="The agent, such as linucb.")],
    testbed: Annotated[str, typer.Argument(help="The testbed, such as linear-20.")],
    budget: Annotated[
        int, typer.Option(help="How many settings to try, the agent as it is among them.")
    ] = 16,
    rounds: RoundsOption = None,
    seeds: Annotated[
        int, typer.Option(help="How many seeds; they are those from 1,000,000 on.")
    ] = 10,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="agent.key=value; it is not searched. testbed.key too."),
    ] = None,
    preset: Annotated[str | None, typer.Option(help="paper: where the search starts.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write all candidates as CSV.")] = None,
    force: ForceFileOption = False,
    plugin: PluginOption = None,
    data: DataOption = None,
) -> None:
    """Try a few settings of an agent on held-out seeds and say which is best."""
    from feelgood.api.tuned_agent import tune
    from feelgood.data.datasets import use_data

    load_plugins(plugin)
    use_data(data)
    given = parse_single_values(set_)
    targets = [] if save is None else [save]
    prepare_output(targets, force)
    with progress_bar(errors) as report:
        found = tune(
            agent,
            testbed,
            budget=budget,
            rounds=rounds,
            seeds=seeds,
            settings=given,
            preset=preset,
            progress=report,
        )
    for target in targets:
        write_atomically(target, lambda path: path.write_text(found.to_csv()))
    _show(found, " ".join(f"--set {shlex.quote(pair)}" for pair in set_ or ()))
    view = console_for(None)
    for target in targets:
        view.print(f"wrote {target}", markup=False, soft_wrap=True)


def _show(found: "TuneResult", given: str) -> None:
    """The candidates, the best first, and the command that runs it on other seeds."""
    from feelgood.api.tuned_agent import HEADS
    from feelgood.studies.searches import OPTIMISTIC

    table = Table(title=found.title)
    for place, head in enumerate(HEADS):
        table.add_column(head, justify="left" if place in (0, len(HEADS) - 1) else "right")
    for cells in found.cells():
        table.add_row(*map(Text, cells))
    view = console_for(None)
    view.print(table)
    view.print(OPTIMISTIC, markup=False, soft_wrap=True)
    first = found.result
    chosen = " ".join(f"--set {first.agent}.{k}={v:g}" for k, v in found.best.items())
    words = f"{first.testbed} {first.agent} --rounds {first.rounds} {given} {chosen}"
    view.print(f"feelgood run {' '.join(words.split())}", markup=False, soft_wrap=True)
