"""Which samplers keep the promise of the bonus: the part of the page of the worlds on samplers."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.intervals import bootstrap
from showdown import world_figures
from showdown.book import Book, grid, section
from showdown.effects import enumeration, estimate
from showdown.world_runs import shares, single, stuck

STUDY = "worlds-samplers"
TITLE = "Which samplers keep the promise?"
NOT_RUN = "Not run."
WORLDS = ("bad", "mirror")


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
            place = (r.agent, float(r.settings["temperature"]))
            found.setdefault(place, {})[str(r.testbed_settings["world"])] = r
    made = [
        Sampler(
            f"`{agent}`" + ("" if heat == 1 else f", temperature {heat:g}"),
            own,
            found.get(("exact-fgts", heat), {}),
        )
        for (agent, heat), own in found.items()
    ]
    return sorted(made, key=lambda s: s.regret)


def part(book: Book) -> str:
    """Table, sentences and figure."""
    found = samplers(book.shelf.of(STUDY))
    if len(found) < 4 or not any(s.is_exact and s.exact for s in found):
        return section(TITLE, NOT_RUN)
    one = next(r for s in found for r in s.exact.values())
    about = (
        f"`linear-trap-16`, prior 0.5, {one.rounds} rounds, {len(one.seeds)} seeds, λ_s = 1/√s. "
        "The law has two far modes, one per arm. *Locked* seeds play the worse arm mostly; *one "
        "arm*: a single arm in the second half. *Off*: percentage points between the shares of the "
        "worse arm and those of the exact law, mean along the run, bad world and mirror."
    )
    header = ("agent", "bad world", "locked / one arm", "mirror", "locked / one arm", "off")
    rows = []
    for s in found:
        off = " / ".join("–" if (v := s.off(world)) is None else f"{v:.0f}" for world in WORLDS)
        rows.append([s.label, *s.cells("bad"), *s.cells("mirror"), off])
    figure = book.figure(
        "worlds-samplers",
        "Share of the worse arm along the run, beside the exact law; temperature 1.",
        lambda: world_figures.sampler_shares(
            [
                (s.label.strip("`"), world, r)
                for s in found
                for world, r in s.runs.items()
                if "," not in s.label
            ]
        ),
    )
    return section(TITLE, about, grid(header, rows), " ".join(_said(found)), figure)


def _said(found: Sequence[Sampler]) -> list[str]:
    chains = [s for s in found if not s.is_exact]
    stay = [s.label for s in chains if s.stays]
    passing = [s.label for s in chains if not s.stays]
    said = [f"In the bad world most seeds stay in one mode: {enumeration(stay)}."] if stay else []
    return said + ([f"Not so: {enumeration(passing)}."] if passing else [])
