"""What the studies ask for and `results/` lacks, as one study that may be run in pieces."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from feelgood.core.errors import FeelgoodError
from feelgood.engine.results import run_key
from feelgood.studies import Cell, Study, TunedStudy, read_study
from showdown import keeping, searching


@dataclasses.dataclass(frozen=True)
class Wanted:
    """Which part of what is missing: by names of studies, a testbed or an agent; None: all."""

    #: Run in this order; without any, all studies by name.
    studies: tuple[str, ...] = ()
    testbed: str | None = None
    agent: str | None = None
    #: Seeds below this number only.
    below: int | None = None

    def files(self, folder: Path) -> list[Path]:
        """The studies in their order; an error for a name that is not there."""
        files = {file.stem: file for file in sorted(folder.glob("*.toml"))}
        for name in self.studies:
            if name not in files:
                raise FeelgoodError(f"there is no study '{name}' in {folder}: see its files.")
        return [files[name] for name in self.studies or files]

    def seeds(self, cell: Cell) -> tuple[int, ...]:
        """The wanted seeds of a cell; none where it is not part of it."""
        pairs = ((self.testbed, cell.testbed), (self.agent, cell.agent))
        if any(wanted not in (None, name) for wanted, name in pairs):
            return ()
        return tuple(seed for seed in cell.seeds if self.below is None or seed < self.below)


def missing_study(
    studies: Path,
    folder: Path,
    wanted: Wanted,
    note: Callable[[str], None] = lambda text: None,
) -> Study | None:
    """The seeds that no row of the folder holds, each once however many studies ask for it.

    A study whose data set is not on this machine is named and left out. None: nothing is missing.
    """
    here = _seeds_here(folder)
    cells: list[Cell] = []
    plugins: dict[str, None] = {}
    for file in wanted.files(studies):
        try:
            plan = read_study(file).plan
        except FeelgoodError as error:
            note(f"{error} {file.stem} is left out.")
            continue
        for cell in _cells(file, plan, folder, note):
            key = (run_key(cell), cell.posterior_every is not None)
            seeds = tuple(seed for seed in wanted.seeds(cell) if seed not in here.get(key, ()))
            if seeds:
                cells.append(dataclasses.replace(cell, seeds=seeds))
                here.setdefault(key, set()).update(seeds)
                plugins |= dict.fromkeys(plan.plugins)
    return Study("missing", tuple(cells), tuple(plugins)) if cells else None


def _cells(
    file: Path, plan: Study | TunedStudy, folder: Path, note: Callable[[str], None]
) -> Sequence[Cell]:
    """What a study compares; of a tuned one, as far as its searches have been made."""
    if isinstance(plan, Study):
        return plan.cells
    rows = [row for row in searching.read(folder) if row["study"] == file.stem]
    left = searching.unfinished(plan, rows)
    if left:
        note(
            f"{left} of {len(plan.searches)} searches of {file.stem} are not in {folder}: run "
            f"'feelgood study run {file}' and collect its store."
        )
    return searching.compared(plan, rows)


def _seeds_here(folder: Path) -> dict[tuple[str, bool], set[int]]:
    """Seeds by what was run and whether measured: a measured seed is under True and under False."""
    seeds: dict[tuple[str, bool], set[int]] = {}
    for row in keeping.read_rows(folder):
        for measured in (False, True):
            if not measured or row["posterior"] is not None:
                key = (keeping.key_of_row(row), measured)
                seeds.setdefault(key, set()).add(row["seed"])
    return seeds


def listed(cells: Sequence[Cell]) -> Iterator[tuple[str, str, int, int]]:
    """Testbed, agent, number of settings and of seeds over all of them, in order."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.testbed, cell.agent), []).append(cell)
    for (testbed, agent), own in groups.items():
        yield testbed, agent, len({run_key(c) for c in own}), sum(len(c.seeds) for c in own)
