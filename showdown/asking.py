"""What the studies ask for, kept beside the results, so that the pages can say what is missing."""

import csv
import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

from feelgood.studies import Cell
from showdown.book import Book, grid, section

FILE = "asked.csv"
#: More agents than this are counted, not named.
MANY = 4


@dataclasses.dataclass(frozen=True)
class Asked:
    """How many seeds a study asks for, over all settings of an agent on a testbed."""

    study: str
    testbed: str
    agent: str
    seeds: int
    #: Whether draws are to be measured along the run.
    measured: bool


def asked_by(name: str, cells: Iterable[Cell]) -> list[Asked]:
    """What a study asks for, in its own order."""
    seeds: dict[tuple[str, str, bool], int] = {}
    for cell in cells:
        key = (cell.testbed, cell.agent, cell.posterior_every is not None)
        seeds[key] = seeds.get(key, 0) + len(cell.seeds)
    return [Asked(name, *key[:2], count, key[2]) for key, count in seeds.items()]


def read(folder: Path) -> list[Asked]:
    """What was written; nothing where there is no file."""
    path = folder / FILE
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            Asked(
                line["study"],
                line["testbed"],
                line["agent"],
                int(line["seeds"]),
                line["measured"] == "yes",
            )
            for line in csv.DictReader(file)
        ]


def write(folder: Path, asked: Iterable[Asked]) -> None:
    """One line per study, testbed and agent."""
    names = [field.name for field in dataclasses.fields(Asked)]
    with (folder / FILE).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for a in asked:
            writer.writerow([a.study, a.testbed, a.agent, a.seeds, "yes" if a.measured else "no"])


# The page's part -----------------------------------------------------------------------------


def _here(book: Book) -> dict[tuple[str, str, str, bool], int]:
    """Number of kept seeds by study, testbed, agent, and whether only measured ones count."""
    counts: dict[tuple[str, str, str, bool], int] = {}
    for kept in book.shelf.kept:
        for study in kept.studies:
            for measured in (False, True):
                if not measured or kept.result.posterior is not None:
                    key = (study, kept.result.testbed, kept.result.agent, measured)
                    counts[key] = counts.get(key, 0) + len(kept.result.seeds)
    return counts


def what_is_missing(book: Book, asked: Sequence[Asked]) -> str:
    """Which studies are not finished, and what of them is missing."""
    here = _here(book)
    total = sum(a.seeds for a in asked)
    there = 0
    rows = []
    for study in dict.fromkeys(a.study for a in asked):
        own = [a for a in asked if a.study == study]
        counts = [min(a.seeds, here.get((*_key(a), a.measured), 0)) for a in own]
        there += sum(counts)
        wanted = sum(a.seeds for a in own)
        if sum(counts) < wanted:
            lacking = [a for a, count in zip(own, counts, strict=True) if count < a.seeds]
            rows.append([f"`{study}`", f"{sum(counts)} of {wanted}", _named(lacking, own)])
    said = (
        f"The [studies](../../studies/README.md) ask for {total:,} runs of one seed each, counted "
        f"once for every study that asks; {there:,} are here. Where a study is not finished, what "
        "these pages say rests on the part that is."
    )
    table = grid(("study", "here", "missing, wholly or in part"), rows, numbers=3) if rows else ""
    return section("What has not been run", said if asked else "Not known.", table)


def _key(a: Asked) -> tuple[str, str, str]:
    return (a.study, a.testbed, a.agent)


def _named(lacking: Sequence[Asked], own: Sequence[Asked]) -> str:
    """`linear-40: fgmalats; logistic-20`: a testbed alone stands for all its agents."""
    parts = []
    for testbed in dict.fromkeys(a.testbed for a in lacking):
        agents = [a.agent for a in lacking if a.testbed == testbed]
        if len(agents) == sum(a.testbed == testbed for a in own):
            parts.append(testbed)
        elif len(agents) > MANY:
            parts.append(f"{testbed}: {len(agents)} agents")
        else:
            parts.append(f"{testbed}: {', '.join(f'`{name}`' for name in agents)}")
    return "; ".join(parts)
