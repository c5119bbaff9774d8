"""`feelgood reproduce`: the paper's tables, ours beside the published."""

import dataclasses
import functools
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from feelgood.cli.app import app, errors
from feelgood.cli.options import SEEDS_HELP, DataOption, EngineOption, split_names
from feelgood.cli.output import (
    WIDTH_OF_FILES,
    command_to_open,
    console_for,
    prepare_output,
    write_atomically,
)
from feelgood.cli.reproduce_tables import catalogue_table, networks_table
from feelgood.core.errors import FeelgoodError, did_you_mean

if TYPE_CHECKING:
    from feelgood.engine.results import AgentResult
    from feelgood.paper.published_rows import PublishedRow
    from feelgood.paper.reproducing import ComparisonPlan
    from feelgood.paper.tuning import NetworkChoice, NetworkTuning
    from feelgood.report.published_comparisons import PublishedComparison
    from feelgood.studies import Store, Study

#: How the comparison can be shown.
COMPARISON_FORMATS = ("table", "markdown", "csv", "latex")
#: The preset that puts the text and the released code beside every number.
BOTH = "both"

TableArgument = Annotated[
    str | None, typer.Argument(help="For example main; --list shows all of them.")
]
PublishedSeedsOption = Annotated[
    str | None, typer.Option(help=f"{SEEDS_HELP} Default: as published.")
]
PublishedRoundsOption = Annotated[
    str | None, typer.Option(help="Rounds, such as 500, 10k or 1e4; default: as published.")
]
TestbedsOption = Annotated[
    list[str] | None, typer.Option(help="Only this testbed, or several: a,b.")
]
AgentsOption = Annotated[list[str] | None, typer.Option(help="Only this agent, or several: a,b.")]
ReadingOption = Annotated[
    str,
    typer.Option(
        "--preset",
        help="paper: as the text has it; released: as the code did it; both: one verdict of both.",
    ),
]
KeptStoreOption = Annotated[Path, typer.Option(help="Folder of results; what is there is kept.")]
ComparisonFormatOption = Annotated[
    str, typer.Option("--format", help="table, markdown, csv or latex.")
]
ComparisonFileOption = Annotated[
    Path | None, typer.Option(help="Write the comparison to this file, not the terminal.")
]
ForceFilesOption = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
AlsoPageOption = Annotated[
    Path | None, typer.Option(help="Also write the interactive page to this file.")
]
ListOption = Annotated[
    bool, typer.Option("--list", help="Show the tables and the time each takes here.")
]
TuneOption = Annotated[
    bool,
    typer.Option(
        "--tune", help="First choose each network: one hidden layer of 100, or three of 50."
    ),
]
TuneRoundsOption = Annotated[
    str | None, typer.Option(help="Rounds of each tuning run; default: up to 2,000.")
]
TuneSeedsOption = Annotated[
    str | None, typer.Option(help="Seeds of the tuning runs, N or A:B; default: 1000:1003.")
]
WorkersOption = Annotated[int | None, typer.Option(help="Batches at once; default: one per core.")]
AddressOption = Annotated[str | None, typer.Option(help="Ray cluster to use, with --engine ray.")]


@app.command(
    "reproduce",
    epilog="Example: feelgood reproduce main --testbed linear-20 --agents lints,lmcts",
)
def reproduce_command(
    table: TableArgument = None,
    seeds: PublishedSeedsOption = None,
    rounds: PublishedRoundsOption = None,
    testbed: TestbedsOption = None,
    agents: AgentsOption = None,
    preset: ReadingOption = "paper",
    store: KeptStoreOption = Path("feelgood-results"),
    format_: ComparisonFormatOption = "table",
    out: ComparisonFileOption = None,
    force: ForceFilesOption = False,
    page: AlsoPageOption = None,
    list_: ListOption = False,
    tune: TuneOption = False,
    tune_rounds: TuneRoundsOption = None,
    tune_seeds: TuneSeedsOption = None,
    engine: EngineOption = "local",
    workers: WorkersOption = None,
    address: AddressOption = None,
    data: DataOption = None,
) -> None:
    """Run what a table of the paper needs and print ours beside the published numbers."""
    view = console_for(None)
    if list_:
        view.print(catalogue_table())
        return
    _check_words(table, format_, tune, (tune_rounds, tune_seeds))

    from feelgood.cli.study import use_no_accelerator
    from feelgood.data.datasets import use_data
    from feelgood.studies import Store

    use_no_accelerator()
    use_data(data)
    assert table is not None, "it was checked"
    chosen, code = _chosen(table, split_names(testbed), split_names(agents), preset)
    wanted = Wanted(table, chosen, seeds, _rounds(rounds))
    plan, beside = wanted.plan(), dataclasses.replace(wanted, rows=code).plan() if code else None
    tuning = wanted.tuning(tune_seeds, _rounds(tune_rounds)) if tune else None
    prepare_output([path for path in (out, page) if path], force)
    shown = Presentation(view, format_, out, page)
    results = Store(store)
    run = functools.partial(_run, results, engine=engine, workers=workers, address=address)
    failures: dict[str, str] = {}
    if tuning is not None:
        failures |= run(tuning.study(f"tune {table}"))
        choices = tuning.choices(results)
        wanted = wanted.with_networks(choices)
        plan = wanted.plan()
        shown.aside.print(networks_table(choices, tuning))
    study = plan.study(f"reproduce {table}")
    failures |= run(study)
    failures |= run(beside.study(f"reproduce {table}, released")) if beside else {}
    on_page = results.results(study.cells) if study is not None and page is not None else None
    released = _compared(beside, results) if beside else None
    shown.show(wanted, plan.results(results), on_page, released)
    _check_failures(failures)


