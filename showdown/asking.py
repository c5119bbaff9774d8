"""What the studies ask for, kept beside the results, so that the pages can say what is missing."""

import csv
import dataclasses
from collections.abc import Iterable
from pathlib import Path

from feelgood.studies import Cell

FILE = "asked.csv"


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
