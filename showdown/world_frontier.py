"""Worst case against Bayes: the frontier of the worlds, for their page, their tables and a file."""

from collections.abc import Sequence

import numpy as np

from feelgood.stats.intervals import bca
from showdown import pairs, world_figures, yardsticks
from showdown.book import Book, grid, section
from showdown.effects import estimate, number
from showdown.world_runs import (
    FRONTIER,
    HOT,
    KINDS,
    MIRRORED,
    Point,
    Worst,
    beaten_by,
    largest_regrets,
    on_frontier,
    place,
    points_of,
)
from showdown.yardsticks import Yardstick

PAGE, FILE = "worlds-frontier.md", "worlds-frontier"
TITLE = "Worst case against Bayes"
NOT_RUN = "Not run."
#: The default weight and the temperature beside it, as points call them.
DEFAULT, HEAT = "λ_s = 1/√s", f"temperature {HOT:g}"


def points(book: Book) -> list[Point]:
    """All agents in all worlds of the study."""
    return book.once(FILE, lambda: points_of(book.shelf.of(FRONTIER)))


def fronts(found: Sequence[Point]) -> dict[str, list[Point]]:
    """The frontier of each world."""
    testbeds = dict.fromkeys(p.testbed for p in found)
    return {name: on_frontier([p for p in found if p.testbed == name]) for name in testbeds}


def rows(book: Book) -> list[pairs.Row]:
    """All points, for a file."""
    found = points(book)
    front = fronts(found)
    out = []
    for p in found:
        row: pairs.Row = {"world": p.testbed, "agent": p.title, "seeds": len(p.bad)}
        for name in (*MIRRORED, "bayes"):
            mean = bca(getattr(p, name))
            row |= {name: mean.value, f"{name}_low": mean.low, f"{name}_high": mean.high}
            row[f"{name}_median"] = float(np.median(getattr(p, name)))
        out.append(row | {"on_the_frontier": "yes" if p in front[p.testbed] else "no"})
    return out


# The part ------------------------------------------------------------------------------------


def part(book: Book) -> str:
    """What the page of the worlds has of it."""
    found = points(book)
    if not found:
        return section(TITLE, NOT_RUN)
    figure = book.figure(
        "worlds-frontier",
        "Regret in the bad world over that under the prior (left) and in the mirror (right). The "
        "frontier is ringed.",
        lambda: world_figures.frontier(found),
    )
    about = (
        "On the *frontier* are agents that no other one beats both in the bad world and averaged "
        f"over the prior: [world by world]({PAGE})."
    )
    return section(TITLE, about, figure, _worst(book, found), _said(found))


def shown(found: Sequence[Point]) -> list[Worst]:
    """The default bonus, and of each kind the agent with the lowest worst case."""
    worst = largest_regrets(found)
    least = {kind: next((w for w in worst if w.kind == kind), None) for kind in KINDS}
    return [w for w in worst if w in least.values() or w.name in (DEFAULT, HEAT)]


def _worst(book: Book, found: Sequence[Point]) -> str:
    front = fronts(found)
    table = [
        [w.name, str(_count(w, front)), estimate(w.regret), w.where, estimate(w.average)]
        for w in shown(found)
    ]
    chance = [y for _, y in _yardsticks(book)]
    if chance:
        most = max(chance, key=lambda y: y.uniform)
        table.append(["chance", "", number(most.uniform), _where(book, most), ""])
        table.append(["best fixed arm", "", number(max(y.fixed for y in chance)), "", ""])
    header = (
        "agent",
        f"frontiers, of {len(front)}",
        "worst result",
        "where",
        "average over priors",
    )
    return (
        "The worst result over these bad worlds and mirrors, and the average over all priors, of "
        f"the best agents of each kind:\n\n{grid(header, table)}"
    )


def _count(w: Worst, front: dict[str, list[Point]]) -> int:
    return sum(any(p.name == w.name for p in own) for own in front.values())


def _said(found: Sequence[Point]) -> str:
    constant = [p for p in found if p.kind == "constant λ"]
    falling = [p for p in found if p.kind == "λ_s = c/√s"]
    lost = [p for p in constant if beaten_by(p, falling)]
    weights, worlds = ({getattr(p, name) for p in constant} for name in ("label", "testbed"))
    best = [p for own in fronts(found).values() for p in own if p in constant]
    said = (
        f"Of {len(constant)} constant weights ({len(weights)} in {len(worlds)} worlds) "
        f"{len(lost)} lose to some falling one both in the bad world and on average, beyond "
        "uncorrected intervals."
    )
    if not best:
        return f"{said} None is on a frontier."
    return f"{said} Only those up to {max((p.label for p in best), key=float)} are on a frontier."


# Yardsticks ----------------------------------------------------------------------------------


def _yardsticks(book: Book) -> list[tuple[str, Yardstick]]:
    """With `bad` or `mirror`."""
    found = []
    for world in MIRRORED:
        runs = [r for r in book.shelf.of(FRONTIER) if r.testbed_settings["world"] == world]
        found += [(world, y) for y in yardsticks.those_of(runs, book.yardsticks)]
    return found


def _where(book: Book, yardstick: Yardstick) -> str:
    own = (yardstick.testbed, yardstick.settings)
    run = next(r for r in book.shelf.of(FRONTIER) if yardsticks.key_of(r)[:2] == own)
    return f"{place(run)}, {run.testbed_settings['world']}"


# Tables --------------------------------------------------------------------------------------


def tables(book: Book) -> list[str]:
    """The frontier of each world, with chance."""
    return [_table(book, name, own) for name, own in fronts(points(book)).items()]


def _table(book: Book, name: str, own: Sequence[Point]) -> str:
    chance = {
        world: number(y.uniform)
        for world, y in _yardsticks(book)
        if _where(book, y) == f"{name}, {world}"
    }
    lines = [[p.title, *(estimate(bca(getattr(p, w))) for w in (*MIRRORED, "bayes"))] for p in own]
    if chance:
        lines.append(["chance", *(chance.get(world, "–") for world in MIRRORED), "–"])
    header = ("agent", "bad world", "mirror", "averaged over the prior")
    return section(name, grid(header, lines))
