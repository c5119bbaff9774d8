"""The command line's frame: the application and its errors."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from feelgood.errors import FeelgoodError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Feel-Good and MCMC Thompson Sampling for contextual bandits.",
)
errors = Console(stderr=True, highlight=False, soft_wrap=True)

PluginOption = Annotated[
    list[str] | None,
    typer.Option("--plugin", help="Python file or module that registers agents or testbeds."),
]

DataOption = Annotated[
    Path | None, typer.Option("--data", help="Folder with datasets; default: FEELGOOD_DATA.")
]


def main() -> None:
    """Entry point: bad input is one sentence and exit code 2, never a traceback."""
    try:
        app()
    except FeelgoodError as error:
        errors.print(f"feelgood: {error}", style="red", markup=False)
        sys.exit(2)
