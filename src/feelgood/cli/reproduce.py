"""`feelgood reproduce`: the paper's tables, ours beside the published."""

import functools
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from feelgood.cli.app import SEEDS_HELP, DataOption, app, errors
from feelgood.cli.output import (
    WIDTH_OF_FILES,
    command_to_open,
    console_for,
    prepare_output,
    write_atomically,
)
from feelgood.core.errors import FeelgoodError, did_you_mean

if TYPE_CHECKING:
    from rich.table import Table

    from feelgood.paper.tuning import NetworkChoice, NetworkTuning
    from feelgood.report.published import PublishedComparison
    from feelgood.studies import Store, Study

FORMATS = ("table", "markdown", "csv", "latex")


@app.command()
def reproduce(
    table: Annotated[
        str | None, typer.Argument(help="For example main; --list shows all of them.")
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(help=f"{SEEDS_HELP} Default: as published."),
    ] = None,
    rounds: Annotated[
        str | None, typer.Option(help="Rounds, such as 500, 10k or 1e4; default: as published.")
    ] = None,
    testbed: Annotated[
        list[str] | None, typer.Option(help="Only this testbed, or several: a,b.")
    ] = None,
    agents: Annotated[
        list[str] | None, typer.Option(help="Only this agent, or several: a,b.")
    ] = None,
    store: Annotated[Path, typer.Option(help="Folder of results; what is there is kept.")] = Path(
        "feelgood-results"
    ),
    format_: Annotated[
        str, typer.Option("--format", help="table, markdown, csv or latex.")
    ] = "table",
    out: Annotated[
        Path | None, typer.Option(help="Write the comparison to this file, not the terminal.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    page: Annotated[
        Path | None, typer.Option(help="Also write the interactive page to this file.")
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Show the tables and the time each takes here.")
    ] = False,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune", help="First choose each network: one hidden layer of 100, or three of 50."
        ),
    ] = False,
    tune_rounds: Annotated[
        str | None, typer.Option(help="Rounds of each tuning run; default: up to 2,000.")
    ] = None,
    tune_seeds: Annotated[
        str | None,
        typer.Option(help="Seeds of the tuning runs, N or A:B; default: 1000:1003."),
    ] = None,
    engine: Annotated[str, typer.Option(help="local or ray.")] = "local",
    workers: Annotated[
        int | None, typer.Option(help="Batches at once; default: one a core.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Ray cluster to use, with --engine ray.")
    ] = None,
    data: DataOption = None,
) -> None:
    """Run what a table of the paper needs and print ours beside the published numbers."""
    view = console_for(None)
    if list_:
        view.print(_catalogue())
        return
    if table is None:
        raise FeelgoodError("no table was named: name one, such as main; --list shows all.")
    if not tune and (tune_rounds is not None or tune_seeds is not None):
        raise FeelgoodError("--tune-rounds and --tune-seeds are for --tune: add it or leave them.")
    if format_ not in FORMATS:
        raise FeelgoodError(f"unknown format '{format_}': {did_you_mean(format_, FORMATS)}")

    from feelgood.cli.study import use_no_accelerator
    from feelgood.core.arguments import parse_rounds
    from feelgood.data.datasets import use_data
    from feelgood.paper.published_rows import TITLES, rows
    from feelgood.paper.reproducing import plan_rows
    from feelgood.paper.tuning import TUNING_SEEDS, plan_tuning, with_choices
    from feelgood.report.published import compare_rows, comparison_in_words
    from feelgood.studies import Store

    use_no_accelerator()
    use_data(data)
    chosen = rows(table, _names(testbed), _names(agents))
    horizon = None if rounds is None else parse_rounds(rounds)
    plan = plan_rows(chosen, seeds=seeds, rounds=horizon)
    tuning = (
        plan_tuning(
            chosen,
            seeds=seeds,
            rounds=horizon,
            tuning_seeds=tune_seeds or TUNING_SEEDS,
            tuning_rounds=None if tune_rounds is None else parse_rounds(tune_rounds),
        )
        if tune
        else None
    )
    prepare_output([path for path in (out, page) if path], force)
    results = Store(store)
    run = functools.partial(_run, results, engine=engine, workers=workers, address=address)
    failures: dict[str, str] = {}
    if tuning is not None:
        failures |= run(tuning.study(f"tune {table}"))
        choices = tuning.choices(results)
        chosen = with_choices(chosen, choices)
        plan = plan_rows(chosen, seeds=seeds, rounds=horizon)
        # Not among the text of a file that is read by programs.
        (view if format_ == "table" and out is None else errors).print(
            _chosen_networks(choices, tuning)
        )
    study = plan.study(f"reproduce {table}")
    failures |= run(study)
    comparisons = compare_rows(chosen, plan.results(results))
    title = TITLES[table]
    # First the page: the terminal may be gone, full or unable to show the table.
    if page is not None and study is not None:
        from feelgood.report.page import build_page

        text = build_page(results.results(study.cells), title, comparisons)
        write_atomically(page, lambda path: path.write_text(text, encoding="utf-8"))
    _show(view, comparisons, title, format_, out)
    if format_ == "table" and out is None:
        view.print(comparison_in_words(comparisons), markup=False, soft_wrap=True)
    if page is not None and study is not None:
        where = view if format_ == "table" and out is None else errors
        where.print(f"page: {page}", markup=False, soft_wrap=True)
        where.print(f"open it: {command_to_open(page)}", markup=False, soft_wrap=True)
    if failures:
        label, reason = next(iter(failures.items()))
        several = f"{len(failures)} batches could not be run; the first was"
        what = several if len(failures) > 1 else "1 batch could not be run:"
        raise FeelgoodError(f"{what} {label}: {reason.rstrip('.')}.")


