"""`feelgood data`: list, fetch, path and verify the real datasets."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TransferSpeedColumn,
)

from feelgood.cli.app import app, errors
from feelgood.cli.options import DataOption
from feelgood.core.errors import FeelgoodError

commands = typer.Typer(no_args_is_help=True, help="Real datasets: list, fetch, path, verify.")
app.add_typer(commands, name="data")

NameArgument = Annotated[str | None, typer.Argument(help="A dataset; all if left out.")]


@contextmanager
def _download_bar(console: Console) -> Iterator[Callable[[str, int, int | None], None]]:
    """A live bar on a terminal; nothing elsewhere."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        tasks: dict[str, TaskID] = {}

        def report(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = bar.add_task(file, total=total)
            bar.update(tasks[file], completed=done, total=total)

        yield report


@commands.command("list", epilog="Example: feelgood data list")
def data_list_command(data: DataOption = None) -> None:
    """List the datasets, and where each one is."""
    from feelgood.data.datasets import DATASETS, find, use_data

    use_data(data)
    out = Console(highlight=False, soft_wrap=True)
    width = max(map(len, DATASETS))
    for name, entry in DATASETS.items():
        place = find(name) or "absent"
        out.print(f"{name:<{width}}  {entry.rows:>7,} rows  {place}", markup=False)
        out.print(f"{'':<{width}}  {entry.doc}", style="dim", markup=False)
    place = "in scikit-learn" if find_spec("sklearn") else "absent: pip install 'feelgood[digits]'"
    out.print(f"{'digits':<{width}}  {1797:>7,} rows  {place}", markup=False)


@commands.command("fetch", epilog="Example: feelgood data fetch mushroom")
def data_fetch_command(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Datasets to get.")],
    from_: Annotated[
        Path | None,
        typer.Option("--from", help="Folder with the published files; nothing is downloaded."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Get it again.")] = False,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds to wait for a silent server.")
    ] = 30.0,
    data: DataOption = None,
) -> None:
    """Download datasets from their public homes, check them and keep them in the cache folder."""
    from feelgood.data import fetching
    from feelgood.data.datasets import dataset, use_data

    use_data(data)
    if from_ is not None and not from_.is_dir():
        raise FeelgoodError(f"--from {from_} is no folder: name the one with the published files.")
    for name in names:
        dataset(name)  # a wrong name is refused before anything is downloaded
    for name in names:
        with _download_bar(errors) as report:
            path = fetching.fetch(name, given=from_, force=force, timeout=timeout, report=report)
        typer.echo(f"{name}: {path}")


@commands.command("path", epilog="Example: feelgood data path mushroom")
def data_path_command(name: NameArgument = None, data: DataOption = None) -> None:
    """Print the folder of fetched datasets, or the file of one dataset."""
    from feelgood.data.datasets import data_folder, fetched_folder, located, use_data

    use_data(data)
    typer.echo(located(name) if name else data_folder() or fetched_folder())


@commands.command("verify", epilog="Example: feelgood data verify")
def data_verify_command(name: NameArgument = None, data: DataOption = None) -> None:
    """Check datasets against their pinned hashes: all that are here, or one."""
    from feelgood.data.datasets import DATASETS, find, located, read_archive, use_data

    use_data(data)
    wrong = []
    for each in [name] if name else DATASETS:
        where = located(each) if name else find(each)
        if where is None:
            typer.echo(f"{each}: absent")
            continue
        try:
            read_archive(each, where)
        except FeelgoodError as error:
            wrong.append(each)
            typer.echo(f"{each}: wrong: {error}")
        else:
            typer.echo(f"{each}: right: {where}")
    if wrong:
        raise FeelgoodError(f"{', '.join(wrong)} cannot be used: see above what to do.")
