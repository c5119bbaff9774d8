"""`python -m showdown collect | pages`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from feelgood.errors import FeelgoodError

ROOT = Path(__file__).resolve().parents[1]
app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)
ResultsOption = Annotated[Path, typer.Option("--results", help="Folder of the small files.")]


@app.command()
def collect(
    stores: Annotated[list[Path], typer.Argument(help="Stores that studies have written.")],
    studies: Annotated[Path, typer.Option(help="Folder of study files.")] = ROOT / "studies",
    results: ResultsOption = ROOT / "results",
) -> None:
    """Put what the studies ask for into results/, beside what is there."""
    from showdown.collecting import collect as gather

    done = gather(stores, studies, results, note=lambda text: typer.echo(text, err=True))
    size = sum(file.stat().st_size for file in done.files) / 1e6
    typer.echo(
        f"{results}: {done.results} results, {done.seeds} seeds, {size:.2f} MB; "
        f"{done.unasked} results that no study asks for were left out"
    )


@app.command()
def pages(
    results: ResultsOption = ROOT / "results",
    out: Annotated[Path, typer.Option(help="Folder of the pages.")] = ROOT / "docs" / "results",
) -> None:
    """Write the pages from results/ alone."""
    from showdown.pages import write_pages

    for path in write_pages(results, out):
        typer.echo(f"wrote {path}")


def main() -> None:
    """The command; bad input ends it with one sentence."""
    try:
        app()
    except FeelgoodError as error:
        typer.echo(f"showdown: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
