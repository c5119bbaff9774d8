"""What the bonus adds to each MCMC agent and to small networks, in bad worlds and their mirrors."""

import numpy as np
from scipy import stats

from feelgood.engine.results import AgentResult
from feelgood.stats.holm import holm
from feelgood.stats.studentised import StudentisedMean
from showdown import pairs
from showdown.book import Book, grid, section
from showdown.effects import enumeration, mean_and_median, number
from showdown.families import ALPHA
from showdown.wording import interval
from showdown.world_runs import MIRRORED, difference, locked
from showdown.yardsticks import key_of

STUDIES = (
    *("worlds-mcmc", "worlds-mcmc-sceptic", "worlds-mcmc-superarm", "worlds-mcmc-trap"),
    *("worlds-mcmc-jumps-superarm", "worlds-mcmc-jumps-trap", "worlds-mcmc-networks"),
)
PAGE, TITLE = "worlds-agents.md", "What does the bonus add to each agent?"
#: All pairs with means and medians, beside the files of pairs.
FILE = "worlds-agents"
NOT_RUN = "Not run."
TESTBEDS = ("linear-trap-16", "sceptic-0.1", "uneven-noise-4", "opposites", "superarm-40")
TABLES = {"bad": "The bad worlds", "mirror": "Their mirrors"}
#: Agents with the bonus, and what each is without it; in the order of the rows.
PLAIN = {
    "exact-fgts": "exact-ts",
    "fglmcts": "lmcts",
    "sfglmcts": "lmcts",
    "pfglmcts": "plmcts",
    "ufglmcts": "ulmcts",
    "svrgfglmcts": "svrglmcts",
    "fghmcts": "hmcts",
    "fgmalats": "malats",
    "pfgmalats": "pmalats",
    "pfghmcts": "phmcts",
    "jfgmalats": "malats",
    "neural-fglmcts": "neural-lmcts",
    "neural-ufglmcts": "neural-ulmcts",
    "neural-svrgfglmcts": "neural-svrglmcts",
    "neural-fgmalats": "neural-malats",
    "fg-neural-ts": "neural-ts",
}
#: Unadjusted kernels, and the same with a filter.
TRAP, WIDER = "linear-trap-16", {"lmcts": "malats", "fglmcts": "fgmalats"}
#: By agent, testbed and world.
Place = tuple[str, str, str]
Runs = dict[Place, AgentResult]
#: What the bonus adds, and whether that stands after Holm's correction over all pairs.
Changes = dict[Place, tuple[StudentisedMean, bool]]


def page(book: Book) -> str:
    """What the bonus adds to each agent, in all worlds."""
    head = f"# {TITLE}"
    runs = runs_of(book)
    changed = changes(runs)
    if not changed:
        return f"{head}\n\n{NOT_RUN}\n"
    one = next(iter(runs.values()))
    about = (
        "In two of [these worlds](../worlds.md), linear-trap-16 and superarm-40, the truth is "
        "rare. In the others the prior, the noise or the mean is not what agents are told. On "
        "superarm-40 all but the exact agents take its few possible means for normal ones. There "
        f"are {one.rounds:,} rounds and {_seeds(runs)}. The tables have "
        "what the bonus λ_s = 1/√s adds to an agent's regret. Negative: it pays. Networks have "
        "one layer of 16. Brackets hold 95 % studentised "
        f"intervals. Bold: by Holm's rule over all {len(changed)} pairs. Neural HMC and "
        "other combinations of these parts are not run here."
    )
    said = (
        f"{_said(changed)} Over 10,000 rounds [signs may differ](worlds-sweeps.md).{_width(runs)}"
    )
    tables = [_table(book, runs, changed, world) for world in MIRRORED]
    told = enumeration([f"`{name}`" for name in STUDIES])
    foot = (
        f"All pairs, with medians: [`{FILE}.csv`](../../results/pairs/{FILE}.csv). Studies: "
        f"{told}. [When feeling good pays](worlds.md) · [all answers](README.md)"
    )
    return "\n\n".join([head, about, said, *(t for t in tables if t), foot]) + "\n"


def runs_of(book: Book) -> Runs:
    """All that was run, by agent, testbed and world."""
    return {
        (r.agent, r.testbed, str(r.testbed_settings["world"])): r for r in book.shelf.of(*STUDIES)
    }


