"""What follows from the worlds: bonus and temperature elsewhere, and one recommendation."""

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.intervals import bca
from feelgood.stats.studentised import StudentisedMean
from showdown import world_elsewhere, world_frontier, world_many, world_wrong
from showdown.book import Book, items, section
from showdown.effects import enumeration, estimate, number
from showdown.families import Word
from showdown.questions import bonus_temperature, stuck_networks
from showdown.stuck_seeds import freed_and_bound
from showdown.wording import count, interval
from showdown.world_frontier import DEFAULT, HEAT
from showdown.world_runs import FALLING, HOT, Worst, difference, largest_regrets

#: A world whose noise is not 1.
NOISE_HALF = "superarm-80"
#: The paper's linear bandits, drawn as the prior says.
LINEAR = ("linear-20", "linear-40")


# Other questions -----------------------------------------------------------------------------


def elsewhere(book: Book) -> list[str]:
    """What two other pages say of the bonus, with links."""
    found = [_temperature(book), _networks(book)]
    return [section("Cold agents and stuck networks", items([f for f in found if f]))] * any(found)


def _temperature(book: Book) -> str:
    families = bonus_temperature.families(book)
    if not families or not families[0].members:
        return ""
    cold = bonus_temperature.stuck(book)[bonus_temperature.COLD]
    (freed, bound), tested = freed_and_bound(cold), families[0].tested
    lower, higher = (families[0].counts(word)[1] for word in (Word.HELPS, Word.HURTS))
    return (
        f"On cold draws the bonus lowers regret in {lower} of {tested} pairs and raises it in "
        f"{higher} (Holm). It frees stuck seeds in {freed} of {len(cold)} settings; in {bound} "
        f"more count as stuck, or are slow: [all temperatures](bonus-temperature.md)."
        f"{bonus_temperature.too_few(cold)}"
    )


def _networks(book: Book) -> str:
    runs = stuck_networks.Runs(book)
    judged = stuck_networks.judged_seeds(runs) if runs.all else {}
    bonus = judged.get(stuck_networks.BONUS, [])
    if not bonus:
        return ""
    freed, bound = freed_and_bound(bonus)
    return (
        f"Networks on adult: it binds seeds to a wrong arm in {bound} of {len(bonus)} settings and "
        f"frees some in {freed}: [why](stuck-networks.md)."
    )


# Recommendation ------------------------------------------------------------------------------


def part(book: Book) -> str:
    """What to do, then why: worst cases, and what both insurances cost elsewhere."""
    said = [*_advice(book), *_insured(book), *world_many.said(book), *_premiums(book)]
    said += [*world_wrong.said(book), *world_elsewhere.said(book)]
    return section("Recommendation", items(said))


def _insurances(book: Book) -> tuple[Worst, Worst] | None:
    """Temperature 4 and the default bonus."""
    named = {w.name: w for w in largest_regrets(world_frontier.points(book))}
    return (named[HEAT], named[DEFAULT]) if {HEAT, DEFAULT} <= named.keys() else None


def _insured(book: Book) -> list[str]:
    """Heat beside the default bonus in the worst case; the table has their averages."""
    found = _insurances(book)
    if found is None:
        return []
    hot, bonus = found
    worlds = count(len({p.testbed for p in world_frontier.points(book)}), "world")
    return [
        f"**At worst** of {worlds}, {HEAT} without a bonus loses {estimate(hot.regret)}, "
        f"{DEFAULT} {estimate(bonus.regret)}.{_units(book, bonus.where)}"
    ]


def _units(book: Book, where: str) -> str:
    """What nearly the default's weight gets in units of the noise, if its worst case is there."""
    near = [
        p
        for p in world_frontier.points(book)
        if (p.testbed, p.kind) == (NOISE_HALF, "λ_s = c/√s") and 2.0 <= float(p.label) < 2.5
    ]
    if not near or not where.startswith(NOISE_HALF):
        return ""
    return (
        f" That is on {NOISE_HALF}, where noise is ½: in its units the default is 2/√s, and "
        f"{near[0].name} loses {estimate(bca(near[0].bad))}."
    )


#: Plain draws, what heat adds, draws with the bonus, what it adds.
Premium = tuple[AgentResult, StudentisedMean, AgentResult, StudentisedMean]


def _beside(book: Book) -> dict[str, Premium]:
    """By linear bandit, out of the box: what heat adds, and what the bonus adds."""
    found = {}
    crossed = [r for r in book.shelf.of("question-temperature") if r.settings["lam"] == 0]
    boxed = [r for r in book.shelf.of("question-default") if FALLING.items() <= r.settings.items()]
    for testbed in LINEAR:
        by_heat = {r.settings["temperature"]: r for r in crossed if r.testbed == testbed}
        plain, hot = by_heat.get(1.0), by_heat.get(HOT)
        bold = next((r for r in boxed if (r.testbed, r.agent) == (testbed, "fglmcts")), None)
        if plain is not None and hot is not None and bold is not None:
            found[testbed] = (plain, difference(hot, plain), bold, difference(bold, plain))
    return found


def _premiums(book: Book) -> list[str]:
    """What both insurances cost where the truth is drawn as the prior says."""
    found = _beside(book)
    if not found:
        return []
    plain = [number(float(np.mean(p.final_regret))) for p, *_ in found.values()]
    hot = [interval(added) for _, added, *_ in found.values()]
    bonus = [
        f"{interval(added)} ({len({*p.seeds} & {*bold.seeds})} seeds)"
        for p, _, bold, added in found.values()
    ]
    return [
        f"On {enumeration(list(found))} {HEAT} adds {enumeration(hot)} to {enumeration(plain)}. "
        f"{DEFAULT} adds {enumeration(bonus)}."
    ]


def _advice(book: Book) -> list[str]:
    """Which of both, where the numbers say it; and the weight."""
    found, premiums = _insurances(book), _beside(book).values()
    cheaper = bool(premiums) and all(bonus.high < hot.low for _, hot, _, bonus in premiums)
    weight = (
        f"**Let the weight fall**: {DEFAULT}, the default (`lam = 1`, `lam_schedule = sqrt`). A "
        "rival (below) then costs at most noise²·√T. If your rewards are c times larger, divide "
        "λ by c."
    )
    safer = found is not None and found[0].regret.low <= found[1].regret.high
    if not safer or not cheaper or not world_many.decided(book):
        return [
            "**Switch the bonus on** where the prior may be too sure of itself: a good arm would "
            "surprise you, or a sampler misses rare draws.",
            weight,
        ]
    return [
        "**If you trust your prior, use neither bonus nor heat.** If it may be far off, draw "
        "hotter: `temperature` 2 to 4. With linear rewards and many contexts **the bonus** costs "
        f"less, but also insures less.{world_elsewhere.networks(book)}",
        weight,
    ]
