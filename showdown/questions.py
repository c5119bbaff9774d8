"""The questions of the front page, each answered by a function from what is on the shelf.

Every sentence that judges is computed; what is written by hand says only what was asked.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.report.chain_costs import chain_cost
from feelgood.report.charts.sweep import sweep_charts
from feelgood.stats.intervals import bootstrap
from showdown.book import Book, folded, grid, items, section
from showdown.effects import (
    MANY,
    Effect,
    Word,
    capital,
    distinct,
    effect,
    enumeration,
    estimate,
    interval,
    number,
    summary,
    table,
    tally,
    tally_sentence,
)
from showdown.figures import bonus_chart, scatter
from showdown.shelf import devices_of, is_sound, settings_text, unpreconditioned, unsmoothed

LINEAR = ("question-lambda",)
LOGISTIC = ("question-lambda-logistic",)
BONUS_SCALE = ("question-bonus-scale",)
NEURAL = ("question-lambda-neural",)
DATA = (
    *("adult", "covertype", "magic", "mushroom", "shuttle"),
    *("mnist", "financial", "jester", "restaurant", "cifar10"),
)
DATA_STUDIES = tuple(f"data-{name}" for name in DATA)
NOT_RUN = "Cannot say: nothing was run for this."


def in_order(results: Iterable[AgentResult]) -> list[AgentResult]:
    """By testbed, agent, and the swept settings as numbers."""

    def key(r: AgentResult) -> tuple[object, ...]:
        swept = (
            r.settings.get(name, 0.0) for name in ("lam", "b", "s", "steps", "gamma", "beta", "eta")
        )
        numbers = (0.0 if isinstance(v, str) else float(v) for v in swept)
        return (r.testbed, r.agent, not is_sound(r), *numbers)

    return sorted(results, key=key)


def _grouped(
    effects: Sequence[Effect], name: Callable[[AgentResult], str]
) -> dict[str, list[Effect]]:
    groups: dict[str, list[Effect]] = {}
    for e in effects:
        if e.changed is not None:
            groups.setdefault(name(e.changed), []).append(e)
    return groups


def _whose(r: AgentResult) -> str:
    return f"`{r.agent}` on {r.testbed}, {_steps(r)}"


def _steps(r: AgentResult) -> str:
    return "sound steps" if is_sound(r) else "the paper’s steps"


# The bonus -----------------------------------------------------------------------------------


def bonus_effects(book: Book, studies: Sequence[str]) -> list[Effect]:
    """Agents with a bonus beside themselves without it."""
    return [
        effect(settings_text(r, ("lam", "b")), r, book.shelf.plain(r))
        for r in in_order(book.shelf.of(*studies))
        if r.settings.get("lam", 0) > 0 and _has_bonus(r)
    ]


#: Weights that a headline is about: the library's default and the paper's.
WEIGHTS = (0.1, 0.5)
#: The cap of the paper's networks on most data sets.
PAPER_CAP = 10


def headline_effects(book: Book, studies: Sequence[str]) -> list[Effect]:
    """The bonus as the paper defines it: where rewards have a link, on the mean reward."""
    return [
        e
        for e in bonus_effects(book, studies)
        if e.changed is not None
        and not (
            e.changed.testbed.startswith("logistic") and e.changed.settings["bonus_on"] == "score"
        )
    ]


def headline(book: Book, kind: str, studies: Sequence[str]) -> str:
    """The bonus at `WEIGHTS` on each testbed, and the count over everything that was tried."""
    effects = headline_effects(book, studies)
    fixed = [
        e
        for e in effects
        if e.changed is not None
        and e.changed.agent in ("fglmcts", "neural-fglmcts")
        and e.changed.settings["lam"] in WEIGHTS
    ]
    groups = _grouped(fixed, _whose)
    parts = [summary(name, own) for name, own in groups.items()]
    if len(groups) > MANY:
        by_weight = _grouped(fixed, lambda r: settings_text(r, ("lam",)))
        parts = [tally_sentence(f"At {weight}", own) for weight, own in by_weight.items()]
    every = tally_sentence("Over all weights, caps and agents", distinct(effects))
    return " ".join([f"**Does the bonus help in {kind}?**", *parts, every])


#: The paper's grids of λ by the testbeds and by what it calls β, with what that means here.
GRIDS = {
    "linear, what the paper calls β = 10³": ("linear-20-b1000", "linear-40-b1000"),
    "linear, its β = 1, a target 100 to 1,000 times hotter": ("linear-20-b1", "linear-40-b1"),
    "logistic, squared loss, its β = 10³": ("logistic-20-b1000", "logistic-40-b1000"),
    "logistic, squared loss, its β = 1": ("logistic-20-b1", "logistic-40-b1"),
}


def paper_headline(book: Book) -> str:
    """The bonus at the paper's settings: counts over its grids of λ."""
    parts = []
    for name, tables in GRIDS.items():
        effects = [e for table in tables for e in _grid_effects(book, table)]
        parts.append(tally_sentence(capital(name), effects))
        without = [e.regrets[1] for e in effects if e.word is not Word.UNKNOWN]
        if without:
            ends = f"{number(min(without))} to {number(max(without))}"
            parts.append(f"The same agents without bonus have regrets of {ends}.")
    return " ".join(["**Does it help at the paper's settings?**", *parts])