def rows(book: Book) -> list[pairs.Row]:
    """One row per pair, for a file: both means and medians, and what the bonus adds."""
    runs, out = runs_of(book), []
    for (agent, testbed, world), (change, shown) in changes(runs).items():
        row: pairs.Row = {"testbed": testbed, "world": world, "agent": agent}
        both = runs[agent, testbed, world], runs[PLAIN[agent], testbed, world]
        row["seeds"] = len({*both[0].seeds} & {*both[1].seeds})
        for name, r in zip(("with", "without"), both, strict=True):
            mean, median = mean_and_median(r.final_regret)
            row |= {f"{name}_mean": mean, f"{name}_median": median}
        row |= {"adds": change.value, "low": change.low, "high": change.high, "p": change.p}
        out.append(row | {"by_holms_rule": "yes" if shown else "no"})
    return out


def _width(runs: Runs) -> str:
    """Whether steps without a filter, whose law is wider, lock fewer seeds than those with one."""
    told = []
    for wide, filtered in WIDER.items():
        pair = [runs.get((name, TRAP, "bad")) for name in (wide, filtered)]
        if pair[0] is None or pair[1] is None:
            return ""
        common = sorted({*pair[0].seeds} & {*pair[1].seeds})
        both = [locked(r)[[r.seeds.index(s) for s in common]] for r in pair if r is not None]
        freed, bound = (int(np.sum(a & ~b)) for a, b in (both[::-1], both))
        p = float(stats.binomtest(freed, freed + bound).pvalue) if freed + bound else 1.0
        counts = f"`{wide}` {both[0].sum()} and `{filtered}` {both[1].sum()}"
        told.append(f"{counts} of {len(common)} (p = {p:.2g}).")
    return (
        "\n\nSteps without a Metropolis filter have a wider law: here, at half the curvature, with "
        f"a third more variance. Seeds that stay on the worse arm of the bad {TRAP}, with p of "
        f"exact tests, not corrected: {' '.join(told)}"
    )


def _seeds(runs: Runs) -> str:
    """`100 seeds`, or `100 seeds (20 of `jfgmalats`)` where agents have fewer."""
    most = max(len(r.seeds) for r in runs.values())
    fewer: dict[int, dict[str, None]] = {}
    for r in runs.values():
        if len(r.seeds) < most:
            fewer.setdefault(len(r.seeds), {})[f"`{r.agent}`"] = None
    told = [f"{seeds} of {enumeration(list(names))}" for seeds, names in fewer.items()]
    return f"{most} seeds ({'; '.join(told)})" if told else f"{most} seeds"


def changes(runs: Runs) -> Changes:
    """What the bonus adds in each pair, judged together."""
    found = {
        key: difference(run, base)
        for key, run in runs.items()
        if (base := runs.get((PLAIN.get(key[0], ""), *key[1:]))) is not None
    }
    corrected = holm(np.array([change.p for change in found.values()])) if found else ()
    return {
        key: (change, bool(p <= ALPHA))
        for (key, change), p in zip(found.items(), corrected, strict=True)
    }


def _said(changed: Changes) -> str:
    """How often the bonus helps, in bad worlds and in mirrors."""
    told = []
    for world, words in zip(MIRRORED, ("in the bad worlds", "in the mirrors"), strict=True):
        own = [pair for key, pair in changed.items() if key[2] == world]
        lower, higher = (sum(s * c.value > 0 for c, shown in own if shown) for s in (-1, 1))
        told.append(f"{words} in {lower} and {higher} of {len(own)} pairs")
    return f"The bonus lowers and raises regret {', '.join(told)}."


def _table(book: Book, runs: Runs, changed: Changes, world: str) -> str:
    """A row per agent, after what exact plain sampling and chance lose themselves."""
    places = [t for t in TESTBEDS if any(key[1:] == (t, world) for key in changed)]
    rows = [
        [f"`{name}`", *(_cell(changed, (name, t, world)) for t in places)]
        for name in PLAIN
        if any((name, t, world) in changed for t in places)
    ]
    plain = {t: runs.get(("exact-ts", t, world)) for t in places}
    lost = [_mean(plain[t]) for t in places]
    chance = [_chance(book, plain[t]) for t in places]
    whole = [["*`exact-ts` loses*", *lost], ["*chance loses*", *chance], *rows]
    return section(TABLES[world], grid(("bonus added by", *places), whole)) if rows else ""


def _cell(changed: Changes, key: Place) -> str:
    if key not in changed:
        return "–"
    change, shown = changed[key]
    return f"**{interval(change)}**" if shown else interval(change)


def _mean(r: AgentResult | None) -> str:
    return "–" if r is None else number(float(np.mean(r.final_regret)))


def _chance(book: Book, r: AgentResult | None) -> str:
    own = None if r is None else book.yardsticks.get(key_of(r))
    return "–" if own is None else number(own.uniform)
