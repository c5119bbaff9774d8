"""Every headline computed twice more from `results/`, with plain NumPy and none of our code.

Once by rules that choose runs and their partners, with a bootstrap of its own; once by pairs that
are named one by one, from tables that pandas reads, with a jackknife. Pages must say the same.
"""

import functools
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import stats

ROOT = Path(__file__).resolve().parents[1]
#: A claim on the page of its question.
LINE = re.compile(
    r"^\| (?P<said>[^|]+?) \| [^|]+ \| (?P<value>[+−][\d.,]+) % "
    r"\[(?P<low>[+−][\d.,]+), (?P<high>[+−][\d.,]+)\] \| \d+ / \d+ \| "
    r"(?P<basis>(?P<pairs>\d+) pairs?, (?P<beds>[^|]+?), (?:(?P<fewest>\d+) to )?(?P<seeds>\d+) "
    r"seeds) \| \*\*(?P<verdict>.+?)\*\*(?P<hangs>, hangs on [^|]+|, its testbeds disagree)? \|$",
    re.MULTILINE,
)
#: The same on the front page.
FRONT = re.compile(
    r"^\| (?P<said>[^|]+?) \| \*\*(?P<verdict>[^|*]+?)\*\*(?P<hangs>, [^|]+)? \| "
    r"(?P<number>[+−][\d.,]+ % \[.+?\]) \| \[(?P<basis>.+?)\]\((?P<page>[\w-]+\.md)\) \|$",
    re.MULTILINE,
)
#: Where two testbeds are judged together: what one of them says.
ALONE = re.compile(
    r"^\| (?P<said>[^|]+?) \| (?P<bed>linear-\d+) \| (?P<value>[+−][\d.,]+) % "
    r"\[(?P<low>[+−][\d.,]+), (?P<high>[+−][\d.,]+)\] \| (?P<word>[a-z ]+) \|$",
    re.MULTILINE,
)
Row = dict[str, Any]
LINEAR = ("linear-20", "linear-40")
#: Data sets of the paper, as far as there are runs.
DATA = tuple(
    name
    for name in (
        *("adult", "cifar10", "covertype", "financial", "jester"),
        *("magic", "mnist", "mushroom", "restaurant", "shuttle"),
    )
    if (ROOT / "results" / f"{name}.parquet").exists()
)


#: Settings of the kernel, which a bonus leaves alone.
KERNEL = ("schedule", "beta", "eta", "steps", "step", "warmup_steps")


class Headline(NamedTuple):
    """Which runs the claim is about, and which run stands beside one of them."""

    testbeds: tuple[str, ...]
    studies: str
    chosen: Callable[[Row], bool]
    #: Studies of the run beside it, and whether a run is that one.
    beside: str
    partner: Callable[[Row, Row], bool]
    #: Regret until this round; 0: until the end.
    until: int = 0


def same(*names: str) -> Callable[[Row, Row], bool]:
    return lambda a, b: all(a["settings"].get(n) == b["settings"].get(n) for n in names)


def plain(a: Row, b: Row) -> bool:
    """The same agent without its bonus, by name or by λ = 0."""
    bare = a["agent"].replace("sfg", "").replace("fg", "")
    zero = b["settings"].get("lam") == 0 and b["agent"].replace("sfg", "").replace("fg", "") == bare
    return (b["agent"] == bare or zero) and same(*KERNEL)(a, b)


def sound(row: Row) -> bool:
    return row["settings"].get("schedule") == "curvature"


def of(row: Row, agent: str, **settings: Any) -> bool:
    return row["agent"] == agent and all(row["settings"].get(k) == v for k, v in settings.items())


def weight(row: Row) -> float:
    return row["settings"].get("lam") or 0.0


def unsmoothed(row: Row) -> bool:
    return "fg" in row["agent"] and "sfg" not in row["agent"]