def headline_figure(book: Book) -> str:
    """Regret with the bonus in that without it, over λ; networks where the cap is the paper's."""
    drawn = [
        e
        for e in headline_effects(book, (*LINEAR, *BONUS_SCALE, *NEURAL))
        if e.word is not Word.UNKNOWN
        and e.changed is not None
        and (
            (e.changed.agent == "fglmcts" and is_sound(e.changed))
            or (e.changed.agent == "neural-fglmcts" and e.changed.settings["b"] == PAPER_CAP)
        )
    ]
    if not drawn:
        return ""
    testbeds = enumeration(list(dict.fromkeys(e.changed.testbed for e in drawn if e.changed)))
    return book.figure(
        "bonus",
        "Final regret with the feel-good bonus in units of that without it, over the weight λ: "
        f"mean of the paired difference with its 95 % interval on {testbeds}. `fglmcts` with sound "
        f"steps, `neural-fglmcts` with the paper's settings and b = {PAPER_CAP}.",
        lambda: bonus_chart(drawn),
    )


def _has_bonus(r: AgentResult) -> bool:
    return "fg" in r.agent


def _bonus_part(book: Book, title: str, about: str, studies: Sequence[str], figure: str) -> str:
    effects = bonus_effects(book, studies)
    if not effects:
        return section(title, about, NOT_RUN, depth=3)
    sentences = [summary(name, own) for name, own in _grouped(effects, _whose).items()]
    drawn = [r for r in book.shelf.of(*studies) if _has_bonus(r)]
    image = book.figure(
        figure, f"Mean final regret over λ, {title.lower()}.", lambda: sweep_charts(drawn)
    )
    return section(
        title, about, items(sentences), image, folded("All pairs", table(effects)), depth=3
    )


def _grid_effects(book: Book, grid_name: str) -> list[Effect]:
    """The plain bonus in one of the paper's grids: at b = 1000 the smoothed one is the same."""
    effects = bonus_effects(book, [f"table-lambda-{grid_name}"])
    return [e for e in effects if e.changed is not None and unsmoothed(e.changed.agent) is None]


def _paper_bonus(book: Book) -> str:
    """The published grids of λ, at the paper's settings."""
    rows, weights, every = [], set(), []
    for tables in GRIDS.values():
        for name in tables:
            effects = _grid_effects(book, name)
            groups = _grouped(effects, lambda r: settings_text(r, ("lam",)))
            weights |= set(groups)
            every += effects
            rows.append((name, groups))
    header = ["table", *sorted(weights)]
    cells = [
        [f"`lambda-{name}`", *(tally(groups.get(weight, ())) or "–" for weight in header[1:])]
        for name, groups in rows
    ]
    about = (
        "Agents of the paper's λ tables, at its settings, each beside its twin without bonus: how "
        "many of the pairs have which verdict. These are LMC with and without preconditioner, and "
        "MALA, with squared loss and b = 1000. There the smoothed bonus is the same function, and "
        "is left out. b1 and b1000 in a table's name are what the paper calls β."
    )
    if not every:
        return section("At the paper's settings", about, NOT_RUN, depth=3)
    pairs = folded("All pairs", table(every))
    return section("At the paper's settings", about, grid(header, cells), pairs, depth=3)


def _default_bonus(book: Book) -> str:
    """Wheels, and data sets as agents are out of the box."""
    studies = ("question-default", "question-default-data")
    effects = [
        e
        for e in distinct(bonus_effects(book, studies))
        if e.changed is not None and not e.changed.testbed.startswith(("linear", "logistic"))
    ]
    groups = _grouped(effects, lambda r: "Wheels" if "wheel" in r.testbed else "Data sets")
    return section(
        "Wheels, and data sets out of the box",
        "Agents with the preset `beta-1`, λ = 0.1, beside their twins without bonus.",
        items([tally_sentence(name, own) for name, own in groups.items()]) or NOT_RUN,
        folded("All pairs", table(effects)) if effects else "",
        depth=3,
    )


