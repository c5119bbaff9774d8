"""`feelgood posterior` and `feelgood calibrate`: are the draws right?"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from feelgood.cli.app import SEEDS_HELP, PluginOption, RoundsOption, app, errors
from feelgood.cli.output import console_for, prepare_output, write_atomically
from feelgood.cli.run import parse_settings
from feelgood.core.errors import FeelgoodError
from feelgood.core.plugins import load_plugins

if TYPE_CHECKING:
    from feelgood.posterior import AgentPosterior, Analysis, Calibration, MeasureRow

#: Columns of the tables, their digits and the unit that they are shown in.
COLUMNS = {
    "bias": ("bias (sd)", 3, 1.0),
    "trace": ("variance", 3, 1.0),
    "log_determinant": ("log det", 2, 1.0),
    "largest": ("widest", 2, 1.0),
    "smallest": ("narrowest", 2, 1.0),
    "wasserstein2": ("W₂² (10⁻³)", 2, 1e-3),
    "shape": ("shape", 3, 1.0),
    "cover50": ("in 50 %", 3, 1.0),
    "cover90": ("in 90 %", 3, 1.0),
    "choice": ("choice (%)", 2, 0.01),
    "ess": ("ESS", 0, 1.0),
    "rhat": ("R̂", 3, 1.0),
}
OVERALL = ("bias", "trace", "choice", "ess", "rhat")
DISTANCES = ("bias", "wasserstein2", "shape", "choice")
#: How the tables say what is in the brackets.
LEGEND = "± Monte Carlo error; of distances, in brackets, what exact draws would show"

Settings = Annotated[list[str] | None, typer.Option("--set", help="agent.key=value.")]
Preset = Annotated[
    str | None, typer.Option(help="paper: the paper's settings, in place of equal temperatures.")
]
Json = Annotated[
    str | None, typer.Option("--json", help="Write results to this file, or - for stdout.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing results.")]


@app.command()
def posterior(
    agents: Annotated[
        list[str] | None, typer.Argument(help="Agents; by default those of the paper's figure.")
    ] = None,
    testbed: Annotated[str, typer.Option(help="A linear testbed.")] = "planted",
    rounds: RoundsOption = None,
    draws: Annotated[int, typer.Option(help="Draws of each agent, all chains together.")] = 1500,
    steps: Annotated[int, typer.Option(help="Inner steps of each draw.")] = 100,
    chains: Annotated[int, typer.Option(help="Independent chains that share the draws.")] = 30,
    burn: Annotated[int, typer.Option(help="Draws that each chain throws away first.")] = 10,
    mode: Annotated[
        str, typer.Option(help="same: all agents see one run; own: each agent its own run.")
    ] = "same",
    gatherer: Annotated[str, typer.Option(help="Who plays the run that all see.")] = "lints",
    seeds: Annotated[str, typer.Option(help=f"Data sets: {SEEDS_HELP}")] = "1",
    preset: Preset = None,
    set_: Settings = None,
    live: Annotated[
        bool, typer.Option("--live", help="Chains step in every round of the run: much slower.")
    ] = False,
    by_arm: Annotated[bool, typer.Option("--arms", help="Every measure of every arm.")] = False,
    json_: Json = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write summary, measures, draws and laws into this folder."),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="Write the interactive page to this file.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Write the figure here: .png, .svg, .pdf or .html.")
    ] = None,
    arviz: Annotated[
        Path | None, typer.Option(help="Write the draws as netCDF for ArviZ here.")
    ] = None,
    force: Force = False,
    plugin: PluginOption = None,
) -> None:
    """Compare agents' draws with the exact posterior of a linear bandit."""
    from feelgood.core.arguments import parse_rounds
    from feelgood.core.testbed import TESTBEDS
    from feelgood.posterior import PAPER_FIGURE, Analysis, analyse_each
    from feelgood.posterior.saved import FILES

    load_plugins(plugin)
    chosen = tuple(dict.fromkeys(agents or PAPER_FIGURE))
    horizon = parse_rounds(TESTBEDS[testbed].build().rounds if rounds is None else rounds)
    work = analyse_each(
        chosen,
        testbed=testbed,
        rounds=horizon,
        draws=draws,
        steps=steps,
        chains=chains,
        burn=burn,
        mode=mode,
        gatherer=gatherer,
        seeds=seeds,
        preset=preset,
        settings=_single_values(parse_settings(set_)),
        live=live,
        progress=(lambda label: errors.print(label, style="dim")) if errors.is_terminal else None,
    )
    json_file = None if json_ in (None, "-") else Path(str(json_))
    targets = [path for path in (json_file, figure, arviz, page) if path is not None]
    targets += [out / name for name in FILES] if out else []
    if figure is not None:
        from feelgood.report.rendering import check_format

        check_format(figure)
    if arviz is not None:
        from feelgood.report.posterior_draws import import_arviz

        import_arviz()
    prepare_output(targets, force)
    found = tuple(work)
    analysis = Analysis(testbed, mode, horizon, found)
    # First the files: the terminal may be gone, full or unable to show the table.
    _write(analysis, json_file, out, figure, arviz, page)
    view = console_for(json_)
    view.print(overall_table(analysis))
    if by_arm:
        for result in found:
            for against in result.comparisons:
                view.print(arm_table(result, against))
    for result in found:
        for against, comparison in result.comparisons.items():
            label = f"{result.agent}, seed {result.seed}, against {_law_name(against)}"
            view.print(f"{label}: {comparison.verdict.sentence}", markup=False, soft_wrap=True)
    if json_ == "-":
        print(json.dumps(analysis.to_json(), allow_nan=False))
    for target in targets:
        view.print(f"wrote {target}", markup=False, soft_wrap=True)


