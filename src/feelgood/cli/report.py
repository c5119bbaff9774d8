"""`feelgood report` and `feelgood plot`: the page and the figures of a store."""

import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from feelgood.cli.app import app
from feelgood.cli.options import ForceFileOption, PluginOption, split_names
from feelgood.cli.output import prepare_output, write_atomically
from feelgood.cli.study import note
from feelgood.core.errors import FeelgoodError, did_you_mean
from feelgood.core.plugins import load_plugins
from feelgood.report.chart_kinds import chart_names

if TYPE_CHECKING:
    from feelgood.engine.results import AgentResult
    from feelgood.posterior import AgentPosterior

StoreArgument = Annotated[Path, typer.Argument(help="Folder of results that a study wrote.")]
PAGE_FILE = "report.html"


def read_store(store: Path, notify: Callable[[str], None] = note) -> "list[AgentResult]":
    """All results of a store; a sentence where there are none, and on what had to be left out."""
    from feelgood.studies.store import Store

    if not store.is_dir():
        raise FeelgoodError(f"{store} is not a folder: give the folder that a study wrote.")
    results = Store(store, create=False, notify=notify).results()
    if not results:
        raise FeelgoodError(
            f"the store {store} has no finished results: run its study first "
            "('feelgood study run')."
        )
    return results


def choose_results(
    results: "Sequence[AgentResult]", testbeds: Sequence[str], agents: Sequence[str]
) -> "list[AgentResult]":
    """The results of these testbeds and agents; all where none are named."""
    for kind, wanted, known in (
        ("testbed", testbeds, {r.testbed for r in results}),
        ("agent", agents, {r.agent for r in results}),
    ):
        for name in wanted:
            if name not in known:
                raise FeelgoodError(
                    f"the store has no {kind} '{name}': {did_you_mean(name, known)}"
                )
    return [
        r
        for r in results
        if (not testbeds or r.testbed in testbeds) and (not agents or r.agent in agents)
    ]


@app.command("report", epilog="Example: feelgood report results --open")
def report_command(
    store: StoreArgument,
    out: Annotated[
        Path | None, typer.Option(help=f"File to write; default: {PAGE_FILE} in the store.")
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    title: Annotated[str | None, typer.Option(help="Title; default: the store's name.")] = None,
    posterior: Annotated[
        list[Path] | None,
        typer.Option(help="Also show what 'feelgood posterior --out' wrote to this folder."),
    ] = None,
    force: ForceFileOption = False,
    plugin: PluginOption = None,
) -> None:
    """Write one self-contained HTML page about all results of a store."""
    load_plugins(plugin)

    from feelgood.posterior.saved import is_analysis, read_analysis

    # The folder of a posterior analysis alone makes a page too.
    alone = is_analysis(store)
    left_out: list[str] = []
    results = [] if alone else read_store(store, left_out.append)
    for sentence in left_out:
        note(sentence)
    analyses = [read_analysis(folder) for folder in ([store] if alone else []) + (posterior or [])]
    target = store / PAGE_FILE if out is None else out
    # The page in the store is made of the store: making it again loses nothing.
    prepare_output([target], force or out is None)

    from feelgood.report.matching import find_comparisons
    from feelgood.report.page import build_page

    name = title or store.resolve().name
    page = build_page(results, name, find_comparisons(results), analyses, left_out)
    write_atomically(target, lambda path: path.write_text(page, encoding="utf-8"))
    Console(highlight=False, soft_wrap=True).print(f"wrote {target}", markup=False)
    if open_:
        webbrowser.open(target.resolve().as_uri())


@app.command("plot", epilog="Example: feelgood plot results --out curves.pdf --agents lints,lmcts")
def plot_command(
    store: StoreArgument,
    out: Annotated[Path, typer.Option(help="File to write: .png, .svg or .pdf.")],
    chart: Annotated[str, typer.Option(help=f"One of {', '.join(chart_names())}.")] = "curves",
    testbed: Annotated[
        list[str] | None, typer.Option(help="Only these testbeds; repeat, or separate by commas.")
    ] = None,
    agents: Annotated[
        list[str] | None, typer.Option(help="Only these agents; repeat, or separate by commas.")
    ] = None,
    log_x: Annotated[
        bool, typer.Option("--log-x", help="Logarithmic x axis in curves and final.")
    ] = False,
    log_y: Annotated[bool, typer.Option("--log-y", help="Logarithmic y axis in curves.")] = False,
    band: Annotated[str, typer.Option(help="Band of curves: quantile or std.")] = "quantile",
    cost: Annotated[str, typer.Option(help="Axis of compute: gradients or seconds.")] = "gradients",
    measure: Annotated[
        str | None,
        typer.Option(
            help="Measure in health (default: all) or in the posterior charts (default: choice)."
        ),
    ] = None,
    theme: Annotated[str, typer.Option(help="light or dark.")] = "light",
    force: ForceFileOption = False,
    plugin: PluginOption = None,
) -> None:
    """Write a chart of a store as PNG, SVG or PDF, for a paper.

    The chart draws is of the folder that 'feelgood posterior --out' wrote.
    """
    load_plugins(plugin)
    _check_words(out, {"chart": chart, "band": band, "cost": cost, "theme": theme})

    from feelgood.report import rendering
    from feelgood.report.chart_kinds import find_chart

    found = find_chart(chart)
    read: Sequence[Any]
    if found.reads == "analysis":
        read = _analysed(store, split_names(agents))
    else:
        read = choose_results(read_store(store), split_names(testbed), split_names(agents))
    prepare_output([out], force)
    options = {"log_x": log_x, "log_y": log_y, "band": band, "cost": cost, "measure": measure}
    drawn = found.draw_with(read, options)
    image = rendering.render(drawn, _suffix(out), theme)  # type: ignore[arg-type]
    write_atomically(out, lambda path: path.write_bytes(image))
    Console(highlight=False, soft_wrap=True).print(f"wrote {out}", markup=False)


def _suffix(file: Path) -> str:
    return file.suffix.removeprefix(".").lower()


def _check_words(out: Path, words: dict[str, str]) -> None:
    """Refuse a file without a known suffix, and options that are none of the known words."""
    from feelgood.report.charts.compute import COST_AXES
    from feelgood.report.charts.curves import BAND_NAMES
    from feelgood.report.rendering import IMAGE_FORMATS
    from feelgood.report.theme import PALETTES

    if _suffix(out) not in IMAGE_FORMATS:
        raise FeelgoodError(
            f"{out} has no known suffix: end it with {', '.join('.' + f for f in IMAGE_FORMATS)}."
        )
    known = {"chart": chart_names(), "band": BAND_NAMES, "cost": COST_AXES, "theme": PALETTES}
    for option, value in words.items():
        if value not in known[option]:
            raise FeelgoodError(f"unknown {option} '{value}': {did_you_mean(value, known[option])}")


def _analysed(folder: Path, agents: Sequence[str]) -> "list[AgentPosterior]":
    """The agents of a posterior analysis; all where none are named."""
    from feelgood.posterior.saved import read_analysis

    found = read_analysis(folder).agents
    known = [a.agent for a in found]
    for name in agents:
        if name not in known:
            raise FeelgoodError(f"{folder} has no agent '{name}': {did_you_mean(name, known)}")
    return [a for a in found if not agents or a.agent in agents]