HEADLINES = {
    "a small bonus (λ = 0.01) beats none": Headline(
        LINEAR,
        r"table-lambda-linear-\d+-b1000",
        lambda r: unsmoothed(r) and weight(r) == 0.01,
        ".*",
        plain,
    ),
    "larger bonuses help when posterior samples are accurate": Headline(
        LINEAR,
        "question-lambda",
        lambda r: "fg" in r["agent"] and weight(r) >= 0.1,
        "question-lambda",
        plain,
    ),
    "feel-good sampling generally beats plain sampling in logistic bandits": Headline(
        ("logistic-20", "logistic-40"),
        r"table-lambda-logistic-\d+-b1(000)?",
        lambda r: unsmoothed(r) and weight(r) > 0,
        ".*",
        plain,
    ),
    "feel-good sampling tends to be weaker with networks": Headline(
        DATA,
        "data-.*",
        # At b = 10 the smoothed agent is the plain one but for rounding.
        lambda r: (
            r["agent"] == "neural-fglmcts"
            or (r["agent"] == "neural-sfglmcts" and r["settings"]["b"] < 10)
        ),
        "data-.*",
        # On covertype the paper gives them another temperature than the plain agent.
        lambda a, b: b["agent"] == "neural-lmcts" and same("beta")(a, b),
    ),
    "ε-greedy outperforms the optimism of feel-good sampling": Headline(
        DATA,
        "data-.*",
        lambda r: r["agent"] == "neural-eps-greedy",
        "data-.*",
        lambda a, b: b["agent"] == "neural-fglmcts",
    ),
    "smoothing the bonus helps while the posterior is under-concentrated": Headline(
        LINEAR,
        "question-smoothing",
        lambda r: r["agent"] == "sfglmcts",
        "question-smoothing",
        lambda a, b: b["agent"] == "fglmcts" and same("lam", "b")(a, b),
        until=509,
    ),
    "in well-concentrated regimes the plain bonus is more robust": Headline(
        LINEAR,
        "question-smoothing",
        lambda r: r["agent"] == "sfglmcts",
        "question-smoothing",
        lambda a, b: b["agent"] == "fglmcts" and same("lam", "b")(a, b),
    ),
    "preconditioning distorts the posterior": Headline(
        LINEAR,
        "question-preconditioning.*",
        lambda r: r["agent"].startswith("p"),
        "question-preconditioning.*",
        lambda a, b: b["agent"] == a["agent"][1:] and same("schedule", "beta")(a, b),
    ),
    "a preconditioner cuts the regret of HMC": Headline(
        LINEAR,
        "table-main",
        lambda r: r["agent"] == "phmcts",
        "table-main",
        lambda a, b: b["agent"] == "hmcts",
    ),
    "MALATS has the lowest regret": Headline(
        LINEAR,
        "table-main",
        lambda r: of(r, "malats", warmup_steps=20) and r["settings"]["beta"] > 1,
        "table-main",
        lambda a, b: of(b, "linucb", alpha=0.1),
    ),
    "MALATS has lower regret than LMCTS": Headline(
        LINEAR,
        "question-metropolis",
        lambda r: of(r, "malats", warmup_steps=20) and not sound(r),
        "question-metropolis",
        lambda a, b: of(b, "lmcts", steps=25) and not sound(b),
    ),
    "the Metropolis correction explains that gain": Headline(
        LINEAR,
        "question-metropolis",
        lambda r: of(r, "malats", warmup_steps=0) and not sound(r),
        "question-metropolis",
        lambda a, b: of(b, "lmcts", steps=25) and not sound(b),
    ),
    "variance reduction (SVRG) breaks down": Headline(
        ("linear-40",),
        "table-main",
        lambda r: r["agent"] == "svrglmcts",
        "table-main",
        lambda a, b: b["agent"] == "lmcts" and same("beta")(a, b),
    ),
    "underdamped Langevin loses to overdamped": Headline(
        LINEAR,
        "question-underdamping",
        lambda r: r["agent"] == "ulmcts",
        "question-underdamping",
        lambda a, b: b["agent"] == "lmcts",
    ),
    "larger bonuses hurt when sampling noise dominates": Headline(
        LINEAR,
        r"table-lambda-linear-\d+-b1",
        lambda r: unsmoothed(r) and weight(r) >= 0.1,
        ".*",
        plain,
    ),
}


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def told() -> dict[str, re.Match[str]]:
    """The claims of all pages, in whatever order."""
    pages = sorted((ROOT / "docs" / "results").glob("*.md"))
    return {m["said"]: m for page in pages for m in LINE.finditer(page.read_text())}