def _run(
    store: "Store", study: "Study | None", engine: str, workers: int | None, address: str | None
) -> dict[str, str]:
    """Run what is missing of a study; returns why batches failed."""
    from feelgood.cli.study import run_watched

    if study is None:
        return {}
    return run_watched(study, store, engine=engine, workers=workers, address=address).failures


def _chosen_networks(choices: "Sequence[NetworkChoice]", tuning: "NetworkTuning") -> "Table":
    """Both networks' mean regrets, and which was chosen."""
    from rich.table import Table

    from feelgood.paper.tuning import ARCHITECTURES

    without = f" No network to choose: {', '.join(tuning.untuned)}." if tuning.untuned else ""
    shown = Table(
        title="networks chosen by tuning",
        caption=f"Mean regret of {tuning.budget}, by hidden layers; for every agent the same. "
        f"The smaller one is used below; –: not run, or diverged.{without}",
        caption_justify="left",
    )
    for name in ("testbed", "agent"):
        shown.add_column(name)
    for layers in ARCHITECTURES:
        shown.add_column(layers, justify="right")
    shown.add_column("chosen")
    for choice in choices:
        means = (choice.regrets[layers] for layers in ARCHITECTURES)
        numbers = ("–" if math.isnan(mean) else f"{mean:,.1f}" for mean in means)
        shown.add_row(choice.testbed, choice.agent, *numbers, choice.layers)
    return shown


def _show(
    view: Console,
    comparisons: "Sequence[PublishedComparison]",
    title: str,
    format_: str,
    out: Path | None,
) -> None:
    """Print the comparison, or write it to a file."""
    from feelgood.report.published_tables import TEXT_FORMATS, to_rich

    if format_ == "table" and out is None:
        view.print(to_rich(comparisons, title))
        return
    if format_ == "table":
        paper = io.StringIO()
        Console(file=paper, width=WIDTH_OF_FILES).print(to_rich(comparisons, title))
        text = paper.getvalue()
    else:
        text = TEXT_FORMATS[format_](comparisons, title)
    if out is None:
        print(text, end="")
    else:
        write_atomically(out, lambda path: path.write_text(text, encoding="utf-8"))
        errors.print(f"wrote {out}", markup=False)


def _names(given: Sequence[str] | None) -> list[str]:
    """Names from options that may be given again and may hold several."""
    parts = (name.strip() for text in given or () for name in text.split(","))
    return [name for name in parts if name]


def _catalogue() -> "Table":
    """The tables, how many rows they have, and roughly how long they take."""
    from rich.table import Table

    from feelgood.api.progress import duration
    from feelgood.engine.device import usable_cores
    from feelgood.paper.costs import estimated_seconds, speed_of_this_machine
    from feelgood.paper.published_rows import TITLES, missing, rows

    speed, cores = speed_of_this_machine(), usable_cores()
    shown = Table(
        title="tables of the paper",
        caption=(
            f"Estimated for {cores} core(s) of this machine with the published seeds and rounds, "
            "as if nothing were in the store; good to a factor of about three."
        ),
    )
    for name in ("table", "what"):
        shown.add_column(name)
    for name in ("rows", "comparable", "not available", "time"):
        shown.add_column(name, justify="right")
    for name, title in TITLES.items():
        all_rows = rows(name)
        here = [r for r in all_rows if missing(r) is None]
        seconds = estimated_seconds(here) if here else None
        shown.add_row(
            name,
            title,
            str(len(all_rows)),
            str(sum(r.not_comparable is None for r in all_rows)),
            str(len(all_rows) - len(here)),
            "–" if seconds is None else duration(max(1.0, seconds / (speed * cores))),
        )
    return shown