def _data_bonus(book: Book) -> str:
    """The agents of the paper's neural tables, with the bonus as the paper defines it."""
    effects = bonus_effects(book, DATA_STUDIES)
    about = (
        "Agents of the paper's neural tables, each with the weight the paper gives it for the data "
        "set, beside its twin without bonus. In the released code Langevin agents had no bonus, "
        "and NeuralTS had it on the played arm alone, as a sum beside a mean loss."
    )
    groups = _grouped(effects, lambda r: f"`{r.agent}`")
    sentences = [tally_sentence(name, own) for name, own in groups.items()]
    pairs = folded("All pairs", table(effects)) if effects else ""
    return section("Data sets", about, items(sentences) or NOT_RUN, pairs, depth=3)


#: What `bonus_on` says, for people.
BONUS_ON = {"mean": "on the mean reward", "score": "on the score"}


def bonus_scale_effects(book: Book) -> tuple[list[Effect], list[Effect]]:
    """The bonus in both forms beside none, and the form on the mean beside that on the score."""
    beside_none, forms = [], []
    for r in in_order(book.shelf.of(*BONUS_SCALE)):
        if r.settings["lam"] > 0:
            label = settings_text(r, ("lam",))
            form = BONUS_ON[str(r.settings["bonus_on"])]
            beside_none.append(effect(f"{label}, {form}", r, book.shelf.plain(r)))
            if r.settings["bonus_on"] == "mean":
                twins = book.shelf.twins(r, r.agent, ("bonus_on",))
                score = [t for t in twins if t.settings["bonus_on"] == "score"]
                forms.append(effect(f"{label}, {form}", r, score[0] if score else None))
    return beside_none, forms


def _bonus_scale(book: Book) -> str:
    """What the bonus acts on, where rewards have a link."""
    about = (
        "Agents out of the box on a logistic bandit. The paper's bonus is the largest mean reward, "
        "which lies between 0 and 1. With `bonus_on = score` it is the largest score, the logit, "
        "which has no such bound; the results above have that."
    )
    effects, forms = bonus_scale_effects(book)
    if not effects:
        return section("Which scale the bonus is on", about, NOT_RUN, depth=3)

    def whose(r: AgentResult) -> str:
        return f"`{r.agent}` on {r.testbed}, bonus {BONUS_ON[str(r.settings['bonus_on'])]}"

    sentences = [summary(name, own) for name, own in _grouped(effects, whose).items()]
    both = _grouped(forms, lambda r: f"`{r.agent}`, on the mean beside on the score")
    sentences += [summary(name, own) for name, own in both.items()]
    return section(
        "Which scale the bonus is on",
        about,
        items(sentences),
        folded("All pairs", table([*effects, *forms])),
        depth=3,
    )


def _cap(book: Book) -> str:
    about = (
        "λ and b together on linear-20, sound steps, beside the agent without bonus; then a cap "
        "that binds beside b = 1000 at the same λ."
    )
    runs = in_order(book.shelf.of("question-cap"))
    if not runs:
        return section("The cap b", about, NOT_RUN, depth=3)
    effects = bonus_effects(book, ["question-cap"])
    sentences = [
        summary(f"The bonus at {weight}", own)
        for weight, own in _grouped(effects, lambda r: settings_text(r, ("lam",))).items()
    ]
    caps = []
    for r in runs:
        if r.settings["b"] < 1000:
            free = [t for t in book.shelf.twins(r, r.agent, ("b",)) if t.settings["b"] == 1000]
            caps.append(effect(settings_text(r, ("lam", "b")), r, free[0] if free else None))
    image = book.figure(
        "cap", "Mean final regret over λ and b on linear-20.", lambda: sweep_charts(runs)
    )
    return section(
        "The cap b",
        about,
        items([*sentences, summary("A cap beside b = 1000", caps)]),
        image,
        folded("All pairs", table([*effects, *caps])),
        depth=3,
    )


def feel_good(book: Book) -> str:
    """Does the bonus help?"""
    return section(
        "Does the feel-good bonus help?",
        _bonus_part(
            book,
            "Linear bandits",
            "Sound settings, β = 1, b = 1000: the cap does not bind.",
            LINEAR,
            "lambda-linear",
        ),
        _bonus_part(
            book,
            "Logistic bandits",
            "The Bernoulli likelihood, with sound settings and with the paper's steps. The bonus "
            "is on the score here, not on the mean reward: see below.",
            LOGISTIC,
            "lambda-logistic",
        ),
        _bonus_scale(book),
        _bonus_part(
            book,
            "Neural bandits",
            "The paper's settings of each data set, λ and b swept.",
            NEURAL,
            "lambda-neural",
        ),
        _data_bonus(book),
        _default_bonus(book),
        _paper_bonus(book),
        _cap(book),
    )