def line_of(name: str) -> re.Match[str]:
    (line,) = (m for said, m in told().items() if said.startswith(name))
    return line


def level() -> float:
    """Bonferroni's, over all claims."""
    return 1 - 0.05 / len(told())


def compare(line: re.Match[str], low: float, value: float, high: float, slack: float) -> None:
    """In per cent: the same number, and ends within a share of the interval's width."""
    assert value == pytest.approx(number(line["value"]), abs=0.06, rel=0.006)
    width = number(line["high"]) - number(line["low"])
    assert low == pytest.approx(number(line["low"]), abs=slack * width + 0.1)
    assert high == pytest.approx(number(line["high"]), abs=slack * width + 0.1)


# Once: by rules, with a bootstrap ------------------------------------------------------------


@functools.cache
def runs(testbed: str) -> tuple[Row, ...]:
    """Every run of a testbed with its regrets by seed, straight from the file."""
    names = ["agent", "settings", "testbed_settings", "rounds", "studies", "seed", "final_regret"]
    names += ["curve_rounds", "curve_regret"]
    found: dict[str, Row] = {}
    for line in pq.read_table(ROOT / "results" / f"{testbed}.parquet", columns=names).to_pylist():
        key = str(tuple(line[n] for n in names[:4]))
        if key not in found:
            found[key] = {
                **line,
                "key": key,
                "settings": json.loads(line["settings"]),
                "regrets": {},
                "curves": {},
            }
        if line["final_regret"] is not None:
            found[key]["regrets"][line["seed"]] = line["final_regret"]
            curve = dict(zip(line["curve_rounds"], line["curve_regret"], strict=True))
            found[key]["curves"][line["seed"]] = curve
    return tuple(found.values())


def asked(row: Row, studies: str) -> bool:
    return any(re.fullmatch(studies, study) for study in row["studies"])


def pairs_of(headline: Headline) -> list[tuple[str, Row, Row]]:
    """Runs and what stands beside them, with 20 or more common seeds; equal runs count once."""
    out: dict[tuple[str, str], tuple[str, Row, Row]] = {}
    for testbed in headline.testbeds:
        for a in runs(testbed):
            if not (asked(a, headline.studies) and headline.chosen(a)):
                continue
            fits = [
                b
                for b in runs(testbed)
                if b is not a
                and asked(b, headline.beside)
                and headline.partner(a, b)
                and (a["rounds"], a["testbed_settings"]) == (b["rounds"], b["testbed_settings"])
            ]
            fits = [b for b in fits if len(set(a["regrets"]) & set(b["regrets"])) >= 20]
            if fits:
                best = max(fits, key=lambda b: len(b["regrets"]))
                regrets = [round(v, 2) for _, v in sorted(a["regrets"].items())]
                out[testbed, str(regrets)] = (testbed, a, best)
    return list(out.values())


def regrets_of(row: Row, until: int) -> dict[int, float]:
    if not until:
        return dict(row["regrets"])
    return {seed: curve[until] for seed, curve in row["curves"].items()}


