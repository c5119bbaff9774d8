"""Which samplers keep the promise of the bonus: the part of the page of the worlds on samplers."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.holm import holm
from feelgood.stats.intervals import bca
from feelgood.stats.studentised import studentised
from showdown import world_figures, world_histories
from showdown.book import Book, grid, items, section
from showdown.effects import enumeration, estimate, number
from showdown.families import ALPHA
from showdown.world_runs import regrets_by_seed, shares, single, stuck
from showdown.yardsticks import key_of

STUDIES, PAGE = ("worlds-samplers", "worlds-chains"), "worlds-samplers.md"
TITLE = "Which samplers keep the promise?"
NOT_RUN = "Not run."
#: How the names of agents with several chains begin, see `studies/many_chains.py`.
MANY = "many-"
WORLDS = ("bad", "mirror")
#: More samplers than this that stay in both worlds are counted, not named.
NAMED = 4
IN_WORLD = {"bad": "in the bad world", "mirror": "in the mirror"}
#: Pairs of runs of the exact law, drawn from its seeds, of which one is compared with the other.
REDRAWN = 2_000
#: As many as have colours of their own.
DRAWN = (
    *("exact-fgts", "exact-ts", "jfgmalats", "fglmcts", "fgmalats", "fghmcts"),
    "blackjax:nuts",
)


@dataclasses.dataclass(frozen=True)
class Sampler:
    """An agent at a temperature, in those of both worlds in which it was run."""

    label: str
    #: By world.
    runs: dict[str, AgentResult]
    #: The exact law at the same temperature.
    exact: dict[str, AgentResult]

    @property
    def regret(self) -> float:
        """In the bad world, or where it was run; for the order of the rows."""
        return float(np.mean(self.runs.get("bad", next(iter(self.runs.values()))).final_regret))

    def alone(self, world: str) -> float | None:
        """p of Fisher's test: one arm alone in the second half, in more seeds than of the law."""
        run, law = self.runs.get(world), self.exact.get(world)
        if run is None or law is None:
            return None
        return _more(single(run), len(run.seeds), single(law), len(law.seeds))

    @property
    def heated(self) -> bool:
        """Whether its law is another than at temperature 1."""
        return any(r.settings["temperature"] != 1 for r in self.runs.values())

    @property
    def several(self) -> bool:
        """Whether it has several chains, or starts them afresh."""
        return any(r.agent.startswith(MANY) for r in self.runs.values())

    @property
    def is_exact(self) -> bool:
        return self.label.startswith("`exact")

    def off(self, world: str) -> float | None:
        """Points between its shares of the worse arm and those of the law, mean along the run."""
        run, law = self.runs.get(world), self.exact.get(world)
        if run is None or law is None:
            return None
        return _apart(run, law)

    def cells(self, world: str) -> list[str]:
        """Regret, and seeds that are locked or play one arm."""
        run = self.runs.get(world)
        if run is None:
            return ["–", "–"]
        return [estimate(bca(run.final_regret)), f"{stuck(run)} / {single(run)}"]


def samplers(runs: Sequence[AgentResult]) -> list[Sampler]:
    """All agents with a bonus, and plain sampling, from the lowest regret up."""
    found: dict[tuple[str, float], dict[str, AgentResult]] = {}
    for r in runs:
        if r.agent == "exact-ts" or r.settings.get("lam", 0) > 0:
            place = (_name(r), float(r.settings["temperature"]))
            found.setdefault(place, {})[str(r.testbed_settings["world"])] = r
    made = [
        Sampler(
            name + ("" if heat == 1 else f" (temperature {heat:g})"),
            own,
            found.get(("`exact-fgts`", heat), {}),
        )
        for (name, heat), own in found.items()
    ]
    return sorted(made, key=lambda s: s.regret)


def _name(r: AgentResult) -> str:
    """The agent; how many chains it has, or that they start afresh, where it is of that kind."""
    if not r.agent.startswith(MANY):
        return f"`{r.agent}`"
    fresh = r.settings["starts"] == "fresh"
    more = "fresh starts" if fresh else f"{r.settings['chains']} chains"
    return f"`{r.agent.removeprefix(MANY)}` ({more})"


def found_in(book: Book) -> list[Sampler]:
    """The samplers; none before there are some beside the exact law."""
    found = samplers(book.shelf.of(*STUDIES))
    whole = len(found) >= 4 and any(s.is_exact and s.exact for s in found)
    return found if whole else []


def _apart(run: AgentResult, law: AgentResult) -> float:
    """Points between two shares of the worse arm, mean along the run."""
    return 100.0 * float(np.mean(np.abs(shares(run)[1] - shares(law)[1])))


