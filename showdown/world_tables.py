"""The worlds in tables: what their page says in sentences, with all numbers."""

from showdown import (
    world_elsewhere,
    world_frontier,
    world_growth,
    world_scaling,
    world_wrong,
    yardsticks,
)
from showdown.book import Book
from showdown.effects import enumeration, number
from showdown.wording import seeds_span
from showdown.world_frontier import FILE, NOT_RUN
from showdown.world_runs import FRONTIER

INTRODUCTION = """# Worst case against Bayes, world by world

The *frontier* of each world: agents that no other one beats both in the bad world and averaged over
the prior; of equals the first. Mean regrets of {seeds} after 10,000 rounds, 95 % intervals.
λ* = √(2 ln(1/P)/T) and λ_t = √(ln(1/P)/2t) are the theory's weights for a trap of mass P. The
average over a trap's prior is that of its two worlds, by their masses. With 4 copies the context
chooses one of four independent linear traps."""

SWEEPS = """# One world after another

Regrets after 10,000 rounds, with 95 % bootstrap intervals. Tables have what λ_s = 1/√s or
temperature 4 adds to plain Thompson sampling. Negative: it pays. Each bad world stands beside its
mirror."""

BACK = "[When feeling good pays](worlds.md) · [all answers](README.md)"


def frontiers(book: Book) -> str:
    """All frontiers."""
    tables = world_frontier.tables(book) or [NOT_RUN]
    end = f"All agents: [`{FILE}.csv`](../../results/pairs/{FILE}.csv). Study: `{FRONTIER}`. {BACK}"
    seeds = seeds_span([len(p.bad) for p in world_frontier.points(book)])
    return "\n\n".join([INTRODUCTION.format(seeds=seeds), *tables, end]) + "\n"


def sweeps(book: Book) -> str:
    """How plain sampling fails, the linear trap over its settings, and models that are wrong."""
    parts = (world_growth, world_scaling, world_wrong, world_elsewhere)
    tables = [table for own in parts for table in own.tables(book)] or [NOT_RUN]
    studies = enumeration([f"`{own.STUDY}`" for own in parts])
    return "\n\n".join([SWEEPS, *_chance(book), *tables, f"Studies: {studies}. {BACK}"]) + "\n"


def _chance(book: Book) -> list[str]:
    """What chance and the best fixed arm lose in these worlds, in one sentence."""
    studies = (world_growth.STUDY, world_scaling.STUDY, world_wrong.STUDY)
    found = yardsticks.those_of(book.shelf.of(*studies), book.yardsticks)
    if not found:
        return []
    chance, fixed = [y.uniform for y in found], max(y.fixed for y in found)
    best = "nothing" if fixed == 0 else f"at most {number(fixed)}"
    return [
        f"Chance loses from {number(min(chance))} to {number(max(chance))}, depending on the "
        f"world, and the best fixed arm {best}."
    ]
