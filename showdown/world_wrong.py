"""Where the model is wrong: what the bonus and a higher temperature add, bad worlds and mirrors."""

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.intervals import bca
from showdown.book import Book, grid, section
from showdown.effects import enumeration, estimate, number
from showdown.wording import interval
from showdown.world_frontier import DEFAULT, HEAT
from showdown.world_runs import (
    FALLING,
    HOT,
    MIRRORED,
    Pairs,
    difference,
    heated_of,
    stuck,
    worlds_of,
)

STUDY, PAGE = "worlds-wrong-prior", "worlds-sweeps.md"
TITLE = "Where the model is wrong"
WORDS = ("bad world", "mirror")
OPPOSITES = "`opposites`: no parameter fits both arms, so optimism cannot help."
#: By world, the bonus and heat, each by `bad` and `mirror`.
Beside = dict[str, tuple[Pairs, Pairs]]


def _beside(book: Book) -> Beside:
    runs = book.shelf.of(STUDY)
    heated = heated_of(runs, HOT)
    return {
        key[0]: (pair, heated[key])
        for key, pair in worlds_of(runs, FALLING).items()
        if key in heated and all({*MIRRORED} <= own.keys() for own in (pair, heated[key]))
    }


def tables(book: Book) -> list[str]:
    """One row per world."""
    rows = []
    for name, both in _beside(book).items():
        plain = [number(float(np.mean(both[0][w][1].final_regret))) for w in MIRRORED]
        cells = [interval(difference(*own[w])) for own in both for w in MIRRORED]
        rows.append([f"`{name}`", " / ".join(plain), *cells])
    if not rows:
        return []
    adds = [f"{agent} adds, {world}" for agent in ("bonus", HEAT) for world in WORDS]
    table = grid(("world", "plain: bad / mirror", *adds), rows)
    return [section(TITLE, table, OPPOSITES, _clipped(book))]


def said(book: Book) -> list[str]:
    """In how many of the bad worlds both pay and of the mirrors cost, for the recommendation."""
    found = _beside(book)
    if not found:
        return []
    added = [[[difference(*p[w]) for w in MIRRORED] for p in both] for both in found.values()]
    (bonus, heat), (bonus_costs, heat_costs) = (
        [sum(test(own[i][w]) for own in added) for i in (0, 1)]
        for w, test in ((0, lambda d: d.high < 0), (1, lambda d: d.low > 0))
    )
    return [
        f"Where [the model is wrong]({PAGE}), {HEAT} pays in {heat} of {len(found)} bad worlds and "
        f"costs in {heat_costs} mirrors, {DEFAULT} in {bonus} and {bonus_costs}."
    ]


def _mean(result: AgentResult) -> str:
    return estimate(bca(result.final_regret))


def _clipped(book: Book) -> str:
    runs = book.shelf.of("worlds-clipped")

    def one(agent: str, world: str, **own: object) -> AgentResult | None:
        own = {"clip": 0.05, "temperature": 1.0} | own
        fits = (
            r
            for r in runs
            if r.agent == agent
            and r.testbed_settings["world"] == world
            and own.items() <= r.settings.items()
        )
        return next(fits, None)

    plain, clipped = one("exact-ts", "bad", clip=0.0), one("exact-ts", "bad")
    mended = one("exact-fgts", "bad", lam=0.01, lam_schedule="constant")
    falling = one("exact-fgts", "bad", **FALLING)
    hot = one("exact-ts", "bad", temperature=HOT)
    mirrors = [
        one("exact-ts", "mirror"),
        one("exact-ts", "mirror", clip=0.0),
        one("exact-fgts", "mirror", lam=0.01, lam_schedule="constant"),
        one("exact-fgts", "mirror", **FALLING),
        one("exact-ts", "mirror", temperature=HOT),
    ]
    if plain is None or clipped is None or mended is None or falling is None or hot is None:
        return ""
    said = (
        "A sampler that never draws arms of a probability below 0.05 (`trap-0.5`) loses "
        f"{_mean(clipped)} instead of {_mean(plain)}: {stuck(clipped)} of {len(clipped.seeds)} "
        f"seeds are stuck. λ = 0.01 makes it {_mean(mended)}, λ_s = 1/√s {_mean(falling)}, "
        f"temperature {HOT:g} {_mean(hot)}."
    )
    told = [_mean(r) for r in mirrors if r is not None]
    if len(told) < len(mirrors):
        return said
    clipped_there, plain_there, *others = told
    return (
        f"{said} In the mirror it loses {clipped_there} instead of {plain_there}. With λ = 0.01, "
        f"λ_s = 1/√s and temperature {HOT:g} that is {enumeration(others)}."
    )
