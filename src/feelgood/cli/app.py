"""The command line's frame: the application, and where its errors go."""

from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def _print_version(wanted: bool) -> bool:
    if wanted:
        from feelgood import __version__

        typer.echo(f"feelgood {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def start(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Feel-Good and MCMC Thompson Sampling for contextual bandits."""
    del version  # its callback has ended the program
