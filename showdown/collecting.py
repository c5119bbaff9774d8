"""From stores to `results/`: what some study asks for, each seed once, newer runs first."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from feelgood.core.errors import FeelgoodError
from feelgood.engine.results import AgentResult, run_key
from feelgood.paper.published_numbers import all_published
from feelgood.paper.published_rows import READINGS, PublishedRow, missing, to_row
from feelgood.report.matching import row_key
from feelgood.studies import Store, TunedStudy, read_study
from showdown import asking, keeping, searching
from showdown.asking import Asked
from showdown.keeping import Kept, Row


@dataclasses.dataclass(frozen=True)
class Collected:
    """What a collection did."""

    files: tuple[Path, ...]
    results: int
    seeds: int
    #: Results of the stores that no study asks for: they are left out.
    unasked: int


def collect(
    stores: Sequence[Path],
    studies: Path,
    folder: Path,
    note: Callable[[str], None] = lambda text: None,
) -> Collected:
    """Add the stores' results to the folder and renew what each of them belongs to."""
    rows: dict[str, dict[int, Row]] = {}
    for row in keeping.read_rows(folder):
        rows.setdefault(keeping.key_of_row(row), {})[row["seed"]] = row
    for store in stores:
        for result in _cells(Store(store, create=False), note):
            seeds = rows.setdefault(run_key(result), {})
            for row in keeping.to_rows(Kept(result)):
                seeds[row["seed"]] = _newer(row, seeds.get(row["seed"]))
    asked, searched = _label_studies(rows, studies, folder, stores, note)
    unasked = [key for key, own in rows.items() if not next(iter(own.values()))["studies"]]
    for key in unasked:
        del rows[key]
    _label_numbers(rows)
    kept = [row for own in rows.values() for row in own.values()]
    files = keeping.write(folder, kept)
    asking.write(folder, asked)
    searching.write(folder, searched)
    return Collected(tuple(files), len(rows), len(kept), len(unasked))


def _cells(store: Store, note: Callable[[str], None]) -> Iterator[AgentResult]:
    """Every cell of a store by itself: measured and unmeasured ones differ in their seconds."""
    sums = store.checksums()
    for damage in store.verify():
        note(str(damage))
    for cell_id in sorted(store.present()):
        yield store.read(cell_id, sums.get(cell_id))


def _newer(row: Row, before: Row | None) -> Row:
    """The newer row of a seed, with what only the older one has.

    The labels are kept, in case they cannot be found again here. Measuring the posterior does not
    change a run but takes time. So measures come from the run that has them, and seconds from the
    run without.
    """
    if before is None:
        return row
    labels = {k: before[k] for k in ("studies", "numbers")}
    measures = {k: before[k] for k in ("posterior", "posterior_rounds")}
    seconds = {k: before[k] for k in ("run_s", "compile_s")}
    if row["posterior"] is None:
        return row | labels | measures
    return row | labels | seconds


def _label_studies(
    rows: dict[str, dict[int, Row]],
    studies: Path,
    folder: Path,
    stores: Sequence[Path],
    note: Callable[[str], None],
) -> tuple[list[Asked], list[searching.Row]]:
    """Which studies ask for a result. A study that needs absent data keeps what it had.

    What all of them ask for comes back, and what tuned ones have tried.
    """
    before, tried = asking.read(folder), searching.read(folder)
    everything: list[Asked] = []
    searched: list[searching.Row] = []
    asked: dict[str, set[str]] = {}
    unknown = set()
    for file in sorted(studies.glob("*.toml")):
        try:
            plan = read_study(file).plan
        except FeelgoodError as error:
            note(f"{error} Its results keep their labels.")
            unknown.add(file.stem)
            everything += [a for a in before if a.study == file.stem]
            searched += [row for row in tried if row["study"] == file.stem]
            continue
        if isinstance(plan, TunedStudy):
            own_rows = searching.renewed(file.stem, plan, stores, tried)
            searched += own_rows
            cells = searching.compared(plan, own_rows)
        else:
            cells = plan.cells
        everything += asking.asked_by(file.stem, cells)
        for cell in cells:
            asked.setdefault(run_key(cell), set()).add(file.stem)
    for key, own in rows.items():
        old = {name for row in own.values() for name in row["studies"]} & unknown
        _set(own.values(), "studies", sorted(old | asked.get(key, set())))
    return everything, searched


def _label_numbers(rows: dict[str, dict[int, Row]]) -> None:
    """Which published numbers a result stands beside: the paper's own rounds, else the most."""
    lengths: dict[tuple[str, str], set[int]] = {}
    for own in rows.values():
        row = next(iter(own.values()))
        lengths.setdefault((row["testbed"], row["agent"]), set()).add(row["rounds"])
    found: dict[str, list[int]] = {}
    unknown = set()
    keys: dict[str, str | None] = {}  # several numbers belong to one run: plan it once
    for number, line in _lines():
        if missing(line) is not None:
            continue
        here = lengths.get((line.testbed, line.agent), set())
        for rounds in sorted(here, key=lambda n: (n != line.rounds, -n)):
            told = (line.testbed, line.testbed_settings, line.agent, line.preset, line.settings)
            plan = str((*told, rounds))
            if plan not in keys:
                keys[plan] = row_key(line, rounds)
            key = keys[plan]
            if key is None:
                unknown.add(number)
                break
            if key in rows:
                found.setdefault(key, []).append(number)
                break
    for key, own in rows.items():
        old = {n for row in own.values() for n in row["numbers"]} & unknown
        _set(own.values(), "numbers", sorted(old | set(found.get(key, ()))))


def _lines() -> Iterator[tuple[int, PublishedRow]]:
    """Every published number as the paper's text has it, and as the released code has it."""
    for number, published in enumerate(all_published()):
        for reading in READINGS:
            yield number, to_row(published, reading)


def _set(rows: Iterable[Row], name: str, value: list[str] | list[int]) -> None:
    for row in rows:
        row[name] = value
