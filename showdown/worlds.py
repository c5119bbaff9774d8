"""The page on worlds where Thompson sampling fails: what the feel-good bonus buys, and its price.

`page` makes text and figures of the kept results alone. What is not there is said to be not run.
"""

from collections.abc import Sequence

from feelgood.stats.intervals import Estimate, bca
from showdown import (
    world_advice,
    world_figures,
    world_frontier,
    world_samplers,
    world_scaling,
)
from showdown.book import Book, section
from showdown.effects import enumeration
from showdown.world_runs import (
    late_rates,
    price,
)

NOT_RUN = "Not run."

INTRODUCTION = """# When feeling good pays

Thompson sampling plays the arm that looks best in a random draw from what it believes. The
feel-good bonus, of weight λ_s in round s, makes the draws optimistic. It can pay where the prior
all but rules out the truth, and elsewhere it costs. [These worlds](../worlds.md) are such truths,
*bad* ones, each with a *mirror* where boldness costs. *Temperature* 4 doubles the spread of draws.
`exact-ts` and `exact-fgts` draw without error, for 10,000 rounds. Brackets: 95 % intervals."""


def page(book: Book) -> str:
    """The page's text; its figures go into the book."""
    parts = [
        INTRODUCTION,
        world_advice.part(book),
        world_frontier.part(book),
        _price(book),
        world_samplers.part(book),
        *world_advice.elsewhere(book),
        world_scaling.part(book),
    ]
    return "\n\n".join(parts) + "\n"


# The price -----------------------------------------------------------------------------------


def _price(book: Book) -> str:
    title = "What a constant weight costs"
    runs = book.shelf.of("worlds-price")
    if not runs:
        return section(title, NOT_RUN)
    rows = [("trap-0.5", price(r), bca(late_rates(r, 2_000))) for r in runs]
    off = max(abs(rate.value / law - 1.0) for _, law, rate in rows)

    law = (
        "Suppose a wrong hypothesis, a *rival*, says that an arm pays b more than the best. "
        "In truth it pays g less. Then a constant λ costs λbg/(η(b + g)²) per round for ever, "
        "η = 1/(2 noise²). Over "
        f"{len(rows)} triples of λ, b and g it is off by "
        f"at most {100 * off:.1f} % ({len(runs[0].seeds)} seeds)."
    )
    linear = _linear_costs(book)
    figure = book.figure(
        "worlds-price",
        "Measured cost per round over the law's; for `fglmcts` on linear bandits over the most "
        "that one rival can cost, λ/4.",
        lambda: world_figures.prices([*rows, *linear]),
    )
    return section(title, law, figure, _linear_said(linear))


def _linear_costs(book: Book) -> list[tuple[str, float, Estimate]]:
    """What constant weights add per round of the second half, beside λ = 0; η = 1 there."""
    found = []
    runs = [r for r in book.shelf.of("question-lambda") if r.agent == "fglmcts"]
    for r in sorted(runs, key=lambda r: (r.testbed, r.settings["lam"])):
        plain = [b for b in runs if b.testbed == r.testbed and b.settings["lam"] == 0]
        if r.settings["lam"] > 0 and plain:
            extra = late_rates(r, r.rounds // 2) - late_rates(plain[0], r.rounds // 2)
            found.append((r.testbed, r.settings["lam"] / 4.0, bca(extra)))
    return found


def _linear_said(costs: Sequence[tuple[str, float, Estimate]]) -> str:
    """How much of the highest price is seen on linear bandits."""
    shares = {
        testbed: max(rate.value / law for name, law, rate in costs if name == testbed)
        for testbed in dict.fromkeys(name for name, _, rate in costs if rate.low > 0)
    }
    if not shares:
        return ""
    seen = [f"{100 * share:.0f} % on {testbed}" for testbed, share in shares.items()]
    return (
        "It does not explain what the bonus costs on linear bandits. In the second half of the run "
        f"that is at most {enumeration(seen)} of this price."
    )
