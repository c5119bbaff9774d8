"""The page on worlds where Thompson sampling fails: what the feel-good bonus buys, and its price.

`page` makes text and figures of the kept results alone. What is not there is said to be not run.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.intervals import Estimate, bootstrap
from feelgood.stats.studentised import StudentisedMean, studentised
from showdown import world_advice, world_figures, world_frontier, world_samplers
from showdown.book import Book, grid, items, section
from showdown.effects import enumeration, estimate, number
from showdown.wording import interval
from showdown.world_runs import (
    FALLING,
    FRONTIER,
    HOT,
    MIRRORED,
    Pairs,
    Setting,
    ahead_from,
    difference,
    heated_of,
    late_rates,
    price,
    slope,
    stuck,
    worlds_of,
)

NOT_RUN = "Not run."
#: The trap that is also shown after fewer rounds: the agents do not know how many there will be.
ALONG, HORIZONS = ("linear-trap-80", 1.0, 1.0), (100, 1_000)

INTRODUCTION = """# When feeling good pays

The feel-good bonus is insurance: it pays where the prior calls the truth unlikely, and elsewhere it
costs a premium. [These worlds](../worlds.md) are such truths, each with its mirror image.
`exact-ts` and `exact-fgts` play by the exact law. Runs have 10,000 rounds where nothing else is
said. Brackets hold 95 % bootstrap intervals. λ_s is the bonus's weight in round s."""


def page(book: Book) -> str:
    """The page's text; its figures go into the book."""
    parts = [
        INTRODUCTION,
        world_frontier.part(book),
        _growth(book),
        _price(book),
        world_samplers.part(book),
        *world_advice.elsewhere(book),
        _scaling(book),
        _wrong_models(book),
        world_advice.part(book),
    ]
    return "\n\n".join(parts) + "\n"


def _mean(result: AgentResult) -> str:
    return estimate(bootstrap(result.final_regret))


# How plain Thompson sampling fails -----------------------------------------------------------


def _growth(book: Book) -> str:
    title = "How plain Thompson sampling fails"
    runs = [r for r in book.shelf.of("worlds-traps") if r.agent == "exact-ts"]
    said = []
    for prefix, words, law in (
        (
            "trap-",
            "On `trap-P` its regret grows as P to the power",
            "Theory says −½ far from the limit, √(T/P). At small P regret comes near it, so that "
            "the fit is steeper.",
        ),
        (
            "superarm-",
            "On `superarm-M` it grows as e^(c·M), c =",
            "Theory says 0.131, times a power of M that makes the fit steeper.",
        ),
    ):
        own = [
            r for r in runs if r.testbed.startswith(prefix) and r.testbed_settings["world"] == "bad"
        ]
        if len(own) < 3:
            continue
        x = np.array([float(r.testbed.removeprefix(prefix)) for r in own])
        fit = slope(np.log(x) if prefix == "trap-" else x, [r.final_regret for r in own])
        said.append(
            f"{words} {_three(fit.value)} [{_three(fit.low)}, {_three(fit.high)}] "
            f"({len(own)} worlds, {len(own[0].seeds)} seeds). {law}"
        )
    if said:
        said += _growth_mirrored(book.shelf.of("worlds-traps"))
    return section(title, items(said) if said else NOT_RUN)


def _growth_mirrored(runs: Sequence[AgentResult]) -> list[str]:
    """The most that plain sampling and the bonus lose in the mirrors of these worlds."""
    pairs = [pair["mirror"] for pair in worlds_of(runs, FALLING).values() if "mirror" in pair]
    if not pairs:
        return []
    bold, plain = (
        max((bootstrap(pair[i].final_regret) for pair in pairs), key=lambda e: e.value)
        for i in (0, 1)
    )
    return [
        f"In their {len(pairs)} mirrors plain sampling loses at most {estimate(plain)}, "
        f"λ_s = 1/√s at most {estimate(bold)}."
    ]