def _chosen(
    table: str, testbeds: Sequence[str] | None, agents: Sequence[str] | None, preset: str
) -> "tuple[Sequence[PublishedRow], Sequence[PublishedRow]]":
    """The rows of a table, and those of the released code where both are asked for."""
    from feelgood.paper.published_rows import PAPER, RELEASED, rows, to_row

    if preset != BOTH:
        return rows(table, testbeds, agents, preset), ()
    chosen = rows(table, testbeds, agents, PAPER)
    return chosen, [to_row(row.published, RELEASED) for row in chosen]


def _compared(plan: "ComparisonPlan", store: "Store") -> "Sequence[PublishedComparison]":
    """What the released code has, beside the published numbers."""
    from feelgood.report.published_comparisons import compare_rows

    return compare_rows(plan.rows, plan.results(store))


@dataclasses.dataclass(frozen=True)
class Wanted:
    """The rows of a table, and with how many seeds and rounds; None is as published."""

    table: str
    rows: "Sequence[PublishedRow]"
    seeds: str | None
    rounds: int | None

    def plan(self) -> "ComparisonPlan":
        """What to run."""
        from feelgood.paper.reproducing import plan_rows

        return plan_rows(self.rows, seeds=self.seeds, rounds=self.rounds)

    def tuning(self, seeds: str | None, rounds: int | None) -> "NetworkTuning":
        """What to run to choose networks."""
        from feelgood.paper.tuning import TUNING_SEEDS, plan_tuning

        return plan_tuning(
            self.rows,
            seeds=self.seeds,
            rounds=self.rounds,
            tuning_seeds=seeds or TUNING_SEEDS,
            tuning_rounds=rounds,
        )

    def with_networks(self, choices: "Sequence[NetworkChoice]") -> "Wanted":
        """The same rows with the networks that were chosen."""
        from feelgood.paper.tuning import with_choices

        return dataclasses.replace(self, rows=with_choices(self.rows, choices))


@dataclasses.dataclass(frozen=True)
class Presentation:
    """How and where the comparison is shown."""

    view: Console
    format_: str
    out: Path | None
    page: Path | None

    @property
    def aside(self) -> Console:
        """Where other messages go: apart from output that programs read."""
        return self.view if self.format_ == "table" and self.out is None else errors

    def show(
        self,
        wanted: Wanted,
        ours: "Sequence[AgentResult | str]",
        on_page: "Sequence[AgentResult] | None",
        released: "Sequence[PublishedComparison] | None" = None,
    ) -> None:
        """Write and print all that was asked for; without results there is no page."""
        from feelgood.paper.published_rows import TITLES
        from feelgood.report.published_comparisons import compare_rows, comparison_in_words

        comparisons = compare_rows(wanted.rows, ours, released=released)
        title = TITLES[wanted.table]
        page = self.page if on_page is not None else None
        # First the page: the terminal may be gone, full or unable to show the table.
        if page is not None and on_page is not None:
            from feelgood.report.page import build_page

            text = build_page(on_page, title, comparisons)
            write_atomically(page, lambda path: path.write_text(text, encoding="utf-8"))
        _show(self.view, comparisons, title, self.format_, self.out)
        if self.format_ == "table" and self.out is None:
            self.view.print(comparison_in_words(comparisons), markup=False, soft_wrap=True)
        if page is not None:
            self.aside.print(f"page: {page}", markup=False, soft_wrap=True)
            self.aside.print(f"open it: {command_to_open(page)}", markup=False, soft_wrap=True)


def _rounds(text: str | None) -> int | None:
    from feelgood.core.arguments import parse_rounds

    return None if text is None else parse_rounds(text)


def _check_words(
    table: str | None, format_: str, tune: bool, of_tuning: Sequence[str | None]
) -> None:
    if table is None:
        raise FeelgoodError("no table was named: name one, such as main; --list shows all.")
    if not tune and any(given is not None for given in of_tuning):
        raise FeelgoodError("--tune-rounds and --tune-seeds are for --tune: add it or leave them.")
    if format_ not in COMPARISON_FORMATS:
        hint = did_you_mean(format_, COMPARISON_FORMATS)
        raise FeelgoodError(f"unknown format '{format_}': {hint}")


def _check_failures(failures: dict[str, str]) -> None:
    """One sentence if batches could not be run."""
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
