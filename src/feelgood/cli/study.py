"""`feelgood study`: run, show and export a study."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from feelgood.cli.app import app, errors
from feelgood.cli.options import DataOption, EngineOption, ForceFileOption
from feelgood.cli.output import WIDTH_OF_FILES, prepare_output, write_atomically
from feelgood.core.errors import FeelgoodError

if TYPE_CHECKING:
    from feelgood.studies import Store, Study, StudyOutcome, TunedStudy
    from feelgood.studies.planning import StudyPart

study = typer.Typer(no_args_is_help=True, help="Run, show and export studies.")
app.add_typer(study, name="study")

STOPPED = (
    "feelgood: interrupted; what is finished is kept, and the same command goes on from the last "
    "checkpoints."
)
FileArgument = Annotated[Path, typer.Argument(help="The study file (TOML); see docs/studies.md.")]
StoreOption = Annotated[
    Path | None, typer.Option("--store", help="Results folder; default: as the file says.")
]
PosteriorOption = Annotated[
    int | None,
    typer.Option(
        "--posterior-every",
        help="Measure the agents' posteriors every so many rounds; default: as the file says.",
    ),
]


def use_no_accelerator() -> None:
    """Keep this process off the accelerator, whose memory the worker needs."""
    import jax

    with contextlib.suppress(RuntimeError):  # in use already: then it is the caller's choice
        jax.config.update("jax_platforms", "cpu")


def note(sentence: str) -> None:
    """Say something that the user must know about what is shown."""
    errors.print(f"feelgood: {sentence}", style="yellow", markup=False)


def view() -> Console:
    """Standard output, at a fixed width where it is no terminal."""
    out = Console(highlight=False)
    if not out.is_terminal:
        out.width = WIDTH_OF_FILES
    return out


def run_watched(study: "Study | TunedStudy", store: "Store", **options: Any) -> "StudyOutcome":
    """`run_study` with its progress on the terminal; interrupted, it says so and ends with 130."""
    from feelgood.cli.progress import study_watcher
    from feelgood.studies import run_study

    try:
        with study_watcher(errors) as watcher:
            return run_study(study, store, watcher=watcher, **options)
    except KeyboardInterrupt:
        errors.print(STOPPED)
        raise typer.Exit(130) from None


def check_outcome(outcome: "StudyOutcome") -> None:
    """An error in one sentence if cells could not be run."""
    if outcome.failures:
        label, reason = next(iter(outcome.failures.items()))
        raise FeelgoodError(
            f"{outcome.missing} of {outcome.done + outcome.missing} cells could not be run; the "
            f"first were {label}: {reason.rstrip('.')}."
        )


@study.command("run", epilog="Example: feelgood study run study.toml --workers 2")
def study_run_command(
    file: FileArgument,
    store: StoreOption = None,
    posterior_every: PosteriorOption = None,
    engine: EngineOption = "local",
    workers: Annotated[
        int | None, typer.Option(help="Batches at once; default: one per core, or one on a GPU.")
    ] = None,
    address: Annotated[str | None, typer.Option(help="Address of a running Ray cluster.")] = None,
    checkpoint_every: Annotated[
        float, typer.Option(help="Seconds between two checkpoints of a batch.", min=0.0)
    ] = 20.0,
    data: DataOption = None,
) -> None:
    """Run what is missing of a study; an interrupted one goes on where it was."""
    from feelgood.cli.output import result_table
    from feelgood.data.datasets import use_data
    from feelgood.studies import Store, read_study

    use_no_accelerator()
    use_data(data)
    given = read_study(file, posterior_every)
    place = Store(store or given.store, notify=note)
    outcome = run_watched(
        given.plan,
        place,
        engine=engine,
        workers=workers,
        address=address,
        checkpoint_every=checkpoint_every,
    )
    out = view()
    for part in given.plan.parts(place.path):
        if part.table is not None:
            out.print(f"search: {part.table}", markup=False, soft_wrap=True)
            continue
        results = place.results(part.study.cells)
        for testbed in dict.fromkeys(r.testbed for r in results):
            out.print(result_table([r for r in results if r.testbed == testbed]))
    out.print(f"results: {place.path}", markup=False, soft_wrap=True)
    check_outcome(outcome)


@study.command("show", epilog="Example: feelgood study show study.toml")
def study_show_command(
    file: FileArgument, store: StoreOption = None, posterior_every: PosteriorOption = None
) -> None:
    """What is done, running and missing, and how long the rest will take."""
    from feelgood.studies import read_study

    use_no_accelerator()
    given = read_study(file, posterior_every)
    out = view()
    parts = given.plan.parts(store or given.store)
    for part in parts:
        _show_part(part, out)
    if parts[-1].table is not None:
        out.print("The comparison is planned agent by agent as its search ends.", markup=False)


def _show_part(part: "StudyPart", out: Console) -> None:
    """The cells of a part, agent by agent."""
    from feelgood.core.atomic import reading
    from feelgood.core.numbers import duration
    from feelgood.engine.device import usable_cores
    from feelgood.studies import Store
    from feelgood.studies.status import status

    study = part.study
    with reading(part.folder):
        begun = part.folder.exists()
    if not begun:
        out.print(f"{study.name}: {len(study.cells)} cells, none run yet.", markup=False)
        return
    table = Table(title=f"{study.name}: cells of up to 10 seeds")
    for column in ("testbed", "agent"):
        table.add_column(column)
    for column in ("done", "running", "missing", "left, one worker"):
        table.add_column(column, justify="right")
    lines = list(status(study, Store(part.folder, create=False, notify=note)))
    for line in lines:
        left = "unknown" if line.left_s is None else duration(line.left_s) if line.left_s else ""
        table.add_row(
            line.testbed, line.agent, str(line.done), str(line.running), str(line.missing), left
        )
    out.print(table)
    known = [line.left_s for line in lines if line.left_s is not None]
    unknown = len(lines) - len(known)
    rest = sum(known) / usable_cores()
    out.print(
        f"{sum(line.done for line in lines)} of {len(study.cells)} cells done; about "
        f"{duration(rest)} left on {usable_cores()} cores"
        + (f", and {unknown} agents that were never timed here" if unknown else ""),
        markup=False,
    )


@study.command("export", epilog="Example: feelgood study export study.toml --format csv")
def study_export_command(
    file: FileArgument,
    format_: Annotated[str, typer.Option("--format", help="parquet, csv or arrow.")] = "parquet",
    out: Annotated[Path | None, typer.Option(help="File to write; default: NAME.FORMAT.")] = None,
    store: StoreOption = None,
    posterior_every: PosteriorOption = None,
    force: ForceFileOption = False,
) -> None:
    """Write all finished cells of a study as one file, one row per seed.

    Of a tuned study these are the comparison's.
    """
    from feelgood.studies import Store, read_study
    from feelgood.studies.export import EXPORT_FORMATS, write_table

    if format_ not in EXPORT_FORMATS:
        raise FeelgoodError(f"unknown format '{format_}': use {', '.join(EXPORT_FORMATS)}.")
    use_no_accelerator()
    given = read_study(file, posterior_every)
    target = out or Path(f"{given.plan.name}.{format_}")
    place = Store(store or given.store, create=False, notify=note)
    last = given.plan.parts(place.path)[-1]
    table = place.table(last.study.cells)
    if not table.num_rows:
        raise FeelgoodError(f"{place.path} has no finished cell of this study: run it first.")
    prepare_output([target], force)
    write_atomically(target, lambda path: write_table(table, path, format_))
    view().print(f"wrote {target}: {table.num_rows} rows", markup=False, soft_wrap=True)