def _more(count: int, seeds: int, other: int, others: int) -> float:
    """p of Fisher's exact test, one-sided: the first share is not larger than the other."""
    from scipy.stats import hypergeom

    return float(hypergeom.sf(count - 1, seeds + others, count + other, seeds))


def floor(law: AgentResult) -> tuple[float, float]:
    """How far two runs of the law itself are apart: the mean, and what 95 % stay below.

    Both are drawn from its seeds, with replacement.
    """
    rng, n = np.random.default_rng(0), len(law.seeds)
    drawn = [
        [dataclasses.replace(law, curve=law.curve[rng.integers(0, n, n)]) for _ in range(2)]
        for _ in range(REDRAWN)
    ]
    found = [_apart(one, other) for one, other in drawn]
    return float(np.mean(found)), float(np.quantile(found, 0.95))


def staying(found: Sequence[Sampler]) -> dict[str, list[str]]:
    """By sampler, the worlds where more seeds play one arm than of the law; by Holm's rule."""
    chains = [s for s in found if not s.is_exact]
    asked = [(s, w, p) for s in chains for w in WORLDS if (p := s.alone(w)) is not None]
    corrected = holm(np.array([p for *_, p in asked])) if asked else ()
    out: dict[str, list[str]] = {s.label: [] for s, *_ in asked}
    for (s, world, _), p in zip(asked, corrected, strict=True):
        if p <= ALPHA:
            out[s.label].append(world)
    return out


def part(book: Book) -> str:
    """What the page of the worlds says of them."""
    found = found_in(book)
    if not found:
        return section(TITLE, NOT_RUN)
    where = staying(found)
    stay = sum(bool(worlds) for worlds in where.values())
    said = (
        f"{stay} of {len(where)} samplers play [one arm alone]({PAGE}) in more seeds than exact "
        "draws do ([agent by agent](worlds-agents.md))."
    )
    return section(TITLE, " ".join(filter(None, [said, world_histories.summary(book)])))


def page(book: Book) -> str:
    """Table, sentences and figure on a page of their own."""
    head, found = f"# {TITLE}", found_in(book)
    if not found:
        return f"{head}\n\n{NOT_RUN}\n"
    one = next(r for s in found for r in s.exact.values())
    about = (
        "`linear-trap-16` with prior 0.5, the [bad world and its mirror](../worlds.md), "
        f"{one.rounds} rounds, {len(one.seeds)} seeds. The bonus has λ_s = 1/√s, and all agents "
        "are told noise and prior. The law has two peaks far apart: in each, another arm is "
        "believed to be very good. A chain that takes small steps rarely crosses. A sampler keeps "
        "the promise of the bonus if it plays both arms as often as `exact-fgts`."
        f"{_chance(book, found)}"
    )
    columns = (
        "*Locked* seeds play the worse arm mostly; *one arm*: a single arm in the second half. "
        "*Off*: how far the share of worse plays is from the exact law's at the same temperature, "
        f"in percentage points, mean along the run, bad world and mirror.{_floors(found)} Brackets "
        "hold 95 % bootstrap intervals."
    )
    header = ("agent", "bad world", "locked / one arm", "mirror", "locked / one arm", "off")
    rows = []
    for s in found:
        off = " / ".join("–" if (v := s.off(world)) is None else f"{v:.1f}" for world in WORLDS)
        rows.append([s.label, *s.cells("bad"), *s.cells("mirror"), off])
    shown = [
        (r.agent, world, r)
        for s in found
        for world, r in s.runs.items()
        if r.agent in DRAWN and not s.heated
    ]
    figure = book.figure(
        "worlds-samplers",
        "Share of the worse arm along the run, of some samplers beside the exact law.",
        lambda: world_figures.sampler_shares(shown),
    )
    said = [*_said(found), *_premium(found), *_several(found)]
    parts = [head, about, items(said), grid(header, rows), columns, figure]
    parts.append(world_histories.part(book))
    parts = [text for text in parts if text]
    told = enumeration([f"`{name}`" for name in STUDIES])
    foot = f"Studies: {told}. [When feeling good pays](worlds.md) · [all answers](README.md)"
    return "\n\n".join([*parts, foot]) + "\n"


def _chance(book: Book, found: Sequence[Sampler]) -> str:
    """What chance and the better arm lose in both worlds."""
    law = next(s.exact for s in found if s.exact)
    lost = [
        f"{number(own.uniform)} in the {'bad world' if world == 'bad' else world}"
        for world in WORLDS
        if world in law and (own := book.yardsticks.get(key_of(law[world]))) is not None
    ]
    return f" Chance loses {enumeration(lost)}, the better arm nothing." if lost else ""