# Smoothing, preconditioning, Metropolis, damping ---------------------------------------------


def smoothing_effects(book: Book, results: Iterable[AgentResult]) -> list[Effect]:
    """Those of the results that are smoothed beside the plain bonus."""
    out = []
    for r in in_order(results):
        agent = unsmoothed(r.agent)
        if agent is not None:
            twin = book.shelf.twin(r, agent)
            out.append(effect(settings_text(r, ("lam", "b", "s")), r, twin))
    return out


def smoothing(book: Book) -> str:
    """Does smoothing matter?"""
    shelf = book.shelf
    binding = smoothing_effects(book, shelf.of("question-smoothing"))
    in_tables = (k.result for k in shelf.kept if any(s.startswith("table-") for s in k.studies))
    free = [
        e
        for e in smoothing_effects(book, in_tables)
        if e.base is not None and e.changed is not None and e.changed.settings.get("b", 0) >= 1000
    ]
    by_s = _grouped(binding, lambda r: settings_text(r, ("s",)))
    return section(
        "Does smoothing matter?",
        "A smoothed agent beside the plain one at the same λ and b, where the cap binds. At "
        "b = 1000 both are the same function, so that a difference there is one of rounding.",
        items([summary(f"Smoothing with {s}", own) for s, own in by_s.items()]) or NOT_RUN,
        tally_sentence("At b = 1000, in the paper's tables", free),
        folded("All pairs", table(binding)) if binding else "",
    )


def preconditioning_effects(book: Book) -> list[Effect]:
    """Preconditioned agents beside themselves without, at equal temperature."""
    effects = []
    for r in in_order(book.shelf.of("question-preconditioning", "question-preconditioning-paper")):
        agent = unpreconditioned(r.agent)
        if agent is not None:
            effects.append(effect(f"`{r.agent}`, {_steps(r)}", r, book.shelf.twin(r, agent)))
    return effects


def preconditioning(book: Book) -> str:
    """Does preconditioning help at equal temperature?"""
    effects = preconditioning_effects(book)
    groups = _grouped(effects, lambda r: f"{r.testbed}, {_steps(r)}")
    return section(
        "Does preconditioning help at equal temperature?",
        "Each agent beside its twin without preconditioner, at the same β, step and number of "
        "gradients. The published pairs differ in β by a factor of ten. At the same β the draws of "
        "Langevin kernels still differ somewhat in variance, by their discretisation "
        "([measured](posterior.md)). With the paper’s steps the chains also start elsewhere.",
        items([summary(f"Preconditioning on {where}", own) for where, own in groups.items()])
        or NOT_RUN,
        folded("All pairs", table(effects)) if effects else "",
    )


#: What is told apart in the question of Metropolis.
WHOLE, CORRECTION = (
    "MALA with warm-up beside LMC",
    "the correction (MALA without warm-up beside LMC)",
)
WARM_UP, FEWER = "the warm-up (MALA with it beside without)", "5 steps of LMC beside 25"


def metropolis_effects(book: Book) -> list[Effect]:
    """MALA and LMC, with and without warm-up, on every testbed with sound and the paper's steps."""
    results = in_order(book.shelf.of("question-metropolis"))
    effects = []
    for testbed, sound in dict.fromkeys((r.testbed, is_sound(r)) for r in results):
        here = [r for r in results if (r.testbed, is_sound(r)) == (testbed, sound)]

        def find(
            agent: str, here: Sequence[AgentResult] = here, **settings: int
        ) -> AgentResult | None:
            fitting = (
                r
                for r in here
                if r.agent == agent and all(r.settings[k] == v for k, v in settings.items())
            )
            return next(fitting, None)

        langevin, plain = find("lmcts", steps=25), find("malats", warmup_steps=0)
        warmed = find("malats", warmup_steps=20)
        effects += [
            effect(WHOLE, warmed, langevin),
            effect(CORRECTION, plain, langevin),
            effect(WARM_UP, warmed, plain),
            effect(FEWER, find("lmcts", steps=5), langevin),
        ]
    return effects


def told_apart(effects: Sequence[Effect]) -> list[str]:
    """Each of the differences over all settings."""
    labels = dict.fromkeys(e.label for e in effects)
    return [
        tally_sentence(capital(label), [e for e in effects if e.label == label]) for label in labels
    ]


