"""The page on worlds where Thompson sampling fails: what the feel-good bonus buys, and its price.

`page` makes text and figures of the kept results alone. What is not there is said to be not run.
"""

from collections.abc import Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.intervals import Estimate, bootstrap
from showdown import world_figures, world_samplers, yardsticks
from showdown.book import Book, grid, items, section
from showdown.effects import FEWEST_SEEDS, enumeration, estimate, number, signed
from showdown.world_runs import (
    FRONTIER,
    KINDS,
    Point,
    Setting,
    ahead_from,
    beaten_by,
    largest_regrets,
    late_rates,
    on_frontier,
    points_of,
    price,
    regrets_by_seed,
    slope,
    stuck,
    worlds_of,
)

NOT_RUN = "Not run."
#: Of most runs.
ROUNDS = 10_000
#: Kinds of agents, as sentences count them.
NAMES = {
    "plain": "plain agents",
    "hotter": "hotter ones",
    "constant λ": "constant weights",
    "λ_s = c/√s": "falling weights",
}
#: The trap that is also shown after fewer rounds: the agents do not know how many there will be.
ALONG, HORIZONS = ("linear-trap-80", 1.0, 1.0), (100, 1_000)
#: λ_s = 1/√s, the schedule that the other sections are about.
FALLING = {"lam": 1.0, "lam_schedule": "sqrt"}

INTRODUCTION = """# When feeling good pays

The feel-good bonus is insurance: it pays where the prior calls the truth unlikely, and elsewhere it
costs a premium. [These worlds](../worlds.md) are such truths, each with its mirror image.
`exact-ts` and `exact-fgts` play by the exact law. Runs have 10,000 rounds where nothing else is
said. Brackets hold 95 % bootstrap intervals. λ_s is the bonus's weight in round s."""


def page(book: Book) -> str:
    """The page's text; its figures go into the book."""
    parts = [
        INTRODUCTION,
        *_yardsticks(book),
        _frontier(book),
        _growth(book),
        _price(book),
        world_samplers.part(book),
        _scaling(book),
        _wrong_models(book),
        _recommendation(book),
    ]
    return "\n\n".join(parts) + "\n"


def _yardsticks(book: Book) -> list[str]:
    """What chance and the best fixed arm lose in these worlds, in one sentence."""
    studies = {study for k in book.shelf.kept for study in k.studies if study.startswith("worlds-")}
    runs = [r for r in book.shelf.of(*studies) if "world" in r.testbed_settings]
    found = [y for y in yardsticks.those_of(runs, book.yardsticks) if y.rounds == ROUNDS]
    if not found:
        return []
    chance, fixed = [y.uniform for y in found], max(y.fixed for y in found)
    best = "nothing" if fixed == 0 else f"up to {number(fixed)}"
    return [
        f"Over these rounds chance loses from {number(min(chance))} to {number(max(chance))}, "
        f"depending on the world, and the best fixed arm {best}."
    ]


def _difference(a: AgentResult, b: AgentResult) -> Estimate:
    """Mean of a − b over common seeds, with its interval."""
    one, other = regrets_by_seed(a), regrets_by_seed(b)
    return bootstrap(np.array([one[s] - other[s] for s in sorted(one.keys() & other.keys())]))


def _told(difference: Estimate) -> str:
    low, high = signed(difference.low), signed(difference.high)
    return f"{signed(difference.value)} [{low}, {high}]"


def _mean(result: AgentResult) -> str:
    return estimate(bootstrap(result.final_regret))


# Worst case against Bayes --------------------------------------------------------------------


def _frontier(book: Book) -> str:
    title = "Worst case against Bayes"
    points = points_of(book.shelf.of(FRONTIER))
    if not points:
        return section(title, NOT_RUN)
    figure = book.figure(
        "worlds-frontier",
        "Regret in the bad world over that under the prior; the frontier is ringed.",
        lambda: world_figures.frontier(points),
    )
    about = (
        "On the *frontier* are agents that no other one beats both in the bad world and averaged "
        "over the prior."
    )
    return section(title, about, figure, items(_frontier_said(points)))


def _frontier_said(points: Sequence[Point]) -> list[str]:
    constant = [p for p in points if p.kind == "constant λ"]
    lost = [p for p in constant if beaten_by(p, [q for q in points if q.kind == "λ_s = c/√s"])]
    front = [p for p in points if p in on_frontier([q for q in points if q.testbed == p.testbed])]
    kinds = [(name, sum(p.kind == name for p in front)) for name in KINDS]
    worst = dict(largest_regrets(points))
    least = [f"{name} ({number(worst[name])})" for name in list(worst)[:3]]
    said = [
        f"Of {len(constant)} constant weights, counted per world, {len(lost)} are beaten in both "
        "by a weight that falls, beyond the intervals.",
        "On the frontiers are "
        + enumeration([f"{count} {NAMES[name]}" for name, count in kinds])
        + ".",
    ]
    if "plain" in worst:
        said.append(
            "The worst of all bad worlds and mirrors costs plain sampling "
            f"{number(worst['plain'])}, and the least with {enumeration(least)}."
        )
    return said


