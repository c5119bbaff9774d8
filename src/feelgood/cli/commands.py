"""All commands: importing this module registers them."""

import typer

from feelgood.cli import (  # noqa: F401
    challenge,
    data,
    inspect,
    posterior,
    report,
    reproduce,
    run,
    study,
)
from feelgood.cli.app import app
from feelgood.cli.examples import EXAMPLES

__all__ = ["app"]


def _add_examples(group: typer.Typer, prefix: str = "") -> None:
    """Put each command's example below its help text."""
    for command in group.registered_commands:
        name = f"{prefix}{command.name or getattr(command.callback, '__name__', '')}"
        if name in EXAMPLES:
            command.epilog = f"Example: {EXAMPLES[name]}"
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            _add_examples(inner.typer_instance, f"{prefix}{inner.name} ")


_add_examples(app)
