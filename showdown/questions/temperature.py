"""How does regret go with temperature, and does the bonus hurt hot agents?"""

from collections.abc import Sequence

from feelgood.engine.results import AgentResult
from showdown.book import Book, section
from showdown.effects import Effect, effect
from showdown.families import Family, tally_sentence
from showdown.figures import scatter
from showdown.pairing import at, grid_effects, in_order
from showdown.question import Claim, Question, Says

STUDY = "question-posterior"
HOT = ("linear-20-b1", "linear-40-b1")


def temperature(r: AgentResult) -> float:
    """In units of the posterior's: 1 is the posterior, more is hotter. βη = 1/(2σ²τ)."""
    noise = float(r.testbed_settings.get("noise", 1.0))
    if r.agent == "lints":
        own = 1.0 / (noise**2 * r.settings["eta"])
    else:
        own = 1.0 / (2.0 * noise**2 * r.settings["beta"] * r.settings["eta"])
    return own * float(r.settings.get("temperature", 1.0))


def swept(book: Book) -> list[AgentResult]:
    """Agents without bonus at several temperatures, with enough steps to follow their target."""
    return [
        r
        for r in in_order(book.shelf.of(STUDY))
        if "fg" not in r.agent and r.settings.get("steps", 25) > 1
    ]


def beside_posterior(book: Book) -> list[Effect]:
    """Every temperature beside the same agent at the posterior's own."""
    runs = swept(book)
    out = []
    for r in sorted(runs, key=lambda r: (r.agent, temperature(r))):
        own = [t for t in runs if t.agent == r.agent and temperature(t) == 1.0]
        if temperature(r) != 1.0:
            out.append(effect(f"temperature {temperature(r):g}", r, own[0] if own else None))
    return out


def hot_bonus(book: Book, large: bool = True) -> list[Effect]:
    """A bonus of weight 0.1 and more, or a smaller one, on the paper's hot targets."""
    return at(grid_effects(book, HOT), lambda r: (r.settings["lam"] >= 0.1) is large)


def families(book: Book) -> list[Family]:
    """Colder, hotter, and the bonus on hot targets."""
    effects = beside_posterior(book)
    return [
        Family.of("colder than the posterior", [e for e in effects if _heat(e) < 1]),
        Family.of("hotter than the posterior", [e for e in effects if _heat(e) > 1]),
        Family.of("λ ≥ 0.1 on hot targets, the paper's β = 1", hot_bonus(book)),
        Family.of("λ < 0.1 on hot targets", hot_bonus(book, large=False)),
    ]


def _heat(e: Effect) -> float:
    return temperature(e.changed) if e.changed else 1.0


def says(book: Book, found: Sequence[Family]) -> list[str]:
    """Counts."""
    out = [
        tally_sentence("Draws colder than the posterior, beside the posterior's own", found[0]),
        tally_sentence("Draws hotter than it", found[1]),
        tally_sentence("A bonus of λ ≥ 0.1 on hot targets", found[2]),
        tally_sentence("One of λ < 0.1", found[3]),
    ]
    without = [float(e.without.mean()) for e in found[2].effects if e.tested]
    if without:
        ends = f"{min(without):,.0f} to {max(without):,.0f}"
        out.append(f"Those agents are far from good without a bonus: their regrets are {ends}.")
    return out


def figure(book: Book) -> str:
    """Regret over temperature."""
    runs = [r for r in swept(book) if r.testbed == "linear-20"]
    if not runs:
        return ""
    seeds = max(len(r.seeds) for r in runs)
    return book.figure(
        "temperature",
        "Mean final regret on linear-20 over the temperature of the draws, in units of the "
        f"posterior's: 1 is the posterior, 0.1 is colder. 95 % intervals, {seeds} seeds.",
        lambda: scatter(
            [(r.agent, temperature(r), r) for r in runs],
            "temperature, 1 is the posterior's, logarithmic",
            connect=True,
        ),
    )


QUESTION = Question(
    name="temperature",
    place=80,
    title="How does regret go with temperature?",
    asks=(
        "Agents draw from the posterior raised to the power 1/τ: below τ = 1 draws are colder and "
        "scatter less, above it they are hotter. Each agent stands beside itself at τ = 1 on "
        "linear-20, where the world is drawn as the prior is. What the paper calls β = 1 in its "
        "appendix is a target 100 to 1,000 times hotter than the posterior. Sampling noise is "
        "tested by such a hot target; other noise, such as that of small batches, is not."
    ),
    studies=(STUDY, *(f"table-lambda-{name}" for name in HOT)),
    claims=(
        Claim(
            "larger bonuses hurt when sampling noise dominates",
            "abstract",
            Says.HIGHER,
            "λ ≥ 0.1 beside 0 on a hot target (the paper's β = 1)",
            hot_bonus,
            front=True,
        ),
    ),
    families=families,
    says=says,
    more=lambda book: [section("Figure", own)] if (own := figure(book)) else [],
)