def _three(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


# The price -----------------------------------------------------------------------------------


def _price(book: Book) -> str:
    title = "What a constant weight costs"
    runs = book.shelf.of("worlds-price")
    if not runs:
        return section(title, NOT_RUN)
    rows = [("trap-0.5", price(r), bootstrap(late_rates(r, 2_000))) for r in runs]
    off = max(abs(rate.value / law - 1.0) for _, law, rate in rows)
    weights = sorted({r.settings["lam"] for r in runs})
    law = (
        "Suppose one wrong hypothesis, a *rival*, says that an arm pays b more than the best one. "
        "In truth it pays g less. Then a constant λ costs λbg/(η(b + g)²) per round for ever, "
        "η = 1/(2 noise²). Over "
        f"{len(rows)} triples λ, b, g, λ from {weights[0]:g} to {weights[-1]:g}, the law is off by "
        f"at most {100 * off:.1f} % ({len(runs[0].seeds)} seeds)."
    )
    linear = _linear_costs(book)
    said = [_linear_said(testbed, linear) for testbed in ("linear-20", "linear-40")]
    if any(said):
        said.append("There the law is only a ceiling.")
    figure = book.figure(
        "worlds-price",
        "Measured cost per round over the law's. On linear-20 and linear-40: that of `fglmcts` in "
        "late rounds, against the highest price one rival can have: λ/4 per round, at b = g and "
        "the agents' η = 1.",
        lambda: world_figures.prices([*rows, *linear]),
    )
    return section(title, law, figure, " ".join(s for s in said if s))


def _linear_costs(book: Book) -> list[tuple[str, float, Estimate]]:
    """What constant weights add per round of the second half, beside λ = 0; η = 1 there."""
    found = []
    runs = [r for r in book.shelf.of("question-lambda") if r.agent == "fglmcts"]
    for r in sorted(runs, key=lambda r: (r.testbed, r.settings["lam"])):
        plain = [b for b in runs if b.testbed == r.testbed and b.settings["lam"] == 0]
        if r.settings["lam"] > 0 and plain:
            extra = late_rates(r, r.rounds // 2) - late_rates(plain[0], r.rounds // 2)
            found.append((r.testbed, r.settings["lam"] / 4.0, bootstrap(extra)))
    return found


def _linear_said(testbed: str, costs: Sequence[tuple[str, float, Estimate]]) -> str:
    own = [(4 * law, rate, law) for name, law, rate in costs if name == testbed]
    if not own:
        return ""
    seen = [f"{lam:g}" for lam, rate, _ in own if rate.low > 0]
    most = max(rate.value / law for _, rate, law in own)
    if not seen:
        return f"On {testbed} no weight adds a cost per round beyond its interval."
    return (
        f"On {testbed} a cost is seen at λ = {enumeration(seen)}: at most {100 * most:.0f} % "
        "of a rival's largest price."
    )


# Scaling -------------------------------------------------------------------------------------


def _scaling(book: Book) -> str:
    title = "Where the sign changes"
    runs = book.shelf.of("worlds-scaling")
    if not runs:
        return section(title, NOT_RUN)
    worlds = (*MIRRORED, "prior")
    found = {key: pair for key, pair in worlds_of(runs, FALLING).items() if "bad" in pair}
    rows = []
    for key, pair in found.items():
        # The prior's strength is in the figure.
        if key[1] == 1.0:
            along = [n for n in HORIZONS if n < pair["bad"][0].rounds] if key == ALONG else []
            for begun in along:
                early = [interval(_until(*pair[w], begun)) if w in pair else "–" for w in worlds]
                rows.append([f"{_called(key)}, {_round(pair['bad'][0], begun):,} rounds", *early])
            cells = [interval(difference(*pair[w])) if w in pair else "–" for w in worlds]
            rows.append([_called(key), *cells])
    header = ("linear trap", "bad world", "mirror", "truth from the prior")
    figure = book.figure(
        "worlds-prior",
        "`linear-trap-80`, bad world: regret over the prior's deviation. The truth is 4.5 from "
        "the prior mean.",
        lambda: world_figures.prior_strength(runs),
    )
    said = [_size_said(found), _rounds_said(found, book), _noise_said(found), _prior_said(found)]
    return section(
        title,
        "What λ_s = 1/√s adds to plain Thompson sampling. Negative: it pays.",
        grid(header, rows),
        items([s for s in said if s]),
        figure,
    )


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
    pays, costs = (
        [int(key[0].rpartition("-")[2]) for key in keys] for keys in _signs(found, axis=0)
    )
    if not pays or not costs or min(pays) < max(costs):
        return ""
    return (
        f"**Coordinates**: in the bad world it costs up to d = {max(costs)} and pays from "
        f"d = {min(pays)} on."
    )


def _rounds_said(found: Mapping[Setting, Pairs], book: Book) -> str:
    """From which round on the bonus is ahead in bad worlds, by the prior's strength."""
    pays, _ = _signs(found, axis=1)
    ahead = {key[1]: ahead_from(*found[key]["bad"]) for key in pays}
    told = [f"{first:,} (deviation {prior:g})" for prior, first in ahead.items() if first]
    others = worlds_of(book.shelf.of(FRONTIER), FALLING).values()
    rounds = [ahead_from(*pair["bad"]) for pair in others if "bad" in pair]
    known = [first for first in rounds if first is not None]
    said = []
    if told:
        said.append(
            "**Rounds**: on `linear-trap-80` its mean regret is below that of plain sampling from "
            f"round {enumeration(told)} on."
        )
    if known and len(known) == len(rounds):
        said.append(
            f"In the {len(known)} bad worlds of the first figure it is so from round "
            f"{max(known):,} on."
        )
    return " ".join(said)


def _noise_said(found: Mapping[Setting, Pairs]) -> str:
    """At which noise the bonus costs more under the prior than it gains in the bad world."""
    dear = []
    for key in _signs(found, axis=2)[0]:
        pair = found[key]
        if "prior" in pair and difference(*pair["prior"]).value > -difference(*pair["bad"]).value:
            dear.append(f"{key[2]:g}")
    if not dear:
        return ""
    return (
        f"**Noise**: at noise {enumeration(dear)} it gains in the bad world, and costs more under "
        "the prior."
    )


def _prior_said(found: Mapping[Setting, Pairs]) -> str:
    """For which priors of linear-trap-80 the bonus pays and costs."""
    pays, costs = ([key[1] for key in keys] for keys in _signs(found, axis=1))
    if not pays or not costs:
        return ""
    said = (
        f"**Prior strength**, which the paper's abstract names among its ablations: with a "
        f"deviation up to {max(pays):g} the bonus pays in the bad world, from {min(costs):g} on it "
        "costs."
    )
    own = [pair for k, pair in found.items() if (k[0], k[2]) == (ALONG[0], ALONG[2])]
    extra = [difference(*pair["prior"]) for pair in own if "prior" in pair]
    if not extra or min(e.low for e in extra) <= 0:
        return said
    least, most = min(extra, key=lambda e: e.value), max(extra, key=lambda e: e.value)
    return (
        f"{said} Under the prior it costs at every strength: from {interval(least)} to "
        f"{interval(most)}."
    )


# Wrong models --------------------------------------------------------------------------------


def _wrong_models(book: Book) -> str:
    title = "Where the model is wrong"
    runs = book.shelf.of("worlds-wrong-prior")
    heated = heated_of(runs, HOT)
    rows = []
    for key, pair in worlds_of(runs, FALLING).items():
        if "bad" in pair and "mirror" in pair:
            plain = [number(float(np.mean(pair[w][1].final_regret))) for w in MIRRORED]
            cells = [interval(difference(*pair[w])) for w in MIRRORED]
            hot = heated.get(key, {})
            cells += [interval(difference(*hot[w])) if w in hot else "–" for w in MIRRORED]
            rows.append([f"`{key[0]}`", " / ".join(plain), *cells])
    header = (
        "world",
        "plain: bad / mirror",
        "bonus adds, bad world",
        "mirror",
        f"temperature {HOT:g} adds, bad world",
        "mirror",
    )
    opposites = "`opposites`: no parameter fits both arms, so optimism cannot help."
    table = [grid(header, rows), opposites] if rows else [NOT_RUN]
    return section(title, *table, _clipped(book))


def _clipped(book: Book) -> str:
    runs = book.shelf.of("worlds-clipped")

    def one(agent: str, world: str, **own: object) -> AgentResult | None:
        own = {"clip": 0.05, "temperature": 1.0} | own
        fits = (
            r
            for r in runs
            if r.agent == agent
            and r.testbed_settings["world"] == world
            and own.items() <= r.settings.items()
        )
        return next(fits, None)

    plain, clipped = one("exact-ts", "bad", clip=0.0), one("exact-ts", "bad")
    mended = one("exact-fgts", "bad", lam=0.01, lam_schedule="constant")
    falling = one("exact-fgts", "bad", **FALLING)
    hot = one("exact-ts", "bad", temperature=HOT)
    mirrors = [one("exact-ts", "mirror"), one("exact-fgts", "mirror", **FALLING)]
    mirrors.append(one("exact-ts", "mirror", temperature=HOT))
    if plain is None or clipped is None or mended is None or falling is None or hot is None:
        return ""
    said = (
        "A sampler that never draws arms of a probability below 0.05 (`trap-0.5`, gap ½) has "
        f"{_mean(clipped)} instead of {_mean(plain)}: {stuck(clipped)} of {len(clipped.seeds)} "
        f"seeds are stuck. With λ = 0.01 it has {_mean(mended)}, with λ_s = 1/√s "
        f"{_mean(falling)}, at temperature {HOT:g} {_mean(hot)}."
    )
    told = [_mean(r) for r in mirrors if r is not None]
    if len(told) < 3:
        return said
    return (
        f"{said} In the mirror it has {told[0]}, with λ_s = 1/√s {told[1]}, at temperature "
        f"{HOT:g} {told[2]}."
    )
