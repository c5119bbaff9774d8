"""MCMC agents and small networks in worlds whose model is wrong: a part of the page of samplers."""

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.holm import holm
from feelgood.stats.intervals import bootstrap
from feelgood.stats.studentised import studentised
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
Place = tuple[str, str, str]
Runs = dict[Place, AgentResult]
LEVEL = 0.05


def part(book: Book) -> str:
    """Regrets of all agents, and where the bonus changes them; nothing before any was run."""
    runs: Runs = {
        (r.agent, r.testbed, str(r.testbed_settings["world"])): r for r in book.shelf.of(*STUDIES)
    }
    if not runs:
        return ""
    one = next(iter(runs.values()))
    changed = _changes(runs)
    about = (
        "Worlds whose [prior, noise or mean](../worlds.md) is not what agents are told, "
        f"{one.rounds:,} rounds, {len(one.seeds)} seeds, λ_s = 1/√s. Networks have one layer of "
        "16. ↓: less regret than without the bonus, ↑: more, by Holm's rule over all pairs. "
        f"{_said(changed)} Over 10,000 rounds [signs may differ](worlds-sweeps.md)."
    )
    places = [(t, w) for t in TESTBEDS for w in WORLDS if any(key[1:] == (t, w) for key in runs)]
    header = ("agent", *(t if w == "bad" else "mirror" for t, w in places))
    rows = [
        [f"`{name}`", *(_cell(runs, changed, (name, *place)) for place in places)]
        for name in ROWS
        if any(key[0] == name for key in runs)
    ]
    return section(TITLE, about, grid(header, rows))


def _cell(runs: Runs, changed: dict[Place, int], key: Place) -> str:
    if key not in runs:
        return "–"
    mark = {-1: "↓ ", 1: "↑ "}.get(changed.get(key, 0), "")
    return mark + estimate(bootstrap(runs[key].final_regret))


def _changes(runs: Runs) -> dict[Place, int]:
    """Of each pair: −1 where the bonus lowers the regret by Holm's rule, 1 where it raises it."""
    found = {}
    for key, run in runs.items():
        base = runs.get((PLAIN.get(key[0], ""), *key[1:]))
        if base is not None:
            one, other = regrets_by_seed(run), regrets_by_seed(base)
            common = sorted(one.keys() & other.keys())
            found[key] = studentised(np.array([one[s] - other[s] for s in common]))
    corrected = holm(np.array([change.p for change in found.values()])) if found else ()
    return {
        key: int(np.sign(change.value)) * int(p < LEVEL)
        for (key, change), p in zip(found.items(), corrected, strict=True)
    }


def _said(changed: dict[Place, int]) -> str:
    """How often the bonus helps, in bad worlds and in mirrors."""
    told = []
    for world, words in zip(WORLDS, ("in the bad worlds", "in the mirrors"), strict=True):
        own = [change for key, change in changed.items() if key[2] == world]
        told.append(f"{words} {own.count(-1)} and {own.count(1)} of {len(own)}")
    return f"The bonus lowers and raises regret {', '.join(told)} times."
