"""The command line's frame: the application, its errors, its plugins."""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
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


def main() -> None:
    """Entry point: bad input is one sentence and exit code 2, never a traceback."""
    try:
        app()
    except FeelgoodError as error:
        errors.print(f"feelgood: {error}", style="red", markup=False)
        sys.exit(2)


def load_plugins(plugins: Sequence[str] | None) -> None:
    """Import the files and modules that register more agents and testbeds."""
    for plugin in plugins or ():
        path = Path(plugin)
        try:
            if path.suffix == ".py":
                spec = importlib.util.spec_from_file_location(path.stem, path)
                if spec is None or spec.loader is None or not path.exists():
                    raise FeelgoodError(f"plugin file '{plugin}' does not exist: check the path.")
                module = importlib.util.module_from_spec(spec)
                sys.modules[path.stem] = module
                spec.loader.exec_module(module)
            else:
                importlib.import_module(plugin)
        except FeelgoodError:
            raise
        except Exception as error:
            raise FeelgoodError(
                f"plugin '{plugin}' could not be imported ({type(error).__name__}: {error}): "
                "mend it or leave it out."
            ) from error
