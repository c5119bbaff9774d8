"""`feelgood challenge`: your agent beside those of the shipped results."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from feelgood.cli.app import app, errors
from feelgood.cli.options import DataOption, PluginOption
from feelgood.core.errors import FeelgoodError
from feelgood.core.numbers import with_sign

if TYPE_CHECKING:
    from feelgood.api.challenge_entries import CheckedEntry
    from feelgood.api.challenges import Challenge


@app.command("challenge", epilog="Example: feelgood challenge mine.py --testbed linear-20")
def challenge_command(
    what: Annotated[
        str, typer.Argument(help="Your Python file, a registered agent's name, or the word check.")
    ],
    entry: Annotated[
        Path | None, typer.Argument(help="After check: the entry's file.", show_default=False)
    ] = None,
    testbed: Annotated[str, typer.Option(help="A testbed with shipped results.")] = "linear-20",
    agent: Annotated[
        str | None, typer.Option(help="Which agent, where the file registers several.")
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(help="How many of the shipped seeds; default: all, and 2 to check an entry."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write an entry that others can check to this file.")
    ] = None,
    plugin: PluginOption = None,
    data: DataOption = None,
) -> None:
    """Run your agent on the seeds of the shipped results, or check such an entry of somebody."""
    from feelgood.api.challenge_entries import check_entry, save_entry
    from feelgood.api.challenges import challenge
    from feelgood.api.progress import progress_bar
    from feelgood.core.plugins import load_plugins
    from feelgood.data.datasets import use_data

    use_data(data)
    load_plugins(plugin)
    if what == "check":
        if entry is None:
            raise FeelgoodError("which entry? Say 'feelgood challenge check entry.parquet'.")
        with progress_bar(errors) as report:
            checked = check_entry(entry, seeds=2 if seeds is None else seeds, progress=report)
        _print_checked(checked)
        if not checked.passed:
            raise typer.Exit(1)
        return
    if entry is not None:
        raise FeelgoodError(f"'{entry}' is one word too many: give one file, or an agent's name.")
    challenger = _challenger(what, agent)
    with progress_bar(errors) as report:
        outcomes = challenge(challenger, testbed, seeds=seeds, progress=report)
    _print_outcomes(outcomes)
    if save is not None:
        Console(highlight=False).print(f"entry: {save_entry(outcomes, save)}", soft_wrap=True)


def _print_outcomes(outcomes: "Sequence[Challenge]") -> None:
    out = Console(highlight=False)
    for outcome in outcomes:
        out.print(_table(outcome))
        if outcome.result.status != "ok":
            out.print(f"{outcome.result.agent}: {outcome.result.status}", markup=False)
        out.print(outcome.sentence, markup=False, soft_wrap=True)


def _print_checked(checked: "CheckedEntry") -> None:
    _print_outcomes(checked.entry.outcomes)
    out = Console(highlight=False, soft_wrap=True)
    words = {True: "right", False: "WRONG", None: "open"}
    for check in checked.checks:
        out.print(f"{words[check.passed]:<6}{check.what}: {check.said}", markup=False)
    made = checked.entry.facts["made_with"]
    out.print(f"made with feelgood {made['feelgood']}, JAX {made['jax']}, {made['device']}")


def _challenger(plugin: str, agent: str | None) -> str:
    """The name of the agent that a file registers, or of one that is there already."""
    from feelgood import AGENTS
    from feelgood.core.plugins import load_plugins

    if Path(plugin).suffix != ".py" and plugin in AGENTS:
        if agent not in (None, plugin):
            raise FeelgoodError(f"--agent is for a file of yours, and '{plugin}' is an agent.")
        return plugin
    before = set(AGENTS.names(more=True))
    load_plugins([plugin])
    new = [name for name in AGENTS.names(more=True) if name not in before]
    if agent is not None:
        return AGENTS[agent].name
    if len(new) == 1:
        return new[0]
    if not new:
        raise FeelgoodError(
            f"{plugin} registers no agent: put @AGENTS.register('name') before its class."
        )
    raise FeelgoodError(f"{plugin} registers {', '.join(new)}: choose one of them with --agent.")


def _table(outcome: "Challenge") -> Table:
    from feelgood.cli.output import spread

    result = outcome.result
    title = f"{result.testbed}, {result.rounds:,} rounds, {len(result.seeds)} seeds"
    table = Table(
        title=f"{title}\n{result.agent}: {spread(result.regret, 1)}, "
        f"{outcome.cost:,.1f} µs per round and seed",
        caption="settings out of the box, the paper's, or both; difference: yours minus theirs",
    )
    table.add_column("agent", overflow="fold")
    table.add_column("settings")
    table.add_column("regret", justify="right")
    table.add_column("difference", justify="right", no_wrap=True)
    table.add_column("yours is")
    for row in outcome.beside:
        d = row.difference
        seen = row.verdict if row.verdict != "no difference seen" else "–"
        table.add_row(
            row.baseline.agent,
            "both" if "," in row.baseline.preset else row.baseline.preset,
            f"{row.regret:,.1f}",
            f"{with_sign(d.mean)} \\[{with_sign(d.low)}, {with_sign(d.high)}]",
            seen,
        )
    return table
