"""Which samplers keep the promise of the bonus: the part of the page of the worlds on samplers."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.intervals import bootstrap
from showdown import world_figures
from showdown.book import Book, grid, items, section
from showdown.effects import enumeration, estimate, number
from showdown.world_runs import regrets_by_seed, shares, single, stuck
from showdown.yardsticks import key_of

STUDIES, PAGE = ("worlds-samplers", "worlds-chains"), "worlds-samplers.md"
TITLE = "Which samplers keep the promise?"
NOT_RUN = "Not run."
#: How the names of agents with several chains begin, see `studies/many_chains.py`.
MANY = "many-"
WORLDS = ("bad", "mirror")
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

    @property
    def stays(self) -> bool:
        """Whether most seeds play one arm alone in the second half of the bad world."""
        run = self.runs.get("bad")
        return run is not None and 2 * single(run) > len(run.seeds)

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
        return 100.0 * float(np.mean(np.abs(shares(run)[1] - shares(law)[1])))

    def cells(self, world: str) -> list[str]:
        """Regret, and seeds that are locked or play one arm."""
        run = self.runs.get(world)
        if run is None:
            return ["–", "–"]
        return [estimate(bootstrap(run.final_regret)), f"{stuck(run)} / {single(run)}"]


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


def part(book: Book) -> str:
    """What the page of the worlds says of them."""
    found = found_in(book)
    said = [*_said(found), f"[Both worlds, all samplers]({PAGE})."] if found else [NOT_RUN]
    return section(TITLE, " ".join(said))


def page(book: Book) -> str:
    """Table, sentences and figure on a page of their own."""
    head, found = f"# {TITLE}", found_in(book)
    if not found:
        return f"{head}\n\n{NOT_RUN}\n"
    one = next(r for s in found for r in s.exact.values())
    about = (
        "`linear-trap-16` with prior 0.5, the [bad world and its mirror](../worlds.md), "
        f"{one.rounds} rounds, {len(one.seeds)} seeds. The bonus has λ_s = 1/√s, and all agents "
        "are told noise and prior. Its law has two far modes, one per arm. A sampler keeps the "
        "promise of the bonus if it plays both arms as often as `exact-fgts`, which draws from "
        f"the law itself.{_chance(book, found)}"
    )
    columns = (
        "*Locked* seeds play the worse arm mostly; *one arm*: a single arm in the second half. "
        "*Off*: percentage points between the shares of the worse arm and those of the exact law "
        "at the same temperature, mean along the run, bad world and mirror. Brackets hold 95 % "
        "bootstrap intervals."
    )
    header = ("agent", "bad world", "locked / one arm", "mirror", "locked / one arm", "off")
    rows = []
    for s in found:
        off = " / ".join("–" if (v := s.off(world)) is None else f"{v:.0f}" for world in WORLDS)
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


def _said(found: Sequence[Sampler]) -> list[str]:
    """Who stays in one mode of the bad world, and who does not."""
    chains = [s for s in found if not s.is_exact and not s.several]
    stay = [s.label for s in chains if s.stays]
    passing = [s.label for s in chains if not s.stays]
    said = [f"In the bad world most seeds stay in one mode: {enumeration(stay)}."] if stay else []
    return said + ([f"Not so: {enumeration(passing)}."] if passing else [])


def _premium(found: Sequence[Sampler]) -> list[str]:
    """Whether those that stay pay the law's price in the mirror."""
    stay = [s for s in found if s.stays and not s.is_exact and not s.several]
    stay = [s for s in stay if WORLDS[1] in s.runs and s.exact]
    less = [s for s in stay if _pays_less(s)]
    if not less:
        return []
    return [
        f"In the mirror {len(less)} of these {len(stay)} lose less than the law does, beyond the "
        "intervals: what does not pay the premium does not have the insurance either."
    ]


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
    locked = enumeration([f"{stuck(s.runs[bad])} with {kind}" for s, kind in counts])
    said = [
        f"Several chains of {kernel} share their rounds, and one of them plays. Of "
        f"{len(own[0].runs[bad].seeds)} seeds lock {locked}."
    ]
    less = [_kind(s) for s in own if _pays_less(s)]
    if less:
        said.append(
            f"This is not the law: in the mirror {enumeration(less)} lose less than it does, "
            "beyond the intervals."
        )
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
    return bootstrap(np.array([one[s] - other[s] for s in common])).high < 0
