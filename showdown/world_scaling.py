"""Where the bonus begins to pay: the linear trap over dimension, rounds, noise and prior."""

from collections.abc import Mapping, Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.studentised import StudentisedMean, studentised
from showdown import world_figures
from showdown.book import Book, grid, items, section
from showdown.effects import enumeration
from showdown.wording import interval
from showdown.world_frontier import NOT_RUN
from showdown.world_runs import (
    FALLING,
    MIRRORED,
    Pairs,
    Setting,
    ahead_from,
    difference,
    worlds_of,
)
from showdown.world_wrong import PAGE

STUDY = "worlds-scaling"
WORLDS = (*MIRRORED, "prior")
#: The trap that is also shown after fewer rounds: the agents do not know how many there will be.
ALONG, HORIZONS = ("linear-trap-80", 1.0, 1.0), (100, 1_000)


def part(book: Book) -> str:
    """What the page of the worlds has of it."""
    title, found = "Where the sign changes", _pairs(book)
    if not found:
        return section(title, NOT_RUN)
    figure = book.figure(
        "worlds-prior",
        "`linear-trap-80`: regret over the prior's deviation. The truth lies 4.5 from its mean.",
        lambda: world_figures.prior_strength(book.shelf.of(STUDY)),
    )
    said = [_size_said(found), _rounds_said(found), _noise_said(found), _prior_said(found)]
    return section(
        title,
        f"What λ_s = 1/√s adds to plain sampling on the linear trap ([all numbers]({PAGE})):",
        items([s for s in [*said, _mirror_said(found)] if s]),
        figure,
    )


def tables(book: Book) -> list[str]:
    """All differences in three worlds each."""
    rows = []
    for key, pair in _pairs(book).items():
        along = [n for n in HORIZONS if n < pair["bad"][0].rounds] if key == ALONG else []
        for begun in along:
            early = [interval(_until(*pair[w], begun)) if w in pair else "–" for w in WORLDS]
            rows.append([f"{_called(key)}, {_round(pair['bad'][0], begun):,} rounds", *early])
        cells = [interval(difference(*pair[w])) if w in pair else "–" for w in WORLDS]
        rows.append([_called(key), *cells])
    if not rows:
        return []
    header = ("linear trap", "bad world", "mirror", "truth from the prior")
    return [section("The linear trap", grid(header, rows))]


def _pairs(book: Book) -> dict[Setting, Pairs]:
    found = worlds_of(book.shelf.of(STUDY), FALLING)
    return {key: pair for key, pair in found.items() if "bad" in pair}


def _round(run: AgentResult, begun: int) -> int:
    """The first kept round from this one on."""
    return int(run.curve_rounds[np.searchsorted(run.curve_rounds, begun)])


def _until(a: AgentResult, b: AgentResult, begun: int) -> StudentisedMean:
    """The same difference after so many rounds; both have the same seeds and kept rounds."""
    at = int(np.searchsorted(a.curve_rounds, begun))
    return studentised(a.curve[:, at] - b.curve[:, at])


def _called(setting: Setting) -> str:
    testbed, prior, noise = setting
    changed = [f"prior {prior:g}"] * (prior != 1) + [f"noise {noise:g}"] * (noise != 1)
    return ", ".join([f"`{testbed}`", *changed])


def _signs(found: Mapping[Setting, Pairs], axis: int) -> tuple[list[Setting], list[Setting]]:
    """Where the bonus pays and where it costs in the bad world, other axes as in `ALONG`."""
    others = [i for i in range(3) if i != axis]
    own = {k: pair for k, pair in found.items() if all(k[i] == ALONG[i] for i in others)}
    extra = {k: difference(*pair["bad"]) for k, pair in own.items()}
    pays = [k for k, own in extra.items() if own.high < 0]
    return pays, [k for k, own in extra.items() if own.low > 0]


def _size_said(found: Mapping[Setting, Pairs]) -> str:
    pays, costs = _signs(found, axis=0)
    sizes = [[int(key[0].rpartition("-")[2]) for key in keys] for keys in (pays, costs)]
    if not pays or not costs or min(sizes[0]) < max(sizes[1]):
        return ""
    last, first = (difference(*found[key]["bad"]) for key in (costs[-1], pays[0]))
    return (
        f"**Coordinates**: in the bad world it adds {interval(last)} at d = {max(sizes[1])}, and "
        f"{interval(first)} at d = {min(sizes[0])}."
    )


def _rounds_said(found: Mapping[Setting, Pairs]) -> str:
    """From which round on the bonus is ahead in bad worlds, by the prior's strength."""
    pays, _ = _signs(found, axis=1)
    ahead = [
        (first, key[1]) for key in pays if (first := ahead_from(*found[key]["bad"])) is not None
    ]
    if not ahead:
        return ""
    rounds, priors = (enumeration([f"{x:,}" for x in told]) for told in zip(*ahead, strict=True))
    return (
        f"**Rounds**: at d = 80 its mean regret is below that of plain sampling from round "
        f"{rounds} on, with deviations {priors}."
    )


def _noise_said(found: Mapping[Setting, Pairs]) -> str:
    """At which noise the bonus costs more under the prior than it gains in the bad world."""
    said = []
    for key in _signs(found, axis=2)[0]:
        pair = found[key]
        gain = difference(*pair["bad"])
        cost = difference(*pair["prior"]) if "prior" in pair else gain
        if cost.value > -gain.value:
            said.append(
                f"**Noise** {key[2]:g}: {interval(gain)} in the bad world, but {interval(cost)} "
                "under the prior."
            )
    return " ".join(said)


def _prior_said(found: Mapping[Setting, Pairs]) -> str:
    """For which priors of linear-trap-80 the bonus pays and costs."""
    pays, costs = ([key[1] for key in keys] for keys in _signs(found, axis=1))
    if not pays or not costs:
        return ""
    said = (
        "**Prior strength**, which the paper's abstract names, with the truth fixed. In the bad "
        f"world it pays with a deviation up to {max(pays):g} and costs from {min(costs):g} on."
    )
    own = [pair for k, pair in found.items() if (k[0], k[2]) == (ALONG[0], ALONG[2])]
    extra = [difference(*pair["prior"]) for pair in own if "prior" in pair]
    if not extra or min(e.low for e in extra) <= 0:
        return said
    return f"{said} Under the prior it costs at every strength."


def _mirror_said(found: Mapping[Setting, Pairs]) -> str:
    extra = [difference(*pair["mirror"]) for pair in found.values() if "mirror" in pair]
    if not extra or min(e.low for e in extra) <= 0:
        return ""
    return f"**In the mirrors** it costs everywhere, {_range(extra)}."


def _range(extra: Sequence[StudentisedMean]) -> str:
    least, most = min(extra, key=lambda e: e.value), max(extra, key=lambda e: e.value)
    return f"from {interval(least)} to {interval(most)}"
