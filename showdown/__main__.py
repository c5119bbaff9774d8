"""`python -m showdown missing | fill | collect | yardsticks | arm-laws | pages`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from feelgood.core.errors import FeelgoodError

ROOT = Path(__file__).resolve().parents[1]
app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)
ResultsOption = Annotated[Path, typer.Option("--results", help="Folder of the small files.")]
StudiesOption = Annotated[Path, typer.Option(help="Folder of study files.")]
StudyOption = Annotated[
    list[str] | None, typer.Option(help="Of this study only; several are taken in their order.")
]
TestbedOption = Annotated[str | None, typer.Option(help="On this testbed only.")]
AgentOption = Annotated[str | None, typer.Option(help="Of this agent only.")]
BelowOption = Annotated[int | None, typer.Option(help="Of seeds below this number only.")]


@app.command()
def missing(
    study: StudyOption = None,
    testbed: TestbedOption = None,
    agent: AgentOption = None,
    below: BelowOption = None,
    studies: StudiesOption = ROOT / "studies",
    results: ResultsOption = ROOT / "results",
) -> None:
    """List what the studies ask for and results/ lacks."""
    from showdown.filling import Wanted, listed, missing_study

    left = missing_study(studies, results, Wanted(tuple(study or ()), testbed, agent, below), _note)
    for name, player, settings, seeds in listed(left.cells) if left else ():
        several = f"{settings} settings, " if settings > 1 else ""
        typer.echo(f"{name} {player}: {several}{seeds} runs")
    typer.echo(f"{sum(len(c.seeds) for c in left.cells) if left else 0} runs are missing")


@app.command()
def fill(
    store: Annotated[Path, typer.Argument(help="Where the results go, for `collect`.")],
    study: StudyOption = None,
    testbed: TestbedOption = None,
    agent: AgentOption = None,
    below: BelowOption = None,
    workers: Annotated[int | None, typer.Option(help="As for `feelgood study run`.")] = None,
    studies: StudiesOption = ROOT / "studies",
    results: ResultsOption = ROOT / "results",
) -> None:
    """Run what is missing, or part of it; interrupted, it goes on where it was."""
    from feelgood.cli.study import check_outcome, run_watched, use_no_accelerator
    from feelgood.studies import Store
    from showdown.filling import Wanted, missing_study

    use_no_accelerator()
    left = missing_study(studies, results, Wanted(tuple(study or ()), testbed, agent, below), _note)
    if left is None:
        typer.echo("nothing of this is missing")
        return
    outcome = run_watched(left, Store(store), workers=workers)
    typer.echo(f"{store}: {outcome.done} of {len(left.cells)} cells are there")
    check_outcome(outcome)


@app.command()
def collect(
    stores: Annotated[list[Path], typer.Argument(help="Stores that studies have written.")],
    studies: StudiesOption = ROOT / "studies",
    results: ResultsOption = ROOT / "results",
) -> None:
    """Put what the studies ask for into results/, beside what is there."""
    from showdown.collecting import collect as gather

    done = gather(stores, studies, results, note=_note)
    size = sum(file.stat().st_size for file in done.files) / 1e6
    typer.echo(
        f"{results}: {done.results} results, {done.seeds} seeds, {size:.2f} MB; "
        f"{done.unasked} results that no study asks for were left out"
    )


@app.command()
def pages(
    results: ResultsOption = ROOT / "results",
    out: Annotated[Path, typer.Option(help="Folder of the pages.")] = ROOT / "docs" / "results",
    check: Annotated[bool, typer.Option("--check", help="Only say which are not fresh.")] = False,
) -> None:
    """Write the pages from results/ alone, and what `feelgood challenge` compares with."""
    from showdown import baselines
    from showdown.book import Book
    from showdown.pages import stale, write_pages

    book, shipped = Book.open(results), results.resolve() == ROOT / "results"
    if check:
        found = stale(book, results, out) + (baselines.stale(book.shelf.kept) if shipped else [])
        for name in found:
            typer.echo(f"{name} is not what the results give: run `make results`.")
        raise typer.Exit(1 if found else 0)
    for path in write_pages(book, results, out):
        typer.echo(f"wrote {path}")
    if shipped:
        typer.echo(f"wrote {baselines.write(book.shelf.kept)}")


@app.command()
def yardsticks(
    results: ResultsOption = ROOT / "results",
    again: Annotated[bool, typer.Option(help="Also those that are there.")] = False,
) -> None:
    """Measure chance, the best fixed arm and a told learner wherever results have none yet."""
    from showdown import keeping
    from showdown import yardsticks as sticks

    wanted = [sticks.key_of(kept.result) for kept in keeping.read(results)]
    known = {} if again else sticks.read(results)
    typer.echo(f"wrote {sticks.write(results, sticks.measure(wanted, known, _note))}")


@app.command()
def arm_laws(
    studies: StudiesOption = ROOT / "studies", results: ResultsOption = ROOT / "results"
) -> None:
    """Follow the samplers of the worlds along one history, beside the exact law: 20 minutes."""
    from showdown import arm_laws as laws

    typer.echo(f"wrote {laws.write(results, laws.measure(studies, _note))}")


def _note(text: str) -> None:
    typer.echo(text, err=True)


def main() -> None:
    """The command; bad input ends it with one sentence."""
    try:
        app()
    except FeelgoodError as error:
        typer.echo(f"showdown: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
