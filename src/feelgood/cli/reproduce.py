"""`feelgood reproduce`: the paper's tables, ours beside the published."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from feelgood.cli.app import DataOption, app, errors
from feelgood.cli.output import (
    WIDTH_OF_FILES,
    prepare_output,
    write_atomically,
)
from feelgood.errors import FeelgoodError, did_you_mean

if TYPE_CHECKING:
    from rich.table import Table

    from feelgood.report.tables import Comparison

FORMATS = ("table", "markdown", "csv", "latex")


@app.command()
def reproduce(
    table: Annotated[
        str | None, typer.Argument(help="For example main; --list shows all of them.")
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(help="N for seeds 0 to N-1, or a range A:B; default: as published."),
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds; default: as published.")] = None,
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
    view = Console(highlight=False)
    if not view.is_terminal:
        view.width = WIDTH_OF_FILES
    if list_:
        view.print(_catalogue())
        return
    if table is None:
        raise FeelgoodError("no table was named: name one, such as main; --list shows all.")
    if format_ not in FORMATS:
        raise FeelgoodError(f"unknown format '{format_}': {did_you_mean(format_, FORMATS)}")

    from feelgood.cli.progress import study_watcher
    from feelgood.cli.study import STOPPED, use_no_accelerator
    from feelgood.datasets import use_data
    from feelgood.paper.reproducing import plan_rows
    from feelgood.paper.tables import TITLES, rows
    from feelgood.report.tables import compare_rows
    from feelgood.studies import Store, run_study

    use_no_accelerator()
    use_data(data)
    chosen = rows(table, _names(testbed), _names(agents))
    plan = plan_rows(chosen, seeds=seeds, rounds=rounds)
    prepare_output([path for path in (out, page) if path], force)
    results = Store(store)
    study = plan.study(f"reproduce {table}")
    failures: dict[str, str] = {}
    if study is not None:
        try:
            with study_watcher(errors) as watcher:
                failures = run_study(
                    study, results, engine=engine, workers=workers, address=address, watcher=watcher
                ).failures
        except KeyboardInterrupt:
            errors.print(STOPPED)
            raise typer.Exit(130) from None
    comparisons = compare_rows(chosen, plan.results(results))
    title = TITLES[table]
    _show(view, comparisons, title, format_, out)
    if page is not None and study is not None:
        from feelgood.report.page import build_page

        text = build_page(results.results(study.cells), title, comparisons)
        write_atomically(page, lambda path: path.write_text(text, encoding="utf-8"))
        view.print(f"page: {page}", markup=False, soft_wrap=True)
    if failures:
        first = next(iter(failures.items()))
        raise FeelgoodError(f"{len(failures)} batches could not be run; the first: {first}.")


def _show(
    view: Console, comparisons: "Sequence[Comparison]", title: str, format_: str, out: Path | None
) -> None:
    """Print the comparison, or write it to a file."""
    from feelgood.report.tables import TEXT_FORMATS, to_rich

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

    from feelgood.cli.progress import duration
    from feelgood.paper.costs import estimated_seconds, speed_of_this_machine
    from feelgood.paper.tables import TITLES, missing, rows
    from feelgood.simulate import usable_cores

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
