"""`feelgood challenge`: your agent beside those of the shipped results."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from feelgood.cli.app import app, errors
from feelgood.cli.options import DataOption
from feelgood.core.errors import FeelgoodError
from feelgood.core.numbers import with_sign

if TYPE_CHECKING:
    from feelgood.api.challenges import Challenge


@app.command("challenge", epilog="Example: feelgood challenge mine.py --testbed linear-20")
def challenge_command(
    plugin: Annotated[str, typer.Argument(help="Your Python file, or a registered agent's name.")],
    testbed: Annotated[str, typer.Option(help="A testbed with shipped results.")] = "linear-20",
    agent: Annotated[
        str | None, typer.Option(help="Which agent, where the file registers several.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="How many of the shipped seeds; default: all.")
    ] = None,
    data: DataOption = None,
) -> None:
    """Run your agent on the seeds of the shipped results, paired with every agent there."""
    from feelgood.api.challenges import challenge
    from feelgood.api.progress import progress_bar
    from feelgood.data.datasets import use_data

    use_data(data)
    challenger = _challenger(plugin, agent)
    with progress_bar(errors) as report:
        outcomes = challenge(challenger, testbed, seeds=seeds, progress=report)
    out = Console(highlight=False)
    for outcome in outcomes:
        out.print(_table(outcome))
        if outcome.result.status != "ok":
            out.print(f"{outcome.result.agent}: {outcome.result.status}", markup=False)
        out.print(outcome.sentence, markup=False, soft_wrap=True)


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
        title=f"{title}\n{result.agent}: {spread(result.regret, 1)}",
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