def metropolis(book: Book) -> str:
    """Does the correction, or the warm-up, explain MALATS's win?"""
    effects = metropolis_effects(book)
    sentences = told_apart(effects)
    for name, own in _grouped(effects, lambda r: f"{r.testbed}, {_steps(r)}").items():
        words = [f"{e.label}: {_said(e)}" for e in own]
        sentences.append(f"{name}. {'; '.join(words)}.")
    sentences += _as_cooling(book)
    return section(
        "Does the Metropolis correction, or MALA's warm-up, explain MALATS's win?",
        "The same target throughout. The published MALATS begins every round with 20 steps of "
        "plain gradient descent and makes 5 steps of MALA.",
        items(sentences) or NOT_RUN,
        folded("All pairs", table(effects)) if effects else "",
    )


def _as_cooling(book: Book) -> list[str]:
    """The warm-up beside a colder target: noiseless steps draw the chain towards the mode."""
    out = []
    for r in in_order(book.shelf.of("question-metropolis")):
        if r.agent != "malats" or r.settings["warmup_steps"] == 0:
            continue
        for colder in book.shelf.twins(r, "lmcts", ("beta", "step")):
            if colder.settings["beta"] == 2 * r.settings["beta"]:
                what = f"MALA with warm-up beside LMC at twice the β on {r.testbed}, {_steps(r)}"
                out.append(f"{what}: {_said(effect(what, r, colder))}.")
    return out


def _said(e: Effect) -> str:
    if e.word is Word.UNKNOWN or e.difference is None:
        return f"cannot say ({e.why})"
    return f"{e.word.value} ({interval(e.difference)}, {e.difference.count} seeds)"


def underdamping_effects(book: Book) -> list[Effect]:
    """Underdamped agents beside the overdamped one."""
    return [
        effect(settings_text(r, ("gamma",)), r, book.shelf.twin(r, "lmcts", ("step",)))
        for r in in_order(book.shelf.of("question-underdamping"))
        if r.agent == "ulmcts"
    ]


def underdamping(book: Book) -> str:
    """Does underdamping hurt when the kernel is right?"""
    effects = underdamping_effects(book)
    groups = _grouped(effects, lambda r: r.testbed)
    return section(
        "Does underdamping hurt when the kernel is right?",
        "Underdamped beside overdamped Langevin dynamics: the same target and the same number of "
        "gradients, sound steps for each.",
        items([summary(f"Underdamping on {t}", own) for t, own in groups.items()]) or NOT_RUN,
        folded("All pairs", table(effects)) if effects else "",
    )


# Compute -------------------------------------------------------------------------------------


def compute_sentences(book: Book) -> dict[str, str]:
    """By agent: its regret with fewer inner steps beside that with the most."""
    results = in_order(book.shelf.of("question-compute"))
    sentences = {}
    for agent in dict.fromkeys(r.agent for r in results if "steps" in r.settings):
        runs = [r for r in results if r.agent == agent]
        most = max(runs, key=lambda r: r.settings["steps"])
        effects = [effect(str(r.settings["steps"]), r, most) for r in runs if r is not most]
        name = f"`{agent}` on {most.testbed}, steps per round beside {most.settings['steps']}"
        sentences[agent] = summary(name, effects)
    return sentences


def compute(book: Book) -> str:
    """How does regret go with compute?"""
    results = in_order(book.shelf.of("question-compute"))
    if not results:
        return section("How does regret go with compute?", NOT_RUN)
    rows = []
    for r in results:
        cost, mean = chain_cost(r), bootstrap(np.asarray(r.final_regret, np.float64))
        rows.append(
            [
                f"`{r.agent}`",
                str(r.settings.get("steps", "–")),
                "–" if cost.gradients is None else f"{cost.gradients:,.0f}",
                f"{cost.seconds:.3g}" if np.isfinite(cost.seconds) else "–",
                estimate(mean),
                str(mean.count),
                enumeration(devices_of([r])),
            ]
        )
    header = (
        "agent",
        "steps per round",
        "gradients",
        "seconds per chain",
        "regret",
        "seeds",
        "device",
    )
    image = book.figure(
        "compute",
        "Mean final regret against gradient evaluations per chain on linear-20, one point per "
        "number of steps, with 95 % intervals.",
        lambda: scatter(
            [(r.agent, chain_cost(r).gradients or 0.0, r) for r in results],
            "gradient evaluations per chain, logarithmic",
            connect=True,
            form="~s",
        ),
    )
    return section(
        "How does regret go with compute?",
        "Inner steps per round on linear-20, sound settings. Seconds are a chain's share of its "
        "run, with other runs beside it on the machine's other cores.",
        items(list(compute_sentences(book).values())),
        image,
        folded("All runs", grid(header, rows)),
    )
