"""The command line's frame: the application, its errors and what commands share."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
errors = Console(stderr=True, highlight=False, soft_wrap=True)

PluginOption = Annotated[
    list[str] | None,
    typer.Option("--plugin", help="Python file or module that registers agents or testbeds."),
]

DataOption = Annotated[
    Path | None, typer.Option("--data", help="Folder with datasets; default: FEELGOOD_DATA.")
]

RoundsOption = Annotated[
    str | None, typer.Option(help="Rounds, such as 500, 10k or 1e4; default: the testbed's.")
]
SEEDS_HELP = "N for seeds 0 to N-1, a range A:B, or a list such as 1,2,3."


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
