"""Which runs stand beside which: the pairs that several questions ask for."""

from collections.abc import Callable, Iterable, Sequence

from feelgood.engine.results import AgentResult
from showdown.book import Book
from showdown.effects import Effect, effect
from showdown.shelf import is_sound, settings_text, unsmoothed

DATA = (
    *("adult", "covertype", "magic", "mushroom", "shuttle"),
    *("mnist", "financial", "jester", "restaurant", "cifar10"),
)
DATA_STUDIES = tuple(f"data-{name}" for name in DATA)


def in_order(results: Iterable[AgentResult]) -> list[AgentResult]:
    """By testbed, agent, and the swept settings as numbers."""

    def key(r: AgentResult) -> tuple[object, ...]:
        swept = (
            r.settings.get(name, 0.0) for name in ("lam", "b", "s", "steps", "gamma", "beta", "eta")
        )
        numbers = (0.0 if isinstance(v, str) else float(v) for v in swept)
        return (r.testbed, r.agent, not is_sound(r), *numbers)

    return sorted(results, key=key)


def steps_text(r: AgentResult) -> str:
    """Whose steps it has."""
    return "sound steps" if is_sound(r) else "the paper's steps"


def bonus_effects(book: Book, studies: Sequence[str]) -> list[Effect]:
    """Agents with a bonus beside themselves without it."""
    return [
        effect(settings_text(r, ("lam", "b")), r, book.shelf.plain(r))
        for r in in_order(book.shelf.of(*studies))
        if r.settings.get("lam", 0) > 0 and "fg" in r.agent
    ]


def grid_effects(book: Book, tables: Sequence[str]) -> list[Effect]:
    """The plain bonus in the paper's grids of λ: at b = 1000 the smoothed one is the same."""
    effects = bonus_effects(book, [f"table-lambda-{name}" for name in tables])
    return [e for e in effects if unsmoothed(e.agent) is None]


#: Rewards of the data sets are at most 1: a cap from here on does not bind.
FREE_CAP = 10.0


def without_twins(effects: Iterable[Effect]) -> list[Effect]:
    """Smoothed agents go where the cap does not bind: they are the plain ones but for rounding."""
    own = list(effects)
    there = {(e.testbed, e.agent, e.label) for e in own if e.changed is not None}
    return [
        e
        for e in own
        if e.changed is None
        or e.changed.settings.get("b", 0.0) < FREE_CAP
        or (e.testbed, unsmoothed(e.agent), e.label) not in there
    ]


def at(effects: Iterable[Effect], holds: Callable[[AgentResult], bool]) -> list[Effect]:
    """Those whose changed run fulfils something."""
    return [e for e in effects if e.changed is not None and holds(e.changed)]
