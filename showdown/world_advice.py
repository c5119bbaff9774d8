"""What follows from the worlds: bonus and temperature elsewhere, and one recommendation."""

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.studentised import StudentisedMean
from showdown import world_frontier
from showdown.book import Book, items, section
from showdown.effects import FEWEST_SEEDS, enumeration, estimate, number
from showdown.families import tally_sentence
from showdown.questions import bonus_temperature, stuck_networks
from showdown.stuck_seeds import freed_and_bound
from showdown.wording import interval
from showdown.world_runs import FALLING, HOT, Worst, difference, largest_regrets

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
    told = tally_sentence("A bonus on draws colder than the posterior", families[0])
    found = bonus_temperature.stuck(book)
    freed, bound = freed_and_bound(found)
    return (
        f"{told} Of {len(found)} such settings with stuck seeds it frees some in {freed} and binds "
        f"some in {bound}. [All temperatures](bonus-temperature.md)."
    )


def _networks(book: Book) -> str:
    runs = stuck_networks.Runs(book)
    judged = stuck_networks.stuck(runs) if runs.all else {}
    bonus, smoothed = (judged.get(n, []) for n in (stuck_networks.BONUS, stuck_networks.SMOOTHED))
    if not bonus or not smoothed:
        return ""
    freed, bound = freed_and_bound(bonus)
    return (
        f"On adult the bonus binds more networks to a wrong arm in {bound} of {len(bonus)} "
        f"settings and frees some in {freed}. Of a maximum smoothed over the arms, seeds are freed "
        f"in {freed_and_bound(smoothed)[0]} of {len(smoothed)}. [Why](stuck-networks.md)."
    )


# Recommendation ------------------------------------------------------------------------------


def part(book: Book) -> str:
    """What to do, from the worst cases and from what both insurances cost elsewhere."""
    said = [*_insured(book), *_premiums(book), _advice(book)]
    said.append(
        "**Let the bonus's weight fall**: λ_s = 1/√s. By the price law a rival then costs at most "
        "noise²·√T, and no horizon need be known. If your rewards are c times larger, divide λ by "
        "c. This is the default of all agents with a bonus: `lam = 1`, `lam_schedule = sqrt`."
    )
    said += _schedule_said(book)
    others = _other_problems(book)
    said += [
        f"On {r.testbed} it adds {interval(difference(r, plain))} to a regret of "
        f"{number(float(np.mean(plain.final_regret)))} (`{r.agent}`, {len(r.seeds)} seeds)."
        for r, plain in others
    ]
    lacking = [] if any("neural" in r.agent for r, _ in others) else ["with networks"]
    if not any(r.testbed.startswith("logistic") for r, _ in others):
        lacking.append("in logistic bandits")
    if lacking:
        said.append(f"**Not run**: this schedule {enumeration(lacking)}.")
    return section("Recommendation", items(said))


def _insurances(book: Book) -> tuple[Worst, Worst] | None:
    """Of hotter draws and of all bonuses, those with the lowest worst case."""
    worst = largest_regrets(world_frontier.points(book))
    hot = [w for w in worst if w.kind == "hotter"]
    bonus = [w for w in worst if w.kind not in ("hotter", "plain")]
    return (hot[0], bonus[0]) if hot and bonus else None


def _insured(book: Book) -> list[str]:
    found = _insurances(book)
    if found is None:
        return []
    hot, bonus = found
    if _hotter_is_safer(book):
        verdict = f"{hot.name} without a bonus, better than any bonus"
    elif bonus.regret.high < hot.regret.low:
        verdict = f"a bonus, {bonus.name}, better than hotter draws"
    else:
        verdict = "neither a bonus nor heat alone, within the intervals"
    return [
        f"**What insures best in these worlds**: {verdict}. The worst result of {hot.name} is "
        f"{estimate(hot.regret)}. Of all bonuses {bonus.name} has the lowest: "
        f"{estimate(bonus.regret)}."
    ]


def _hotter_is_safer(book: Book) -> bool:
    found = _insurances(book)
    return found is not None and found[0].regret.high < found[1].regret.low


Premium = tuple[AgentResult, StudentisedMean, AgentResult, StudentisedMean]


def _beside(book: Book) -> dict[str, Premium]:
    """By linear bandit: plain draws out of the box, what heat adds, and what the bonus adds."""
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
    return [
        f"On {testbed} temperature {HOT:g} adds {interval(hot)} to a regret of "
        f"{number(float(np.mean(plain.final_regret)))} ({len(plain.seeds)} seeds), λ_s = 1/√s "
        f"{interval(bonus)} ({len(bold.seeds)} seeds; `fglmcts` out of the box)."
        for testbed, (plain, hot, bold, bonus) in _beside(book).items()
    ]


def _advice(book: Book) -> str:
    """Which of both, where the numbers say it."""
    premiums = _beside(book).values()
    cheaper = bool(premiums) and all(bonus.high < hot.low for _, hot, _, bonus in premiums)
    if _hotter_is_safer(book) and cheaper:
        return (
            "**So**: if a wrong prior would ruin you, draw hotter: `temperature = 4`. If your "
            "prior is probably right and you want cheap insurance, **switch the bonus on**. "
            "Without doubt about the prior, use neither."
        )
    return (
        "**Switch the bonus on** where the prior may be too sure of itself: a good arm would "
        "surprise you, or a sampler misses rare draws."
    )


def _other_problems(book: Book) -> list[tuple[AgentResult, AgentResult]]:
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
    others = [r for r in own if not r.testbed.startswith(("linear-", "wheel-"))]
    pairs = [(r, book.shelf.plain(r)) for r in others]
    found = [
        (r, plain)
        for r, plain in pairs
        if plain is not None and len({*r.seeds} & {*plain.seeds}) >= FEWEST_SEEDS
    ]
    return sorted(found, key=lambda pair: (pair[0].testbed, pair[0].agent, str(pair[0].settings)))


def _schedule_said(book: Book) -> list[str]:
    """What the schedule does at the paper's β = 1, beside λ = 0 and the constant 0.1."""
    said = []
    constant = [r for r in book.shelf.of("question-lambda") if r.agent == "fglmcts"]
    for r in sorted(book.shelf.of("worlds-schedule"), key=lambda r: r.testbed):
        by_weight = {b.settings["lam"]: b for b in constant if b.testbed == r.testbed}
        if r.settings["lam"] == FALLING["lam"] and {0, 0.1} <= by_weight.keys():
            plain, usual = by_weight[0], by_weight[0.1]
            said.append(
                f"On {r.testbed} with β = 1 it adds {interval(difference(r, plain))} to a regret "
                f"of {number(float(np.mean(plain.final_regret)))}, a constant 0.1 "
                f"{interval(difference(usual, plain))} ({len(r.seeds)} seeds)."
            )
    return said
