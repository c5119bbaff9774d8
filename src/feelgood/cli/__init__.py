"""The command line: thin. It parses, calls, prints; everything else lives elsewhere.

One file a command or group of commands; importing the file registers it.
"""

from feelgood.cli import (  # noqa: F401  (registers the commands)
    challenge,
    data,
    inspect,
    posterior,
    report,
    reproduce,
    run,
    study,
)
from feelgood.cli.app import app, main

__all__ = ["app", "main"]