def _floors(found: Sequence[Sampler]) -> str:
    """What chance alone puts between two runs of the law, at temperature 1."""
    law = next(s.exact for s in found if s.exact and not s.heated)
    own = [(IN_WORLD[w], *floor(law[w])) for w in WORLDS if w in law]
    told = enumeration([f"{mean:.2g} {where}" for where, mean, _ in own])
    most = enumeration([f"{high:.2g}" for *_, high in own])
    return f" Chance alone gives about {told} (95 %: below {most})."


def _said(found: Sequence[Sampler]) -> list[str]:
    """Who stays in one mode, in which of the worlds, and who does not."""
    where = staying(found)
    told = []
    for worlds, words in (
        (["bad"], "In the bad world alone"),
        (["mirror"], "In the mirror alone"),
        (list(WORLDS), "In both worlds"),
    ):
        own = [label for label, stays in where.items() if stays == worlds]
        if own:
            others = len(own) > NAMED and worlds == list(WORLDS)
            told.append(f"{words}: {f'the {len(own)} others' if others else enumeration(own)}.")
    said = []
    passing = [label for label, stays in where.items() if not stays]
    if passing:
        said.append(f"As the exact law does, play both arms: {enumeration(passing)}.")
    if told:
        said.append(
            "Stay in one mode: one arm alone, in more seeds than the exact law at the same "
            f"temperature (Fisher's exact test, Holm's rule). {' '.join(told)}"
        )
    return said


def _premium(found: Sequence[Sampler]) -> list[str]:
    """Whether those that stay pay the law's price in the mirror."""
    bad, mirror = WORLDS
    where = staying(found)
    stay = [s for s in found if where.get(s.label) and {bad, mirror} <= s.runs.keys()]
    less = [s for s in stay if _pays_less(s)]
    if not less:
        return []
    miss = sum(stuck(s.runs[bad]) > 0 for s in less)
    told = (
        f"In the mirror {len(less)} of these {len(stay)} lose less than the law does, beyond the "
        "intervals. They look cheap there because they hardly explore"
    )
    if not miss:
        return [f"{told}."]
    return [f"{told}, and in the bad world some seeds of {miss} of them never find the good arm."]


def _pays_less(s: Sampler) -> bool:
    """Whether it loses less than the law does in the mirror, beyond the interval."""
    mirror = WORLDS[1]
    return mirror in s.runs and mirror in s.exact and _cheaper(s.runs[mirror], s.exact[mirror])


def _several(found: Sequence[Sampler]) -> list[str]:
    """Whether chains that share their rounds, or start afresh, follow the law."""
    bad = WORLDS[0]
    own = sorted((s for s in found if s.several and bad in s.runs), key=_chains)
    if not own:
        return []
    kernel = own[0].label.split(" (")[0]
    counts = [(s, _kind(s)) for s in own]
    counts += [(s, "one chain") for s in found if s.label == kernel and bad in s.runs]
    by_count: dict[int, list[str]] = {}
    for s, kind in counts:
        by_count.setdefault(stuck(s.runs[bad]), []).append(kind)
    locked = "; ".join(
        f"{seeds} with {enumeration(kinds)}"
        if seeds
        else f"none with {enumeration(kinds).replace(' and ', ' or ')}"
        for seeds, kinds in by_count.items()
    )
    said = [
        f"Several chains of {kernel} share their rounds, and one of them plays. Seeds that end on "
        f"the worse arm, of {len(own[0].runs[bad].seeds)}: {locked}."
    ]
    less = [_kind(s) for s in own if _pays_less(s)]
    if less:
        who = "all of them" if len(less) == len(own) else enumeration(less)
        said.append(f"This is not the law: in the mirror {who} lose less, beyond the intervals.")
    return said


def _kind(s: Sampler) -> str:
    """`16 chains` or `fresh starts`."""
    return s.label.split(" (")[1].removesuffix(")")


def _chains(s: Sampler) -> tuple[bool, int]:
    run = next(iter(s.runs.values()))
    return run.settings["starts"] == "fresh", int(run.settings["chains"])


def _cheaper(a: AgentResult, b: AgentResult) -> bool:
    one, other = regrets_by_seed(a), regrets_by_seed(b)
    common = sorted(one.keys() & other.keys())
    return studentised(np.array([one[s] - other[s] for s in common])).high < 0
