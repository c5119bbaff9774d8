"""More arms and more contexts: does the bonus insure better there, or a higher temperature?"""

from collections.abc import Sequence

from feelgood.engine.results import AgentResult
from feelgood.stats.intervals import bca
from feelgood.stats.studentised import studentised
from showdown import yardsticks
from showdown.book import Book, grid, items
from showdown.effects import enumeration, estimate, number
from showdown.wording import interval, seeds_span
from showdown.world_frontier import DEFAULT, NOT_RUN
from showdown.world_runs import MIRRORED, ROUNDS, Point, on_frontier, points_of

STUDY, PAGE = "worlds-many", "worlds-many.md"
TITLE = "What do more arms and more contexts change?"
#: A mild temperature beside the default bonus, in this trap.
MILD, TRAP = "temperature 2", "linear-trap-"


def _contexts(point: Point) -> int:
    """How many different contexts there are: one per copy."""
    copies = point.testbed.partition(", ")[2]
    return int(copies.split()[0]) if copies else 1


def by_world(book: Book) -> dict[str, list[Point]]:
    """All agents by world; those with few contexts first."""
    points = sorted(points_of(book.shelf.of(STUDY)), key=_contexts)
    return {name: [p for p in points if p.testbed == name] for name in _names(points)}


def _names(points: Sequence[Point]) -> list[str]:
    return list(dict.fromkeys(p.testbed for p in points))


def page(book: Book) -> str:
    """Every agent in every world, those on its frontier marked."""
    head, found = f"# {TITLE}", fronts(book)
    rows = [
        [
            f"`{name}`",
            f"**{p.name}**" if p in found[name] or p.kind == "plain" else p.name,
            *(estimate(bca(getattr(p, w))) for w in (*MIRRORED, "bayes")),
        ]
        for name, own in by_world(book).items()
        for p in own
    ]
    if not rows:
        return f"{head}\n\n{NOT_RUN}\n"
    seeds = seeds_span([len(p.bad) for own in by_world(book).values() for p in own])
    about = (
        f"Two insurances in [these worlds](../worlds.md), {ROUNDS:,} rounds, {seeds}: a bonus "
        "whose weight falls, and draws at a higher temperature, both exact. "
        f"{_told(book.shelf.of(STUDY))} With copies the context chooses one of as many independent "
        "traps. Bold: on the frontier, which means that no other agent has a lower mean both in "
        "the bad world and with a truth from the prior. Brackets hold 95 % bootstrap intervals."
    )
    header = ("world", "agent", "bad world", "mirror", "truth from the prior")
    foot = f"Study: `{STUDY}`. [When feeling good pays](worlds.md) · [all answers](README.md)"
    table = grid(header, rows, numbers=2)
    return (
        "\n\n".join(
            [
                head,
                about,
                items([*_frontiers(book), *said(book, linked=False)]),
                *_chance(book),
                table,
                foot,
            ]
        )
        + "\n"
    )


def _chance(book: Book) -> list[str]:
    """What chance loses in these worlds."""
    found = yardsticks.those_of(book.shelf.of(STUDY), book.yardsticks)
    if not found:
        return []
    ends = [number(end([y.uniform for y in found])) for end in (min, max)]
    return [
        f"Chance loses from {ends[0]} to {ends[1]}, the best fixed arm at most "
        f"{number(max(y.fixed for y in found))}."
    ]


def _told(runs: Sequence[AgentResult]) -> str:
    """What the names of the worlds do not say."""
    arms = {f"{r.testbed} has {r.testbed_settings['arms']} arms" for r in runs if _many(r)}
    prior = {
        f"{r.testbed} has the prior {r.testbed_settings['prior']:g}"
        for r in runs
        if "prior" in r.testbed_settings
    }
    return f"{enumeration([*sorted(arms), *sorted(prior)])}."


def _many(r: AgentResult) -> bool:
    return int(r.testbed_settings.get("arms", 2)) > 2


def fronts(book: Book) -> dict[str, list[Point]]:
    """Who is on the frontier of each world, but for plain sampling."""
    return {
        name: [p for p in on_frontier(own) if p.kind != "plain"]
        for name, own in by_world(book).items()
    }


def decided(book: Book) -> bool:
    """Whether heat is on every frontier, and where there are most contexts insures better and costs
    more than the default bonus.
    """
    named = _by_name(book, -1)
    if not {MILD, DEFAULT} <= named.keys() or _contexts(named[MILD]) == 1:
        return False
    heat, bonus = named[MILD], named[DEFAULT]
    hot = all(any(p.kind == "hotter" for p in own) for own in fronts(book).values())
    dearer = studentised(heat.bayes - bonus.bayes).low > 0
    return hot and dearer and studentised(heat.bad - bonus.bad).high < 0


def _by_name(book: Book, number_of: int) -> dict[str, Point]:
    """The agents of the linear trap with the fewest contexts (0) or the most (−1), by name."""
    worlds = [own for own in by_world(book).values() if own[0].testbed.startswith(TRAP)]
    return {p.name: p for p in worlds[number_of]} if worlds else {}


def said(book: Book, linked: bool = True) -> list[str]:
    """What heat and the default bonus lose and cost where there are most contexts."""
    one, many = _by_name(book, 0), _by_name(book, -1)
    wanted = ("plain", MILD, DEFAULT)
    if not {*wanted} <= many.keys() or not {*wanted} <= one.keys():
        return []
    contexts = _contexts(many[MILD])
    bads = [f"{name} {number(many[name].bad_mean)}" for name in wanted]
    heat, bonus = (
        [interval(studentised(own[name].bayes - own["plain"].bayes)) for own in (one, many)]
        for name in (MILD, DEFAULT)
    )
    where = f"[With {contexts} contexts]({PAGE})" if linked else f"With {contexts} contexts"
    return [
        f"**{where}** the bad world costs {enumeration(bads)}. On "
        f"average {MILD} adds {heat[1]}, with 1 context {heat[0]}; {DEFAULT} adds {bonus[1]}, with "
        f"1 context {bonus[0]}."
    ]


def _frontiers(book: Book) -> list[str]:
    """Who is on which frontier, one sentence per world."""
    return [
        f"On the frontier of {_with_arms(book, name)}: plain sampling, "
        f"{enumeration([p.name for p in own])}."
        for name, own in fronts(book).items()
        if own
    ]


def _with_arms(book: Book, name: str) -> str:
    """Where there are more than two arms, how many."""
    arms = {
        int(r.testbed_settings["arms"])
        for r in book.shelf.of(STUDY)
        if r.testbed == name and _many(r)
    }
    return f"{name} with {arms.pop()} arms" if arms else name
