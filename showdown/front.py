"""The front page: the paper's claims, one row each, the temperature figure, and what to use."""

from collections.abc import Mapping, Sequence

from showdown.book import Book, grid, section
from showdown.pairing import DATA
from showdown.places import Place, by_testbed, places
from showdown.question import all_questions, claim_verdicts
from showdown.questions import posterior, temperature
from showdown.wording import enumeration, estimate, number
from showdown.yardsticks import dagger, key_of

INTRODUCTION = """# Results

"Feel-Good Thompson Sampling for Contextual Bandits: a Markov Chain Monte Carlo Showdown" (NeurIPS
2025), judged by runs of our own. The feel-good *bonus* makes Thompson sampling optimistic; λ is its
weight. *Regret* is what was lost beside the best arms: lower is better. [Agents](../agents.md)."""

CLAIMS = (
    "Changes are geometric means over pairs of runs that share their seeds. The intervals of all "
    "claims hold together with 95 %, but for [rare stuck seeds](reading.md#intervals). [How "
    "verdicts are made](reading.md#claims). Other claims of the paper stand on the pages below."
)

#: Pages by topic, each with a short name. A page that is not here stands under *More*.
TOPICS = {
    "The bonus": {
        "bonus-linear": "linear",
        "bonus-logistic": "logistic",
        "bonus-neural": "networks",
        "bonus-wheel": "wheels",
        "bonus-temperature": "cold agents",
        "smoothing": "smoothing",
    },
    "Where it pays": {
        "worlds": "the answer",
        "worlds-frontier": "worst case against average",
        "worlds-sweeps": "world by world",
        "worlds-samplers": "which samplers keep its promise",
        "worlds-agents": "agent by agent",
        "worlds-many": "more arms and contexts",
    },
    "Samplers": {
        "preconditioning": "preconditioning",
        "samplers": "MALATS and SVRG",
        "underdamping": "underdamping",
        "network-kernels": "for networks",
        "temperature": "temperature",
        "posterior": "posterior error",
        "compute": "compute",
    },
    "Agents": {
        "ranking": "tuned alike",
        "defaults": "out of the box",
        "stuck-networks": "stuck networks",
        "risky-mushrooms": "risky mushrooms",
    },
    "About": {
        "agreement": "published numbers",
        "reading": "how to read",
        "missing": "not yet run",
    },
}

#: What somebody has, and the testbeds of the ranking that are like it.
SITUATIONS = (
    ("Linear", ("linear-20", "linear-40")),
    ("0 or 1", ("logistic-20",)),
    ("Rare arm", ("wheel-0.5", "wheel-0.99")),
)
#: So many agents are named where there are more; a single one more is named, too.
NAMED = 3
#: So many agents with a network the paper has.
NETWORKS = 8


def page(book: Book, others: Sequence[tuple[str, str]] = ()) -> str:
    """The front page; `others` are further pages with their titles."""
    rows = [
        [v.claim.said, f"**{v.verdict.value}**{v.hangs_on}", v.number, f"[{v.seen}]({q.name}.md)"]
        for q, v in claim_verdicts(book)
        if v.claim.front
    ]
    table = grid(("the paper says that", "verdict", "regret changes by", "from"), rows, numbers=2)
    figure = temperature.figure(book)
    pages = {q.name: q.title for q in all_questions()}
    pages |= {file.removesuffix(".md"): title for title, file in others}
    parts = [
        INTRODUCTION,
        section("The paper's claims", table, CLAIMS),
        section("Temperature", _temperature(book), figure) if figure else "",
        section("What to use", what_to_use(book)),
        section("Pages", topics(pages)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def topics(pages: Mapping[str, str]) -> str:
    """All pages, one row per topic; `pages` has their titles."""
    rows, left = [], dict(pages)
    for topic, names in TOPICS.items():
        own = [f"[{short}]({name}.md)" for name, short in names.items() if left.pop(name, "")]
        rows += [[topic, ", ".join(own)]] if own else []
    own = [f"[{title}]({name}.md)" for name, title in left.items()]
    rows += [["More", ", ".join(own)]] if own else []
    return grid(("topic", "pages"), rows, numbers=2)


def _temperature(book: Book) -> str:
    """How regret goes with the spread of the draws, over all settings that were measured."""
    said = posterior.says(book, ())[:1]
    asked = "Does it matter how widely the draws scatter?"
    return " ".join([asked, *said, "[More](temperature.md)."])


def what_to_use(book: Book) -> str:
    """From the ranking of tuned agents: who may be the best where. One row per testbed."""
    found = by_testbed(book, "ranking")
    rows = []
    for title, testbeds in SITUATIONS:
        rows += _situation(book, title, {t: found[t] for t in testbeds if t in found})
    for name, own in _networks(book).items():
        rows += _situation(book, "Networks", {name: own})
    header = ("rewards", "use", "its regret", "`lints`", "best fixed arm", "chance", "rounds")
    said = (
        "Of agents tuned alike, these [may be the best](ranking.md) on testbeds of that kind, the "
        "lowest mean over all first. Beside them: `lints`, the best fixed arm, arms by chance. "
        "Networks are not tuned but have the paper's settings. † No better than the best fixed arm."
    )
    return f"{said}\n\n{grid(header, rows, numbers=2)}"


def _networks(book: Book) -> dict[str, list[Place]]:
    """The paper's networks on data sets on which all of them were run, not tuned."""
    found = {name: places(book.shelf.of(f"data-{name}")) for name in DATA}
    return {name: own for name, own in found.items() if len(own) >= NETWORKS}


def _situation(book: Book, title: str, found: Mapping[str, Sequence[Place]]) -> list[list[str]]:
    """A row per testbed: agents that may be the best on all of these, or else on this one."""
    sets = {bed: [p.result.agent for p in own if p.may_be_best] for bed, own in found.items()}
    rows = []
    for bed, own in found.items():
        best = [a for a in next(iter(sets.values())) if all(a in o for o in sets.values())]
        best = best or sets[bed]
        shown = NAMED if len(best) > NAMED + 1 else len(best)
        named = [f"`{a}`" for a in best[:shown]]
        more = [f"{len(best) - shown} more"] if len(best) > shown else []
        about = f"{title}: {bed}"
        rows.append([about, enumeration([*named, *more]), *_numbers(book, best[0], own)])
    return rows or [[title, "not enough seeds yet", "", "", "", "", ""]]


def _numbers(book: Book, agent: str, here: Sequence[Place]) -> list[str]:
    """Its mean regret with its interval, that of `lints`, of a fixed arm, of chance; rounds."""
    by_name = {p.result.agent: p for p in here}
    own = by_name[agent]
    stick = book.yardsticks.get(key_of(own.result))
    return [
        f"{estimate(own.mean)}{dagger(own.result, book.yardsticks)}",
        number(by_name["lints"].mean.value) if "lints" in by_name else "–",
        number(stick.fixed) if stick else "–",
        number(stick.uniform) if stick else "–",
        f"{own.result.rounds:,}",
    ]
