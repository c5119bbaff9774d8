"""`feelgood calibrate`: does an agent's posterior mean what it says?"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from feelgood.cli.app import app
from feelgood.cli.options import (
    ForceOption,
    JsonOption,
    PluginOption,
    PosteriorPresetOption,
    SetOption,
    json_path,
)
from feelgood.cli.output import console_for, prepare_output, write_atomically
from feelgood.cli.set_options import parse_single_values
from feelgood.core.errors import FeelgoodError
from feelgood.core.plugins import load_plugins

if TYPE_CHECKING:
    from feelgood.posterior import Calibration

AgentArgument = Annotated[str, typer.Argument(help="An agent that draws parameters.")]
PriorTestbedOption = Annotated[
    str, typer.Option(help="A testbed whose parameters can be drawn from a prior.")
]
SimulationsOption = Annotated[int, typer.Option(help="True parameters drawn from the prior.")]
PlayedRoundsOption = Annotated[
    str, typer.Option(help="Rounds that the agent plays per simulation.")
]
OwnStepsOption = Annotated[
    int | None, typer.Option(help="Inner steps per draw; default: the agent's.")
]
ThinOption = Annotated[int, typer.Option(help="Keep one in so many draws.")]
FirstBurnOption = Annotated[int, typer.Option(help="Draws thrown away at the start.")]
PrecisionOption = Annotated[float, typer.Option(help="Precision of the prior.")]


@app.command("calibrate", epilog="Example: feelgood calibrate lmcts --simulations 100")
def calibrate_command(
    agent: AgentArgument,
    testbed: PriorTestbedOption = "planted",
    simulations: SimulationsOption = 200,
    rounds: PlayedRoundsOption = "100",
    steps: OwnStepsOption = None,
    thin: ThinOption = 4,
    burn: FirstBurnOption = 10,
    precision: PrecisionOption = 1.0,
    preset: PosteriorPresetOption = None,
    set_: SetOption = None,
    json_: JsonOption = None,
    force: ForceOption = False,
    plugin: PluginOption = None,
) -> None:
    """Simulation-based calibration: is the truth where the agent's posterior says?"""
    from feelgood.core.arguments import parse_rounds
    from feelgood.posterior import calibrate

    load_plugins(plugin)
    given = parse_single_values(set_)
    _check_owners(given, agent)
    json_file = json_path(json_)
    prepare_output([json_file] if json_file else [], force)
    result = calibrate(
        agent,
        testbed,
        simulations=simulations,
        rounds=parse_rounds(rounds),
        steps=steps,
        thin=thin,
        burn=burn,
        precision=precision,
        preset=preset,
        settings=given.get(agent),
        testbed_settings=given.get("testbed"),
    )
    _show(result, json_, json_file)


def _check_owners(given: dict[str, Any], agent: str) -> None:
    """Refuse settings of what is not run."""
    for owner in given:
        if owner not in (agent, "testbed"):
            raise FeelgoodError(
                f"settings are given for '{owner}', which is not in this run: "
                f"use {agent} or testbed."
            )


def _show(result: "Calibration", json_: str | None, json_file: Path | None) -> None:
    """Write the file, then print."""
    text = json.dumps(result.to_json(), allow_nan=False)
    if json_file is not None:
        write_atomically(json_file, lambda path: path.write_text(text + "\n"))
    view = console_for(json_)
    view.print(rank_table(result))
    label = f"{result.agent} on {result.testbed}"
    view.print(f"{label}: {result.sentence}", markup=False, soft_wrap=True)
    if json_file is not None:
        view.print(f"wrote {json_file}", markup=False, soft_wrap=True)
    if json_ == "-":
        print(text)


def rank_table(result: "Calibration") -> Table:
    """The rank histogram of all parameters together, and the tests."""
    simulations, parameters = result.ranks.shape
    table = Table(
        title=f"{result.agent} on {result.testbed}, {result.rounds:,} rounds, {simulations} "
        f"simulations × {parameters} parameters"
    )
    table.add_column("rank of the truth", justify="right")
    table.add_column("share", justify="right")
    table.add_column("")
    counts = result.histogram
    shares: Sequence[float] = counts / counts.sum()
    width = (result.draws + 1) // len(counts)
    for bar, share in enumerate(shares):
        low = bar * width
        filled = "█" * round(30 * share / max(shares))
        table.add_row(f"{low} – {low + width - 1}", f"{share:.3f}", filled)
    table.add_section()
    for name, value in result.p_values.items():
        table.add_row(f"p, {name}", f"{value:.3g}", "")
    return table