def bootstrap(
    regrets: list[tuple[float, np.ndarray, np.ndarray]], levels: float
) -> tuple[float, float, float]:
    """Studentised, of the mean logarithm of ratios of means; NaN where a pair lacks a seed."""

    def estimate(where: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, influence = np.zeros(len(where)), np.zeros(where.shape)
        for share, a, b in regrets:
            of_a, of_b = a[where], b[where]
            mean_a, mean_b = (np.nanmean(own, axis=1, keepdims=True) for own in (of_a, of_b))
            value += share * np.log(mean_a / mean_b)[:, 0]
            there = np.isfinite(of_a).mean(axis=1, keepdims=True)
            influence += share * np.nan_to_num((of_a / mean_a - of_b / mean_b) / there)
        return value, influence.std(axis=1, ddof=1) / math.sqrt(where.shape[1])

    n = len(regrets[0][1])
    (value,), (error,) = estimate(np.arange(n)[None])
    values, errors = estimate(np.random.default_rng(2024).integers(0, n, (4000, n)))
    t = (values - value) / errors
    low, high = np.quantile(t, [(1 - levels) / 2, (1 + levels) / 2])
    ends = (value - high * error, value, value - low * error)
    return tuple(100 * math.expm1(end) for end in ends)  # type: ignore[return-value]


@pytest.mark.parametrize("name", HEADLINES)
def test_a_headline_by_rules_and_a_bootstrap(name: str) -> None:
    line, headline = line_of(name), HEADLINES[name]
    found = pairs_of(headline)
    assert len(found) == int(line["pairs"])
    common = [set(a["regrets"]) & set(b["regrets"]) for _, a, b in found]
    assert max(map(len, common)) == int(line["seeds"])
    assert min(map(len, common)) == int(line["fewest"] or line["seeds"])
    seeds = sorted(set.union(*common))
    beds = [testbed for testbed, _, _ in found]
    regrets = []
    for (testbed, a, b), there in zip(found, common, strict=True):
        of_a, of_b = (regrets_of(row, headline.until) for row in (a, b))
        own = np.array([[r[s] if s in there else np.nan for s in seeds] for r in (of_a, of_b)])
        regrets.append((1 / len(set(beds)) / beds.count(testbed), own[0], own[1]))
    compare(line, *bootstrap(regrets, level()), slack=0.2)


# Twice: pair by pair, with a jackknife -------------------------------------------------------

Pair = tuple[str, str, str]
FG = {"fglmcts": "lmcts", "fgmalats": "malats", "pfglmcts": "plmcts"}


@functools.cache
def tables(testbed: str) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """As pandas reads the file: a line of settings per run; final regrets; those of round 509."""
    run = ["agent", "settings", "testbed_settings", "rounds"]
    columns = [*run, "seed", "studies", "final_regret", "curve_rounds", "curve_regret"]
    frame = pd.read_parquet(ROOT / "results" / f"{testbed}.parquet", columns=columns)
    frame["run"] = frame[run].astype(str).agg("|".join, axis=1)
    lines = frame.drop_duplicates("run").set_index("run")
    settings = pd.json_normalize(list(map(json.loads, lines["settings"]))).set_index(lines.index)
    early = [
        dict(zip(rounds, regrets, strict=True)).get(509, np.nan)
        for rounds, regrets in zip(frame["curve_rounds"], frame["curve_regret"], strict=True)
    ]
    wide = [
        frame.assign(value=values).pivot(index="run", columns="seed", values="value")
        for values in (frame["final_regret"], early)
    ]
    return lines[["agent", "studies"]].join(settings), wide[0], wide[1]


def only(testbed: str, agent: str, study: str = "", **wanted: Any) -> tuple[str, Any]:
    """The one run with these settings: its name and its line."""
    lines = tables(testbed)[0]
    lines = lines[lines["agent"] == agent]
    if study:
        lines = lines[[study in own for own in lines["studies"]]]
    for name, value in wanted.items():
        if not (isinstance(value, float) and math.isnan(value)):
            lines = lines[lines[name] == value]
    assert len(lines) == 1, (testbed, agent, study, wanted, list(lines.index))
    return str(lines.index[0]), lines.iloc[0]


def bonus(table: str, weights: tuple[float, ...]) -> list[Pair]:
    """Of the paper's grids, beside the agents without a bonus at the same temperature."""
    out = []
    for bed in LINEAR:
        for agent, bare in FG.items():
            for lam in weights:
                run, own = only(bed, agent, f"table-lambda-{bed}-{table}", lam=lam)
                kernel = {n: own[n] for n in ("beta", "schedule", "steps", "warmup_steps")}
                out.append((bed, run, only(bed, bare, **kernel)[0]))
    return out


def sound_bonus() -> list[Pair]:
    weights = {"fglmcts": (0.1, 0.5, 1.0), "fgmalats": (0.1, 0.5)}
    pairs = [(bed, agent, lam) for bed in LINEAR for agent, own in weights.items() for lam in own]
    study = "question-lambda"
    return [
        (bed, only(bed, agent, study, lam=lam)[0], only(bed, agent, study, lam=0.0)[0])
        for bed, agent, lam in pairs
    ]


def seen(testbed: str, *names: str) -> bool:
    """Whether all of these runs share 20 seeds or more."""
    wide = tables(testbed)[1]
    return bool(wide.loc[list(names)].notna().all().sum() >= 20)


def of_data(testbed: str) -> dict[str, tuple[str, Any]]:
    """The runs of the study of a data set, by agent."""
    lines = tables(testbed)[0]
    own = lines[[f"data-{testbed}" in studies for studies in lines["studies"]]]
    return {row["agent"]: (str(run), row) for run, row in own.iterrows()}


def networks() -> list[Pair]:
    out = []
    for bed in DATA:
        runs_here = of_data(bed)
        if not {"neural-lmcts", "neural-fglmcts", "neural-sfglmcts"} <= set(runs_here):
            continue  # not run there yet
        plain_run, plain_line = runs_here["neural-lmcts"]
        run, own = runs_here["neural-fglmcts"]
        chosen = [run] if own["b"] == 10 else [run, runs_here["neural-sfglmcts"][0]]
        if own["beta"] == plain_line["beta"]:
            out += [(bed, r, plain_run) for r in chosen if seen(bed, r, plain_run)]
    return out


def greedy() -> list[Pair]:
    out = []
    for bed in DATA:
        pair = [of_data(bed).get(agent) for agent in ("neural-eps-greedy", "neural-fglmcts")]
        names = [own[0] for own in pair if own is not None]
        if len(names) == 2 and seen(bed, *names):
            out.append((bed, names[0], names[1]))
    return out


def smoothed() -> list[Pair]:
    study, bed = "question-smoothing", "linear-20"
    return [
        (
            bed,
            only(bed, "sfglmcts", study, lam=lam, b=b, s=s)[0],
            only(bed, "fglmcts", study, lam=lam, b=b)[0],
        )
        for lam in (0.1, 0.5)
        for b in (0.5, 1.0, 2.0)
        for s in (1.0, 10.0, 100.0)
    ]


def preconditioned() -> list[Pair]:
    agents = {
        "question-preconditioning": ("lmcts", "malats", "hmcts", "fglmcts", "fgmalats"),
        "question-preconditioning-paper": ("lmcts", "malats", "fglmcts"),
    }
    return [
        (bed, only(bed, f"p{agent}", study)[0], only(bed, agent, study)[0])
        for bed in LINEAR
        for study, own in agents.items()
        for agent in own
    ]


def malats(warm_up: int) -> list[Pair]:
    study = "question-metropolis"
    return [
        (
            bed,
            only(bed, "malats", study, schedule="decay", warmup_steps=warm_up)[0],
            only(bed, "lmcts", study, schedule="decay", steps=25)[0],
        )
        for bed in LINEAR
    ]


def best() -> list[Pair]:
    betas = {"linear-20": 5.428681023790648, "linear-40": 2.714340511895324}
    return [
        (bed, only(bed, "malats", "table-main", beta=beta)[0], only(bed, "linucb", alpha=0.1)[0])
        for bed, beta in betas.items()
    ]


def reduced() -> list[Pair]:
    run, own = only("linear-40", "svrglmcts", "table-main")
    return [("linear-40", run, only("linear-40", "lmcts", "table-main", beta=own["beta"])[0])]


def underdamped() -> list[Pair]:
    study = "question-underdamping"
    return [
        (bed, only(bed, "ulmcts", study, gamma=gamma)[0], only(bed, "lmcts", study)[0])
        for bed in LINEAR
        for gamma in (0.1, 0.3, 1.0, 3.0)
    ]


def grids() -> list[Pair]:
    """The paper's grids of logistic bandits, as far as they have 20 seeds."""
    out = []
    for bed in ("logistic-20", "logistic-40"):
        for table in ("b1000", "b1"):
            for agent, bare in FG.items():
                for lam in (0.01, 0.1, 0.5, 1.0):
                    run, own = only(bed, agent, f"table-lambda-{bed}-{table}", lam=lam)
                    kernel = {n: own[n] for n in ("beta", "eta", "schedule", "steps")}
                    kernel |= {n: own[n] for n in ("step", "warmup_steps")}
                    base = only(bed, bare, **kernel)[0]
                    if seen(bed, run, base):
                        out.append((bed, run, base))
    return out


def hmc() -> list[Pair]:
    main = "table-main"
    return [(bed, only(bed, "phmcts", main)[0], only(bed, "hmcts", main)[0]) for bed in LINEAR]


ONE_BY_ONE: dict[str, Callable[[], list[Pair]]] = {
    "a small bonus": lambda: bonus("b1000", (0.01,)),
    "larger bonuses help": sound_bonus,
    "feel-good sampling generally beats": grids,
    "feel-good sampling tends": networks,
    "ε-greedy outperforms": greedy,
    "smoothing the bonus": smoothed,
    "in well-concentrated regimes": smoothed,
    "preconditioning distorts": preconditioned,
    "a preconditioner cuts": hmc,
    "MALATS has the lowest": best,
    "MALATS has lower": lambda: malats(20),
    "the Metropolis correction": lambda: malats(0),
    "variance reduction": reduced,
    "underdamped Langevin": underdamped,
    "larger bonuses hurt": lambda: bonus("b1", (0.1, 0.5, 1.0)),
}


def jackknife(frames: dict[str, list[tuple[Any, Any]]], levels: float) -> tuple[float, ...]:
    """Of the mean logarithm of ratios of means, each seed left out in turn, with Student's t."""
    seeds = sorted({seed for own in frames.values() for a, _ in own for seed in a.index})

    def value(left: int | None) -> float:
        beds = []
        for own in frames.values():
            kept = [(a[a.index != left], b[b.index != left]) for a, b in own]
            beds.append(np.mean([np.log(a.mean()) - np.log(b.mean()) for a, b in kept]))
        return float(np.mean(beds))

    n, middle = len(seeds), value(None)
    each = np.array([value(seed) for seed in seeds])
    error = math.sqrt((n - 1) / n * ((each - each.mean()) ** 2).sum())
    width = stats.t.ppf((1 + levels) / 2, n - 1) * error
    return tuple(100 * math.expm1(end) for end in (middle - width, middle, middle + width))


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_a_headline_pair_by_pair_and_by_a_jackknife(name: str) -> None:
    """Student's interval does not know of skewness: its ends may be off by more."""
    line = line_of(name)
    frames = frames_of(name)
    assert sum(map(len, frames.values())) == int(line["pairs"])
    named = re.findall(r"[a-z]+-\d+", line["beds"])
    assert set(named) == set(frames) if named else line["beds"] == f"{len(frames)} testbeds"
    low, value, high = jackknife(frames, level())
    compare(line, low, value, high, slack=0.35)


def frames_of(name: str) -> dict[str, list[tuple[Any, Any]]]:
    """By testbed: the regrets of each pair over their common seeds."""
    frames: dict[str, list[tuple[Any, Any]]] = {}
    for bed, run, base in ONE_BY_ONE[name]():
        wide = tables(bed)[2 if name == "smoothing the bonus" else 1]
        both = wide.loc[[run, base]].dropna(axis=1)
        frames.setdefault(bed, []).append((both.loc[run], both.loc[base]))
    return frames


def test_every_headline_is_here() -> None:
    said = list(told())
    assert len(said) == len(HEADLINES) == len(ONE_BY_ONE)
    for names in (HEADLINES, ONE_BY_ONE):
        assert all(any(s.startswith(name) for name in names) for s in said)


def test_the_front_page_says_what_the_pages_say() -> None:
    rows = list(FRONT.finditer((ROOT / "docs" / "results" / "README.md").read_text()))
    assert 6 <= len(rows) <= 9
    for row in rows:
        line = told()[row["said"]]
        assert row["number"] == f"{line['value']} % [{line['low']}, {line['high']}]"
        assert (row["verdict"], row["hangs"]) == (line["verdict"], line["hangs"])
        assert row["basis"] == line["basis"].partition(", ")[2]
        page = (ROOT / "docs" / "results" / row["page"]).read_text()
        assert line[0] in page


SAYS_MORE = ("weaker", "distorts", "breaks down", "loses", "hurt", "plain bonus is more")


def word_of(said: str, low: float, high: float) -> str:
    """The rule of the page on reading."""
    low, high = (-high, -low) if any(word in said for word in SAYS_MORE) else (low, high)
    return "holds" if high < 0 else "does not hold" if low > -5 else "open"


#: A claim that is open as long as there is one testbed alone.
OF_TWO = "feel-good sampling generally beats plain sampling in logistic bandits"


def test_verdicts_follow_from_the_intervals() -> None:
    """From what the pages show."""
    for said, line in told().items():
        rule = word_of(said, number(line["low"]), number(line["high"]))
        lacking = said.startswith(OF_TWO) and " and " not in line["beds"]
        assert line["verdict"] == ("open" if line["hangs"] or lacking else rule), said


def test_two_testbeds_stand_by_themselves() -> None:
    """By the jackknife; where one upholds a claim and the other does not, it is open."""
    lines = [
        m
        for page in (ROOT / "docs" / "results").glob("*.md")
        for m in ALONE.finditer(page.read_text())
    ]
    two = [name for name in ONE_BY_ONE if len(frames_of(name)) == 2]
    assert len(two) >= 6 and len(lines) == 2 * len(two)
    for name in two:
        words = set()
        for bed, own in frames_of(name).items():
            (line,) = (m for m in lines if m["said"].startswith(name) and m["bed"] == bed)
            compare(line, *jackknife({bed: own}, level()), slack=0.35)
            low, high = number(line["low"]), number(line["high"])
            assert line["word"] == word_of(line["said"], low, high) or 0.0 in (low, high)
            words.add(line["word"])
        disagree = {"holds", "does not hold"} <= words
        assert (line_of(name)["hangs"] == ", its testbeds disagree") is disagree


@pytest.mark.parametrize("name", [n for n in HEADLINES if HEADLINES[n].testbeds == DATA])
def test_no_data_set_decides_alone(name: str) -> None:
    """Each left out in turn, by the jackknife: where a verdict changes, its name is on the page."""
    line = line_of(name)
    (key,) = (own for own in ONE_BY_ONE if line["said"].startswith(own))
    frames = frames_of(key)
    words = {}
    for bed in frames:
        others = {other: own for other, own in frames.items() if other != bed}
        low, _, high = jackknife(others, level())
        words[bed] = word_of(name, low, high)
    alone = {bed for bed, word in words.items() if word != line["verdict"]}
    assert alone == set(re.findall(r"[a-z]+\d*", (line["hangs"] or "")[11:])) - {"and"}
