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
weight. *Regret* is what was lost beside the best arms: lower is better."""

CLAIMS = (
    "The number is the change of regret, a geometric mean over pairs of runs that share their "
    "seeds. The intervals of all claims hold together with 95 %, but for [rare stuck "
    "seeds](reading.md#intervals). No row rests on fewer than 20 seeds. [How verdicts are "
    "made](reading.md#claims). The paper's other claims stand on the pages below."
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
    "Networks": {"stuck-networks": "stuck seeds", "risky-mushrooms": "risky mushrooms"},
    "Agents": {"ranking": "tuned alike", "defaults": "out of the box"},
    "About": {
        "agreement": "published numbers",
        "reading": "how to read",
        "missing": "not yet run",
    },
}

#: What somebody has, the testbeds of the ranking that are like it, and the agent to compare with.
SITUATIONS = (
    ("Linear rewards, few features per arm", ("linear-20", "linear-40")),
    ("Rewards of 0 or 1", ("logistic-20",)),
    ("A rare arm that pays a lot", ("wheel-0.5", "wheel-0.99")),
)
#: More agents than this are not named.
NAMED = 4
#: So many agents with a network the paper has.
NETWORKS = 8


def page(book: Book, others: Sequence[tuple[str, str]] = ()) -> str:
    """The front page; `others` are further pages with their titles."""
    rows = [
        [v.claim.said, f"**{v.verdict.value}**{v.hangs_on}", v.number, f"[{v.basis}]({q.name}.md)"]
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
        rows += [[topic, " · ".join(own)]] if own else []
    own = [f"[{title}]({name}.md)" for name, title in left.items()]
    rows += [["More", " · ".join(own)]] if own else []
    return grid(("topic", "pages"), rows, numbers=2)


def _temperature(book: Book) -> str:
    """How regret goes with the spread of the draws, over all settings that were measured."""
    said = posterior.says(book, ())[:1]
    asked = "Does it matter how widely the draws scatter?"
    return " ".join([asked, *said, "[More](temperature.md)."])


def what_to_use(book: Book) -> str:
    """From the ranking of tuned agents: who may be the best where."""
    found = by_testbed(book, "ranking")
    rows = []
    for title, testbeds in SITUATIONS:
        own = [found[t] for t in testbeds if t in found]
        rows.append([*_situation(book, title, own, testbeds), *_yardsticks(book, own)])
    for name, places_there in _networks(book).items():
        own = [places_there]
        told = _situation(book, f"A table like {name}, with networks", own, [name])
        rows.append([*told, *_yardsticks(book, own)])
    header = ("you have", "use", "its regret", "`lints`", "best fixed arm", "chance", "rounds")
    said = (
        "Of agents tuned alike, these [may be the best](ranking.md) on testbeds of that kind, with "
        "the lowest mean first. Plain `lints`, the best fixed arm and arms by chance stand beside "
        "them. Networks have the paper's settings. † on average does not beat the best fixed arm."
    )
    return f"{said}\n\n{grid(header, rows, numbers=2)}"


def _networks(book: Book) -> dict[str, list[Place]]:
    """The paper's networks on data sets on which all of them were run, not tuned."""
    found = {name: places(book.shelf.of(f"data-{name}")) for name in DATA}
    return {name: own for name, own in found.items() if len(own) >= NETWORKS}


def _situation(
    book: Book, title: str, found: Sequence[Sequence[Place]], testbeds: Sequence[str]
) -> list[str]:
    """One row: agents that may be the best on all of these testbeds."""
    if not found:
        return [title, "not enough seeds yet", "", ""]
    best = [
        p.result.agent
        for p in found[0]
        if all(
            any(o.may_be_best and o.result.agent == p.result.agent for o in own) for own in found
        )
    ]
    if not best:
        best = [next(p.result.agent for p in own if p.may_be_best) for own in found]
        named = [f"`{a}` ({t})" for a, t in zip(best, testbeds, strict=False)]
        return [title, enumeration(list(dict.fromkeys(named))), *_numbers(book, best, found)]
    named = [f"`{a}`" for a in best[:NAMED]]
    more = [f"{len(best) - NAMED} more"] if len(best) > NAMED else []
    return [title, enumeration([*named, *more]), *_numbers(book, [best[0]] * len(found), found)]


def _numbers(book: Book, agents: Sequence[str], found: Sequence[Sequence[Place]]) -> list[str]:
    """Mean regrets with intervals on each testbed, and those of `lints`."""
    own, plain = [], []
    for agent, here in zip(agents, found, strict=True):
        by_name = {p.result.agent: p for p in here}
        mark = dagger(by_name[agent].result, book.yardsticks)
        own.append(f"{estimate(by_name[agent].mean)}{mark}")
        plain.append(number(by_name["lints"].mean.value) if "lints" in by_name else "–")
    return ["; ".join(own), "; ".join(plain)]


def _yardsticks(book: Book, found: Sequence[Sequence[Place]]) -> list[str]:
    """What the best fixed arm and arms by chance lose on each testbed, and over which rounds."""
    runs = [own[0].result for own in found]
    sticks = [book.yardsticks.get(key_of(run)) for run in runs]
    fixed = [number(own.fixed) if own else "–" for own in sticks]
    chance = [number(own.uniform) if own else "–" for own in sticks]
    rounds = [f"{run.rounds:,}" for run in runs]
    rounds = rounds[:1] if len(set(rounds)) == 1 else rounds
    return ["; ".join(own) for own in (fixed, chance, rounds)]