# How plain Thompson sampling fails -----------------------------------------------------------


def _growth(book: Book) -> str:
    title = "How plain Thompson sampling fails"
    runs = [r for r in book.shelf.of("worlds-traps") if r.agent == "exact-ts"]
    said = []
    for prefix, words, law in (
        ("trap-", "On `trap-P` its regret grows as P to the power", "−½ by theory"),
        (
            "superarm-",
            "On `superarm-M` it grows as e^(c·M), c =",
            "0.131 but for a power of M",
        ),
    ):
        own = [r for r in runs if r.testbed.startswith(prefix)]
        if len(own) < 3:
            continue
        x = np.array([float(r.testbed.removeprefix(prefix)) for r in own])
        fit = slope(np.log(x) if prefix == "trap-" else x, [r.final_regret for r in own])
        said.append(
            f"{words} {_three(fit.value)} [{_three(fit.low)}, {_three(fit.high)}] ({law}; "
            f"{len(own)} "
            f"worlds, {len(own[0].seeds)} seeds)."
        )
    return section(title, items(said) if said else NOT_RUN)


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
        "A rival overstates an arm by b; in truth it is g below the best. Then a constant λ costs "
        "λbg/(η(b + g)²) per round for ever, η = 1/(2 noise²). Over "
        f"{len(rows)} triples λ, b, g, λ from {weights[0]:g} to {weights[-1]:g}, the law is off by "
        f"at most {100 * off:.1f} % ({len(runs[0].seeds)} seeds)."
    )
    linear = _linear_costs(book)
    said = [_linear_said(testbed, linear) for testbed in ("linear-20", "linear-40")]
    if any(said):
        said.append("There the law is only a ceiling.")
    figure = book.figure(
        "worlds-price",
        "Cost per round, measured over the law's. On linear-20 and linear-40: `fglmcts`, late "
        "rounds, over a rival's largest price, λ/4.",
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
    rows = []
    for key, pair in worlds_of(runs, FALLING).items():
        # The prior's strength is in the figure.
        if key[1] == 1.0 and "bad" in pair and "prior" in pair:
            for begun in HORIZONS if key == ALONG else ():
                early = [_told(_until(*pair[world], begun)) for world in ("bad", "prior")]
                rows.append([f"{_called(key)}, {_round(pair['bad'][0], begun):,} rounds", *early])
            cells = [_told(_difference(*pair[world])) for world in ("bad", "prior")]
            rows.append([_called(key), *cells])
    header = ("linear trap", "bad world", "truth from the prior")
    along = _ahead(book.shelf.of(FRONTIER))
    figure = book.figure(
        "worlds-prior",
        "`linear-trap-80`, bad world: regret over the prior's deviation. The truth is 4.5 from "
        "the prior mean.",
        lambda: world_figures.prior_strength(runs),
    )
    return section(
        title,
        "What λ_s = 1/√s adds to plain Thompson sampling. Negative: it pays.",
        grid(header, rows),
        _prior_said(runs),
        along,
        figure,
    )


def _round(run: AgentResult, begun: int) -> int:
    """The first kept round from this one on."""
    return int(run.curve_rounds[np.searchsorted(run.curve_rounds, begun)])


def _until(a: AgentResult, b: AgentResult, begun: int) -> Estimate:
    """The same difference after so many rounds; both have the same seeds and kept rounds."""
    at = int(np.searchsorted(a.curve_rounds, begun))
    return bootstrap(a.curve[:, at] - b.curve[:, at])


def _called(setting: Setting) -> str:
    testbed, prior, noise = setting
    changed = [f"prior {prior:g}"] * (prior != 1) + [f"noise {noise:g}"] * (noise != 1)
    return ", ".join([f"`{testbed}`", *changed])


def _ahead(results: Sequence[AgentResult]) -> str:
    """From which number of rounds on the bonus pays, in the bad worlds of the frontier."""
    pairs = worlds_of([r for r in results if _cool(r)], FALLING).values()
    rounds = [ahead_from(*pair["bad"]) for pair in pairs if "bad" in pair]
    known = [first for first in rounds if first is not None]
    if not known or len(known) < len(rounds):
        return ""
    return f"In the four bad worlds above it is ahead from round {max(known):,} on, or earlier."


def _cool(r: AgentResult) -> bool:
    return bool(r.settings["temperature"] == 1)


def _prior_said(runs: Sequence[AgentResult]) -> str:
    """For which priors of linear-trap-80 the bonus pays and costs, in the bad world."""
    pays, costs = [], []
    for key, pair in worlds_of(runs, FALLING).items():
        if key[0] == "linear-trap-80" and key[2] == 1.0 and "bad" in pair:
            extra = _difference(*pair["bad"])
            if extra.high < 0:
                pays.append(key[1])
            elif extra.low > 0:
                costs.append(key[1])
    if not pays or not costs:
        return ""
    return (
        f"The prior's strength decides: with a deviation up to {max(pays):g} the bonus pays, from "
        f"{min(costs):g} on it costs. So prior "
        "strength matters, as the paper's abstract says."
    )


# Wrong models --------------------------------------------------------------------------------


def _wrong_models(book: Book) -> str:
    title = "Where the model is wrong"
    runs = book.shelf.of("worlds-wrong-prior")
    rows = []
    for key, pair in worlds_of(runs, FALLING).items():
        if "bad" in pair and "mirror" in pair:
            plain = [number(float(np.mean(pair[w][1].final_regret))) for w in ("bad", "mirror")]
            cells = [_told(_difference(*pair[w])) for w in ("bad", "mirror")]
            rows.append([f"`{key[0]}`", " / ".join(plain), *cells])
    table = (
        grid(("world", "plain: bad / mirror", "bonus: bad", "bonus: mirror"), rows) if rows else ""
    )
    return section(title, table or NOT_RUN, _clipped(book))


def _clipped(book: Book) -> str:
    runs = [r for r in book.shelf.of("worlds-clipped") if r.testbed_settings["world"] == "bad"]

    def one(agent: str, **own: object) -> AgentResult | None:
        fits = (r for r in runs if r.agent == agent and own.items() <= r.settings.items())
        return next(fits, None)

    plain, clipped = one("exact-ts", clip=0.0), one("exact-ts", clip=0.05)
    mended = one("exact-fgts", clip=0.05, lam=0.01, lam_schedule="constant")
    falling = one("exact-fgts", clip=0.05, **FALLING)
    if plain is None or clipped is None or mended is None or falling is None:
        return ""
    return (
        "A sampler that never draws arms of a probability below 0.05 (`trap-0.5`, gap ½) has "
        f"{_mean(clipped)} instead of {_mean(plain)}: {stuck(clipped)} of {len(clipped.seeds)} "
        f"seeds are stuck. A bonus frees them: λ = 0.01 gives {_mean(mended)}, λ_s = 1/√s "
        f"{_mean(falling)}."
    )


# Recommendation ------------------------------------------------------------------------------


def _recommendation(book: Book) -> str:
    said = [
        "**Switch the bonus on** where the prior may be too sure of itself: a good arm would "
        "surprise you, or a sampler misses rare draws.",
        "**Let its weight fall**: λ_s = 1/√s, in units of one over the rewards'. By the price law "
        "a rival then costs at most noise²·√T, and no horizon need be known. This is the default "
        "of all agents with a bonus: `lam = 1`, `lam_schedule = sqrt`.",
    ]
    said += _schedule_said(book)
    others = _elsewhere(book)
    said += [
        f"On {r.testbed} it adds {_told(_difference(r, plain))} to a regret of "
        f"{number(float(np.mean(plain.final_regret)))} (`{r.agent}`, {len(r.seeds)} seeds)."
        for r, plain in others
    ]
    lacking = [] if any("neural" in r.agent for r, _ in others) else ["with networks"]
    if not any(r.testbed.startswith("logistic") for r, _ in others):
        lacking.append("in logistic bandits")
    if lacking:
        said.append(f"**Not run**: this schedule {enumeration(lacking)}.")
    return section("Recommendation", items(said))


def _elsewhere(book: Book) -> list[tuple[AgentResult, AgentResult]]:
    """The schedule on problems that are no such worlds, beside no bonus, at temperature 1.

    Wheels have a page of their own.
    """
    studies = {study for k in book.shelf.kept for study in k.studies}
    runs = book.shelf.of(*(study for study in studies if not study.startswith("worlds-")))
    own = [
        r
        for r in runs
        if FALLING.items() <= r.settings.items() and r.settings.get("temperature", 1.0) == 1.0
    ]
    elsewhere = [r for r in own if not r.testbed.startswith(("linear-", "wheel-"))]
    pairs = [(r, book.shelf.plain(r)) for r in elsewhere]
    found = [
        (r, plain)
        for r, plain in pairs
        if plain is not None and len({*r.seeds} & {*plain.seeds}) >= FEWEST_SEEDS
    ]
    return sorted(found, key=lambda pair: (pair[0].testbed, pair[0].agent, str(pair[0].settings)))


def _schedule_said(book: Book) -> list[str]:
    """What the schedule does on the paper's linear bandits, beside λ = 0 and the constant 0.1."""
    said = []
    constant = [r for r in book.shelf.of("question-lambda") if r.agent == "fglmcts"]
    for r in sorted(book.shelf.of("worlds-schedule"), key=lambda r: r.testbed):
        if r.settings["lam"] != FALLING["lam"]:
            continue
        by_weight = {b.settings["lam"]: b for b in constant if b.testbed == r.testbed}
        if 0 not in by_weight or 0.1 not in by_weight:
            continue
        plain, usual = by_weight[0], by_weight[0.1]
        said.append(
            f"On {r.testbed} it adds {_told(_difference(r, plain))} to a regret of "
            f"{number(float(np.mean(plain.final_regret)))}, a constant 0.1 "
            f"{_told(_difference(usual, plain))} (`fglmcts`, {len(r.seeds)} seeds)."
        )
    return said
