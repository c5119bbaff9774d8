"""Samplers along one recorded history: a part of their page."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from scipy import stats

from feelgood.stats.holm import holm
from showdown.arm_laws import LAW, ArmLaw
from showdown.book import Book, grid, items, section
from showdown.effects import enumeration
from showdown.families import ALPHA

TITLE = "Along one history"
#: So many of the stretches are shown.
SHOWN = 4


@dataclasses.dataclass(frozen=True)
class Follower:
    """A sampler along the history, beside exact draws at its temperature."""

    label: str
    own: tuple[ArmLaw, ...]
    exact: tuple[ArmLaw, ...]
    #: Which shares are not the law's, and whether more chains keep to one arm at the end.
    off: tuple[bool, ...]
    stays: bool

    @property
    def is_exact(self) -> bool:
        return self.own == self.exact

    @property
    def follows(self) -> bool:
        return not self.stays and not any(self.off)


def followers(rows: Sequence[ArmLaw]) -> list[Follower]:
    """All samplers; tests of one kind are corrected together, exact draws among them."""
    runs: dict[tuple[str, float], list[ArmLaw]] = {}
    for row in rows:
        runs.setdefault((row.agent, row.temperature), []).append(row)
    shares = [_off(r) for own in runs.values() for r in own]
    off = iter(holm(np.array(shares)) <= ALPHA) if shares else iter(())
    alone = [_alone(own[-1], runs[LAW, heat][-1]) for (_, heat), own in runs.items()]
    stays = holm(np.array(alone)) <= ALPHA if alone else ()
    return [
        Follower(
            f"`{agent}`" + ("" if heat == 1 else f" (temperature {heat:g})"),
            tuple(own),
            tuple(runs[LAW, heat]),
            tuple(bool(next(off)) for _ in own),
            bool(stay),
        )
        for ((agent, heat), own), stay in zip(runs.items(), stays, strict=True)
    ]


def _off(row: ArmLaw) -> float:
    """p of the test that the mean share is the law's; chains that all draw alike have no error."""
    far = abs(row.share - row.law)
    return float(2.0 * stats.norm.sf(far / row.error)) if row.error > 0 else float(far == 0.0)


def _alone(own: ArmLaw, exact: ArmLaw) -> float:
    """p of Fisher's test: no more chains keep to one arm than of exact draws."""
    both, hits = own.chains + exact.chains, own.single + exact.single
    return float(stats.hypergeom.sf(own.single - 1, both, hits, own.chains))


def summary(book: Book) -> str:
    """One sentence for the page of the worlds."""
    chains = [f for f in followers(book.arm_laws) if not f.is_exact]
    if not chains:
        return ""
    found = [f.label for f in chains if f.follows]
    who = enumeration(found) if found else "none"
    return (
        f"Given one history, {len(found)} of {len(chains)} are not told apart from the exact law: "
        f"{who}. Jumps are [proven](../proofs.md#jumps-between-modes-testssamplerstest_jumpspy)."
    )


def part(book: Book) -> str:
    """Who follows the law, and shares of the worse arm beside it."""
    found = followers(book.arm_laws)
    if not found:
        return ""
    first = found[0].own
    shown = [round(float(i)) for i in np.linspace(0, len(first) - 1, SHOWN)]
    about = (
        "The arms and rewards of one run of `exact-fgts` in the bad world are given to "
        f"{first[0].chains} chains of each sampler, whatever these would have played. So the exact "
        "probability of the worse arm is one number per round. The table has the share of draws "
        "in which it looks best, in per cent. *One arm*: chains that draw one arm alone in the "
        "last stretch. Bold: not as the law, by Holm's rule."
    )
    header = ("draws", *(f"rounds {first[i].first} to {first[i].last}" for i in shown), "one arm")
    return section(TITLE, about, items(_said(found)), grid(header, _rows(found, shown)))


def _said(found: Sequence[Follower]) -> list[str]:
    chains = [f for f in found if not f.is_exact]
    follow = [f.label for f in chains if f.follows]
    right = [f.label for f in chains if f.stays and not any(f.off)]
    told = enumeration(follow) if follow else "none"
    said = [f"Not told apart from the law in any stretch: {told}."]
    if right:
        said.append(
            "Not shown to be off on average, but too many chains keep to one arm: "
            f"{enumeration(right)}."
        )
    wrong = [f for f in found if f.is_exact and not f.follows]
    if wrong:
        said.append(f"Exact draws themselves are off: {enumeration([f.label for f in wrong])}.")
    return said


def _rows(found: Sequence[Follower], shown: Sequence[int]) -> list[list[str]]:
    """After the law of each temperature those who should follow it."""
    rows = []
    for f in sorted(found, key=lambda f: (f.own[0].temperature, not f.is_exact, f.own[-1].single)):
        if f.is_exact:
            rows.append(["*the law*", *(_percent(f.own[i].law) for i in shown), ""])
        cells = [_bold(_percent(f.own[i].share), f.off[i]) for i in shown]
        rows.append([f.label, *cells, _bold(str(f.own[-1].single), f.stays)])
    return rows


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _bold(text: str, wrong: bool) -> str:
    return f"**{text}**" if wrong else text
