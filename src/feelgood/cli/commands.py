"""All commands: importing this module registers them."""

from feelgood.cli import (  # noqa: F401
    calibrate,
    challenge,
    data,
    inspect,
    posterior,
    report,
    reproduce,
    run,
    study,
    tune,
)
from feelgood.cli.app import app

__all__ = ["app"]
