"""MCMC agents and small networks in worlds whose model is wrong: a part of the page of samplers."""

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.intervals import bootstrap
from showdown.book import Book, grid, section
from showdown.effects import estimate
from showdown.world_runs import regrets_by_seed

STUDIES = ("worlds-mcmc", "worlds-mcmc-sceptic")
TITLE = "Where the model is wrong"
TESTBEDS = ("sceptic-0.1", "uneven-noise-4", "opposites")
WORLDS = ("bad", "mirror")
#: Agents with the bonus, and what each is without it.
PLAIN = {
    "exact-fgts": "exact-ts",
    "fglmcts": "lmcts",
    "fgmalats": "malats",
    "jfgmalats": "malats",
    "neural-fglmcts": "neural-lmcts",
}
#: The rows of the table.
ROWS = tuple(dict.fromkeys(name for pair in PLAIN.items() for name in reversed(pair)))
#: By agent, testbed and world.
Runs = dict[tuple[str, str, str], AgentResult]


def part(book: Book) -> str:
    """Regrets of all agents, and where the bonus changes them; nothing before any was run."""
    runs: Runs = {
        (r.agent, r.testbed, str(r.testbed_settings["world"])): r for r in book.shelf.of(*STUDIES)
    }
    if not runs:
        return ""
    one = next(iter(runs.values()))
    about = (
        "Worlds whose [prior, noise or mean](../worlds.md) is not what agents are told, "
        f"{one.rounds:,} rounds, {len(one.seeds)} seeds, λ_s = 1/√s. Networks have one layer of "
        "16. ↓: less regret than without the bonus, ↑: more, beyond the 95 % interval of the "
        f"difference. {_said(runs)}"
    )
    places = [(t, w) for t in TESTBEDS for w in WORLDS if any(key[1:] == (t, w) for key in runs)]
    header = ("agent", *(t if w == "bad" else "mirror" for t, w in places))
    rows = [
        [f"`{name}`", *(_cell(runs, name, place) for place in places)]
        for name in ROWS
        if any(key[0] == name for key in runs)
    ]
    return section(TITLE, about, grid(header, rows))


def _cell(runs: Runs, name: str, place: tuple[str, str]) -> str:
    run = runs.get((name, *place))
    if run is None:
        return "–"
    mark = {-1: "↓ ", 1: "↑ "}.get(_changes(runs, name, place) or 0, "")
    return mark + estimate(bootstrap(run.final_regret))


def _changes(runs: Runs, name: str, place: tuple[str, str]) -> int | None:
    """−1 where the bonus lowers the regret beyond the interval, 1 where it raises it, or 0."""
    run, base = runs.get((name, *place)), runs.get((PLAIN.get(name, ""), *place))
    if run is None or base is None:
        return None
    one, other = regrets_by_seed(run), regrets_by_seed(base)
    change = bootstrap(np.array([one[s] - other[s] for s in sorted(one.keys() & other.keys())]))
    return int(change.low > 0) - int(change.high < 0)


def _said(runs: Runs) -> str:
    """How often the bonus helps, in bad worlds and in mirrors."""
    told = []
    for world, words in zip(WORLDS, ("the bad worlds", "the mirrors"), strict=True):
        found = [_changes(runs, name, (t, world)) for name in PLAIN for t in TESTBEDS]
        own = [change for change in found if change is not None]
        told.append(
            f"in {words} it lowers {own.count(-1)} of {len(own)} regrets and raises {own.count(1)}"
        )
    return f"The bonus: {'; '.join(told)}."
