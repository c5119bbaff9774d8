"""`feelgood posterior`: are the draws right?"""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from feelgood.cli.app import app, errors
from feelgood.cli.options import (
    SEEDS_HELP,
    ForceOption,
    JsonOption,
    PageOption,
    PluginOption,
    PosteriorPresetOption,
    RoundsOption,
    SetOption,
    json_path,
)
from feelgood.cli.output import console_for, prepare_output, write_atomically
from feelgood.cli.posterior_tables import arm_table, law_name, overall_table
from feelgood.cli.set_options import parse_single_values
from feelgood.core.plugins import load_plugins

if TYPE_CHECKING:
    from rich.console import Console

    from feelgood.posterior import Analysis

AgentsArgument = Annotated[
    list[str] | None, typer.Argument(help="Agents; by default those of the paper's figure.")
]
LinearTestbedOption = Annotated[str, typer.Option(help="A linear testbed.")]
DrawsOption = Annotated[int, typer.Option(help="Draws per agent, all chains together.")]
StepsOption = Annotated[int, typer.Option(help="Inner steps per draw.")]
ChainsOption = Annotated[int, typer.Option(help="Independent chains that share the draws.")]
BurnOption = Annotated[int, typer.Option(help="Draws that each chain throws away first.")]
ModeOption = Annotated[
    str, typer.Option(help="same: all agents see one run; own: each agent its own run.")
]
GathererOption = Annotated[str, typer.Option(help="Agent that plays the run that all see.")]
DataSetsOption = Annotated[str, typer.Option(help=f"Data sets: {SEEDS_HELP}")]
LiveOption = Annotated[
    bool, typer.Option("--live", help="Chains step in every round of the run: much slower.")
]
ArmsOption = Annotated[bool, typer.Option("--arms", help="Every measure of every arm.")]
FolderOption = Annotated[
    Path | None, typer.Option(help="Write summary, measures, draws and laws into this folder.")
]
FigureOption = Annotated[
    Path | None, typer.Option(help="Write the figure here: .png, .svg, .pdf or .html.")
]
ArvizOption = Annotated[Path | None, typer.Option(help="Write the draws as netCDF for ArviZ here.")]


@app.command(
    "posterior",
    epilog="Example: feelgood posterior lints lmcts --testbed linear-20 --rounds 200",
)
def posterior_command(
    agents: AgentsArgument = None,
    testbed: LinearTestbedOption = "planted",
    rounds: RoundsOption = None,
    draws: DrawsOption = 1500,
    steps: StepsOption = 100,
    chains: ChainsOption = 30,
    burn: BurnOption = 10,
    mode: ModeOption = "same",
    gatherer: GathererOption = "lints",
    seeds: DataSetsOption = "1",
    preset: PosteriorPresetOption = None,
    set_: SetOption = None,
    live: LiveOption = False,
    by_arm: ArmsOption = False,
    json_: JsonOption = None,
    out: FolderOption = None,
    page: PageOption = None,
    figure: FigureOption = None,
    arviz: ArvizOption = None,
    force: ForceOption = False,
    plugin: PluginOption = None,
) -> None:
    """Compare agents' draws with the exact posterior of a linear bandit."""
    load_plugins(plugin)
    how = {"draws": draws, "steps": steps, "chains": chains, "burn": burn, "live": live}
    data = {"mode": mode, "gatherer": gatherer, "seeds": seeds}
    agents_settings = {"preset": preset, "settings": parse_single_values(set_)}
    files = PosteriorFiles(json_path(json_), out, figure, arviz, page)
    analysis = _analyse(agents, testbed, rounds, {**how, **data, **agents_settings}, files, force)
    # First the files: the terminal may be gone, full or unable to show the table.
    files.write(analysis)
    view = console_for(json_)
    _show(analysis, by_arm, view)
    if json_ == "-":
        print(json.dumps(analysis.to_json(), allow_nan=False))
    for target in files.targets():
        view.print(f"wrote {target}", markup=False, soft_wrap=True)


@dataclasses.dataclass(frozen=True)
class PosteriorFiles:
    """What is written; None is not."""

    json_file: Path | None
    out: Path | None
    figure: Path | None
    arviz: Path | None
    page: Path | None

    def targets(self) -> list[Path]:
        """All files, in the order in which they are named at the end."""
        from feelgood.posterior.saved import FILES

        single = (self.json_file, self.figure, self.arviz, self.page)
        folder = [self.out / name for name in FILES] if self.out else []
        return [*(path for path in single if path is not None), *folder]

    def prepare(self, force: bool) -> None:
        """Refuse what could not be written."""
        if self.figure is not None:
            from feelgood.report.rendering import check_format

            check_format(self.figure)
        if self.arviz is not None:
            from feelgood.report.posterior_draws import import_arviz

            import_arviz()
        prepare_output(self.targets(), force)

    def write(self, analysis: "Analysis") -> None:
        """Write all of them."""
        text = json.dumps(analysis.to_json(), indent=1, allow_nan=False) + "\n"
        if self.json_file is not None:
            write_atomically(self.json_file, lambda path: path.write_text(text))
        if self.out is not None:
            from feelgood.posterior.saved import writers

            for name, write in writers(analysis).items():
                write_atomically(self.out / name, write)
        if self.figure is not None:
            from feelgood.report.charts.draws import posterior_figure
            from feelgood.report.rendering import render_figure

            picture = render_figure(posterior_figure(analysis.agents), self.figure)
            write_atomically(self.figure, lambda path: path.write_bytes(picture))
        if self.page is not None:
            from feelgood.report.page import build_page

            html = build_page([], f"Posteriors on {analysis.testbed}", analyses=[analysis])
            write_atomically(self.page, lambda path: path.write_text(html, encoding="utf-8"))
        if self.arviz is not None:
            from feelgood.report.posterior_draws import write_netcdf

            write_atomically(self.arviz, lambda path: write_netcdf(analysis.agents, path))


def _analyse(
    agents: list[str] | None,
    testbed: str,
    rounds: str | None,
    options: dict[str, Any],
    files: PosteriorFiles,
    force: bool,
) -> "Analysis":
    """The analysis; all input and all files are checked before anything runs."""
    from feelgood.core.arguments import parse_rounds
    from feelgood.core.testbed import TESTBEDS
    from feelgood.posterior import PAPER_FIGURE, Analysis, analyse_each

    chosen = tuple(dict.fromkeys(agents or PAPER_FIGURE))
    horizon = parse_rounds(TESTBEDS[testbed].build().rounds if rounds is None else rounds)
    watched = (lambda label: errors.print(label, style="dim")) if errors.is_terminal else None
    work = analyse_each(chosen, testbed=testbed, rounds=horizon, progress=watched, **options)
    files.prepare(force)
    return Analysis(testbed, options["mode"], horizon, tuple(work))


def _show(analysis: "Analysis", by_arm: bool, view: "Console") -> None:
    view.print(overall_table(analysis))
    if by_arm:
        for result in analysis.agents:
            for against in result.comparisons:
                view.print(arm_table(result, against))
    for result in analysis.agents:
        for against, comparison in result.comparisons.items():
            label = f"{result.agent}, seed {result.seed}, against {law_name(against)}"
            view.print(f"{label}: {comparison.verdict.sentence}", markup=False, soft_wrap=True)
