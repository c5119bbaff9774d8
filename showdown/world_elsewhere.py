"""What the default schedule of the bonus adds on problems that are no such worlds."""

from collections.abc import Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from showdown.book import Book, grid, section
from showdown.effects import FEWEST_SEEDS, enumeration, number
from showdown.wording import interval
from showdown.world_frontier import DEFAULT
from showdown.world_runs import FALLING, difference
from showdown.world_wrong import PAGE
from showdown.yardsticks import dagger

STUDY = "worlds-schedule"
TITLE = "Elsewhere"
#: With the bonus, and without.
Pair = tuple[AgentResult, AgentResult]


def tables(book: Book) -> list[str]:
    """One row per problem."""
    rows = [
        [
            f"`{r.testbed}`{told}",
            f"`{r.agent}`",
            f"{number(_mean(plain))}{dagger(plain, book.yardsticks)}",
            *_added(r, plain),
        ]
        for told, own in ((", preset `beta-1`", _linear(book)), ("", _others(book)))
        for r, plain in own
    ]
    if not rows:
        return []
    about = (
        f"What {DEFAULT} adds where the truth is drawn as the prior says, and on data sets. "
        "† does not beat the best fixed arm."
    )
    return [section(TITLE, about, grid(("problem", "agent", "plain", "bonus adds", "seeds"), rows))]


def _added(r: AgentResult, plain: AgentResult) -> list[str]:
    return [interval(difference(r, plain)), str(len({*r.seeds} & {*plain.seeds}))]


def _mean(r: AgentResult) -> float:
    return float(np.mean(r.final_regret))


def said(book: Book) -> list[str]:
    """On how many problems it costs and pays beyond the interval, and where it was not run."""
    others, told = _others(book), []
    if others:
        lower, higher = _signs(others)
        gain = f"a gain on {enumeration(lower)}" if lower else "no gain"
        cost = f", a loss on {enumeration(higher)}" if higher else ""
        told.append(
            f"[{TITLE}]({PAGE}#elsewhere), {len(others)} problems and [wheels](bonus-wheel.md) in "
            f"their units: {gain} is shown{cost}."
        )
    lacking = [] if any("neural" in r.agent for r, _ in others) else ["with networks"]
    if not any(r.testbed.startswith("logistic") for r, _ in others):
        lacking.append("in logistic bandits")
    return told + ([f"**Not run**: this schedule {enumeration(lacking)}."] if lacking else [])


def networks(book: Book) -> str:
    """That it is to be left off with networks, if it raises regret there and never lowers it."""
    own = [(r, plain) for r, plain in _others(book) if "neural" in r.agent]
    lower, higher = _signs(own)
    if lower or not higher:
        return ""
    return (
        f" With networks leave it off: it raised regret on {len(higher)} of {len(own)} data sets "
        "and lowered it on none."
    )


def _signs(pairs: Sequence[Pair]) -> tuple[list[str], list[str]]:
    """Where it lowers and where it raises regret, beyond the interval."""
    added = {r.testbed: difference(r, plain) for r, plain in pairs}
    lower = [bed for bed, own in added.items() if own.high < 0]
    return lower, [bed for bed, own in added.items() if own.low > 0]


def _others(book: Book) -> list[Pair]:
    """The schedule on problems that are no such worlds, beside no bonus, at temperature 1.

    Wheels have a page of their own.
    """
    studies = {study for k in book.shelf.kept for study in k.studies}
    runs = book.shelf.of(*(study for study in studies if not study.startswith("worlds-")))
    own = [
        r
        for r in runs
        if FALLING.items() <= r.settings.items() and r.settings.get("temperature", 1.0) == 1.0
    ]
    others = [r for r in own if not r.testbed.startswith(("linear-", "wheel-"))]
    pairs = [(r, book.shelf.plain(r)) for r in others]
    found = [
        (r, plain)
        for r, plain in pairs
        if plain is not None and len({*r.seeds} & {*plain.seeds}) >= FEWEST_SEEDS
    ]
    # Of several runs on a testbed, the one with the most seeds.
    most = {r.testbed: (r, plain) for r, plain in sorted(found, key=lambda f: len(f[0].seeds))}
    return [most[name] for name in sorted(most)]


def _linear(book: Book) -> list[Pair]:
    """On linear bandits with the paper's β = 1."""
    constant = [r for r in book.shelf.of("question-lambda") if r.agent == "fglmcts"]
    found = []
    for r in sorted(book.shelf.of(STUDY), key=lambda r: r.testbed):
        plain = [b for b in constant if (b.testbed, b.settings["lam"]) == (r.testbed, 0)]
        if r.settings["lam"] == FALLING["lam"] and plain:
            found.append((r, plain[0]))
    return found
