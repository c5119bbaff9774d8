"""The command line: thin. It parses, calls, prints; everything else lives elsewhere.

One file a command or group of commands; importing the file registers it.
"""

from feelgood.cli import data, inspect, reproduce, run  # noqa: F401  (registers the commands)
from feelgood.cli.app import app, main

__all__ = ["app", "main"]
