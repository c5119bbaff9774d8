"""Options that several commands share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

SEEDS_HELP = "N for seeds 0 to N-1, a range A:B, or a list such as 1,2,3."

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
SetOption = Annotated[list[str] | None, typer.Option("--set", help="agent.key=value.")]
PosteriorPresetOption = Annotated[
    str | None, typer.Option(help="paper: the paper's settings, in place of equal temperatures.")
]
JsonOption = Annotated[
    str | None, typer.Option("--json", help="Write results to this file, or - for stdout.")
]
PageOption = Annotated[Path | None, typer.Option(help="Write the interactive page to this file.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite existing results.")]
ForceFileOption = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]
EngineOption = Annotated[str, typer.Option(help="local or ray.")]


def json_path(json_: str | None) -> Path | None:
    """The file that `--json` names; None where it is not given, or is standard output."""
    return None if json_ in (None, "-") else Path(str(json_))


def split_names(given: Sequence[str] | None) -> list[str]:
    """Names from options that may be repeated or hold several, separated by commas."""
    return [name.strip() for text in given or () for name in text.split(",") if name.strip()]