def _single_values(given: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    for agent, values in given.items():
        for key, value in values.items():
            if isinstance(value, list):
                raise FeelgoodError(
                    f"--set {agent}.{key} is a list: give one value, and compare calls."
                )
    return given


def _write(
    analysis: "Analysis",
    json_file: Path | None,
    out: Path | None,
    figure: Path | None,
    arviz: Path | None,
    page: Path | None,
) -> None:
    text = json.dumps(analysis.to_json(), indent=1, allow_nan=False) + "\n"
    if json_file is not None:
        write_atomically(json_file, lambda path: path.write_text(text))
    if out is not None:
        from feelgood.posterior.saved import writers

        for name, write in writers(analysis).items():
            write_atomically(out / name, write)
    if figure is not None:
        from feelgood.report.charts.draws import posterior_figure
        from feelgood.report.rendering import render_figure

        picture = render_figure(posterior_figure(analysis.agents), figure)
        write_atomically(figure, lambda path: path.write_bytes(picture))
    if page is not None:
        from feelgood.report.page import build_page

        html = build_page([], f"Posteriors on {analysis.testbed}", analyses=[analysis])
        write_atomically(page, lambda path: path.write_text(html, encoding="utf-8"))
    if arviz is not None:
        from feelgood.report.posterior_draws import write_netcdf

        write_atomically(arviz, lambda path: write_netcdf(analysis.agents, path))


def _law_name(against: str) -> str:
    return "the exact posterior" if against == "posterior" else "its own target"


def _cell(row: "MeasureRow | None") -> str:
    """`value ± error`; of a distance, in brackets, what exact draws would show."""
    if row is None:
        return ""
    _, digits, unit = COLUMNS[row.measure]
    value, expected, error = (
        f"{number / unit:.{digits}f}" for number in (row.value, row.expected, row.error)
    )
    if row.measure in DISTANCES:
        return f"{value} ({expected} ± {error})"
    return value if error == "nan" else f"{value} ± {error}"


def overall_table(analysis: "Analysis") -> Table:
    """All arms together, one line an agent, data set and law."""
    data = "one run" if analysis.mode == "same" else "its own run"
    title = f"{analysis.testbed}, {analysis.rounds:,} rounds, each agent on {data}"
    table = Table(title=title, caption=LEGEND)
    for column in ("agent", "against"):
        table.add_column(column, no_wrap=True)
    several = len({a.seed for a in analysis.agents}) > 1
    if several:
        table.add_column("seed", justify="right")
    for name in OVERALL:
        table.add_column(COLUMNS[name][0], justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for result in analysis.agents:
        for against, comparison in result.comparisons.items():
            rows = {row.measure: row for row in comparison.rows if row.arm is None}
            cells = [result.agent, against]
            if several:
                cells.append(str(result.seed))
            cells += [_cell(rows.get(name)) for name in OVERALL]
            verdict = comparison.verdict
            style = "green" if verdict.exact else "yellow"
            table.add_row(*cells, f"[{style}]{verdict.status}[/{style}]")
    return table


def arm_table(result: "AgentPosterior", against: str) -> Table:
    """Every measure of every arm."""
    comparison = result.comparisons[against]
    table = Table(
        title=f"{result.agent}, seed {result.seed}, against {_law_name(against)}", caption=LEGEND
    )
    table.add_column("measure")
    arms = range(len({row.arm for row in comparison.rows if row.arm is not None}))
    for arm in arms:
        plays = int(result.plays[arm]) if len(result.plays) == len(arms) else None
        header = f"arm {arm}" if plays is None else f"arm {arm}, {plays} ×"
        table.add_column(header, justify="right")
    for name, (label, _, _) in COLUMNS.items():
        rows = {row.arm: row for row in comparison.rows if row.measure == name}
        if not any(arm in rows for arm in arms):
            continue
        table.add_row(label, *(_cell(rows[arm]) for arm in arms))
    return table


@app.command()
def calibrate(
    agent: Annotated[str, typer.Argument(help="An agent that draws parameters.")],
    testbed: Annotated[
        str, typer.Option(help="A testbed whose parameters can be drawn from a prior.")
    ] = "planted",
    simulations: Annotated[int, typer.Option(help="Truths drawn from the prior.")] = 200,
    rounds: Annotated[str, typer.Option(help="Rounds that the agent plays with each.")] = "100",
    steps: Annotated[
        int | None, typer.Option(help="Inner steps of each draw; default: the agent's.")
    ] = None,
    thin: Annotated[int, typer.Option(help="Keep one of so many draws.")] = 4,
    burn: Annotated[int, typer.Option(help="Draws thrown away before the first.")] = 10,
    precision: Annotated[float, typer.Option(help="Precision of the prior.")] = 1.0,
    preset: Preset = None,
    set_: Settings = None,
    json_: Json = None,
    force: Force = False,
    plugin: PluginOption = None,
) -> None:
    """Simulation-based calibration: is the truth where the agent's posterior says?"""
    from feelgood.core.arguments import parse_rounds
    from feelgood.posterior import calibrate as run_calibration

    load_plugins(plugin)
    given = _single_values(parse_settings(set_))
    for owner in given:
        if owner not in (agent, "testbed"):
            raise FeelgoodError(
                f"settings are given for '{owner}', which is not in this run: "
                f"use {agent} or testbed."
            )
    json_file = None if json_ in (None, "-") else Path(str(json_))
    prepare_output([json_file] if json_file else [], force)
    result = run_calibration(
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
    if json_file is not None:
        text = json.dumps(result.to_json(), allow_nan=False) + "\n"
        write_atomically(json_file, lambda path: path.write_text(text))
    view = console_for(json_)
    view.print(rank_table(result))
    view.print(f"{agent} on {testbed}: {result.sentence}", markup=False, soft_wrap=True)
    if json_file is not None:
        view.print(f"wrote {json_file}", markup=False, soft_wrap=True)
    if json_ == "-":
        print(json.dumps(result.to_json(), allow_nan=False))


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
