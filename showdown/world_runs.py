"""What the page of the worlds reads from kept runs: points, prices, slopes and stuck seeds."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.intervals import RESAMPLES, Estimate, bca
from feelgood.stats.studentised import StudentisedMean, studentised
from showdown.effects import effect

FRONTIER = "worlds-frontier"
KINDS = ("plain", "hotter", "constant λ", "λ_s = c/√s")
#: The worlds that are always reported together.
MIRRORED = ("bad", "mirror")
#: Of most runs.
ROUNDS = 10_000
#: λ_s = 1/√s, the default schedule, and the temperature that stands beside it.
FALLING, HOT = {"lam": 1.0, "lam_schedule": "sqrt"}, 4.0


# Points of the frontier ----------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Point:
    """An agent in one kind of world; regrets are by seed, in the same order."""

    testbed: str
    kind: str
    label: str
    bad: np.ndarray
    mirror: np.ndarray
    #: In worlds that are drawn from the prior, or the masses' average of the other two.
    bayes: np.ndarray

    @property
    def name(self) -> str:
        """As the page calls the agent."""
        return {
            "plain": "plain",
            "hotter": f"temperature {self.label}",
            "constant λ": f"λ = {self.label}",
        }.get(self.kind, f"λ_s = {self.label}/√s")

    @property
    def title(self) -> str:
        """The same; λ* and λ_t of a trap are named there."""
        if not self.testbed.startswith("trap-"):
            return self.name
        surprise = math.log(1.0 / float(self.testbed.removeprefix("trap-")))
        best = {
            ("constant λ", _three(math.sqrt(2.0 * surprise / ROUNDS))): "λ*",
            ("λ_s = c/√s", _three(math.sqrt(surprise / 2.0))): "λ_t",
        }
        sign = best.get((self.kind, self.label))
        return f"{self.name} ({sign})" if sign else self.name

    @property
    def bad_mean(self) -> float:
        return float(self.bad.mean())

    @property
    def bayes_mean(self) -> float:
        return float(self.bayes.mean())


def _kind(result: AgentResult) -> tuple[str, str]:
    if result.agent == "exact-ts":
        heat = result.settings["temperature"]
        return ("plain", "") if heat == 1 else ("hotter", f"{heat:g}")
    own = result.settings
    if own["lam_schedule"] == "sqrt":
        return "λ_s = c/√s", _three(own["lam"])
    if own["lam_schedule"] == "prior-mass":
        lam = math.sqrt(2.0 * math.log(1.0 / own["prior_mass"]) / own["horizon"])
        return "constant λ", _three(lam)
    return "constant λ", _three(own["lam"])


def _three(weight: float) -> str:
    return f"{weight:.3g}"


def place(result: AgentResult) -> str:
    """The testbed, with the number of its copies where there are several."""
    copies = result.testbed_settings.get("copies", 1)
    return result.testbed if copies == 1 else f"{result.testbed}, {copies} copies"


def points_of(results: Sequence[AgentResult]) -> list[Point]:
    """Every agent that was run in the bad world and in its mirror, by testbed and kind."""
    groups: dict[tuple[str, str, str], dict[str, AgentResult]] = {}
    for r in results:
        world = str(r.testbed_settings["world"])
        groups.setdefault((place(r), *_kind(r)), {})[world] = r
    points = []
    for (testbed, kind, label), worlds in groups.items():
        if "bad" not in worlds or "mirror" not in worlds:
            continue
        bad, mirror = worlds["bad"].final_regret, worlds["mirror"].final_regret
        if "prior" in worlds:
            bayes = worlds["prior"].final_regret
        elif testbed.startswith("trap-"):
            mass = float(testbed.removeprefix("trap-"))
            bayes = mass * bad + (1.0 - mass) * mirror
        else:
            continue
        points.append(Point(testbed, kind, label, bad, mirror, bayes))
    rank = {name: i for i, name in enumerate(KINDS)}
    return sorted(points, key=lambda p: (p.testbed, rank[p.kind], float(p.label or 0)))


def on_frontier(points: Sequence[Point]) -> list[Point]:
    """Those that no other one beats in one mean and equals in the other; from cautious to bold.

    Of equals the first is kept: small weights often play just as none does.
    """
    kept: list[Point] = []
    for p in sorted(points, key=lambda p: (p.bayes_mean, p.bad_mean)):
        if not kept or p.bad_mean < kept[-1].bad_mean:
            kept.append(p)
    return kept


def beaten_by(point: Point, others: Sequence[Point]) -> list[Point]:
    """Those of the same world with lower regrets in both, beyond the 95 % intervals."""
    return [
        q
        for q in others
        if q.testbed == point.testbed
        and studentised(q.bad - point.bad).high < 0
        and studentised(q.bayes - point.bayes).high < 0
    ]


@dataclasses.dataclass(frozen=True)
class Worst:
    """An agent's largest mean regret over all bad worlds and mirrors, and where it is."""

    kind: str
    name: str
    regret: Estimate
    where: str
    #: Averaged over the priors, then over the worlds.
    average: Estimate


def largest_regrets(points: Sequence[Point]) -> list[Worst]:
    """Of each agent that was run everywhere; the least first."""
    testbeds = {p.testbed for p in points}
    agents: dict[tuple[str, str], list[Point]] = {}
    for p in points:
        agents.setdefault((p.kind, p.name), []).append(p)
    found = []
    for (kind, name), own in agents.items():
        if {p.testbed for p in own} == testbeds:
            regrets = {f"{p.testbed}, {w}": getattr(p, w) for p in own for w in MIRRORED}
            where = max(regrets, key=lambda at: float(regrets[at].mean()))
            average = bca(np.mean([p.bayes for p in own], axis=0))
            found.append(Worst(kind, name, bca(regrets[where]), where, average))
    return sorted(found, key=lambda w: w.regret.value)


# Along a run ---------------------------------------------------------------------------------


def difference(a: AgentResult, b: AgentResult) -> StudentisedMean:
    """Mean of a − b over common seeds, with the interval that all pages have."""
    found = effect("", a, b).difference
    if found is None:
        raise ValueError(f"{a.agent} and {b.agent} on {a.testbed} have no seed in common")
    return found


def regrets_by_seed(result: AgentResult) -> dict[int, float]:
    """Final regret of each seed."""
    return dict(zip(result.seeds, map(float, result.final_regret), strict=True))


def late_rates(result: AgentResult, begin: int) -> np.ndarray:
    """Regret per round of each seed, after the first kept round from `begin` on."""
    at = int(np.searchsorted(result.curve_rounds, begin))
    rounds = result.rounds - result.curve_rounds[at]
    return (result.final_regret - result.curve[:, at]) / rounds


def price(result: AgentResult) -> float:
    """λbg/(η(b + g)²) of a run in a trap whose optimist says b and whose pessimist −g."""
    over, gap = (float(result.testbed_settings[name]) for name in ("gap", "loss"))
    noise = float(result.testbed_settings["noise"])
    lam = float(result.settings["lam"])
    return lam * over * gap * 2.0 * noise**2 / (over + gap) ** 2


def arm_gap(result: AgentResult) -> float:
    """How much less the worse of two arms pays: √d − ½ in the mirror of a linear trap, else ½."""
    name, _, size = result.testbed.rpartition("-")
    if name == "linear-trap" and result.testbed_settings.get("world") == "mirror":
        return math.sqrt(float(size)) - 0.5
    return 0.5


def locked(result: AgentResult) -> np.ndarray:
    """Which seeds play the worse arm in most rounds."""
    return np.asarray(result.final_regret > 0.5 * arm_gap(result) * result.rounds)


def stuck(result: AgentResult) -> int:
    """How many of them there are."""
    return int(np.sum(locked(result)))


def single(result: AgentResult) -> int:
    """Seeds that play one arm only in the second half; kept curves have four digits."""
    late = late_rates(result, result.rounds // 2) / arm_gap(result)
    return int(np.sum((late < 0.002) | (late > 0.998)))


def shares(result: AgentResult) -> tuple[np.ndarray, np.ndarray]:
    """The ends of stretches of the run, and the worse arm's share of the plays between them."""
    rounds = np.concatenate([[0], result.curve_rounds])
    sums = np.concatenate([np.zeros((len(result.seeds), 1)), result.curve], axis=1)
    picked = np.unique(np.searchsorted(rounds, np.linspace(0, result.rounds, 13)))
    means = sums[:, picked].mean(axis=0)
    return rounds[picked][1:], np.diff(means) / np.diff(rounds[picked]) / arm_gap(result)


def ahead_from(a: AgentResult, b: AgentResult) -> int | None:
    """The first kept round from which on the mean regret of a is below that of b."""
    behind = np.flatnonzero(a.curve.mean(axis=0) >= b.curve.mean(axis=0))
    if len(behind) == 0:
        return int(a.curve_rounds[0])
    last = int(behind[-1]) + 1
    return int(a.curve_rounds[last]) if last < len(a.curve_rounds) else None


def slope(x: np.ndarray, samples: Sequence[np.ndarray]) -> Estimate:
    """Of log mean regret over x, with a bootstrap over seeds."""
    rng = np.random.default_rng(0)

    def fitted(means: np.ndarray) -> np.ndarray:
        centred = x - x.mean()
        return centred @ np.log(means) / float(centred @ centred)

    drawn = [s[rng.integers(0, len(s), (RESAMPLES, len(s)))].mean(axis=1) for s in samples]
    low, high = np.quantile(fitted(np.stack(drawn)), [0.025, 0.975])
    at = float(fitted(np.array([s.mean() for s in samples])))
    return Estimate(at, float(low), float(high), 0.95, len(samples), 0)


# Pairs ---------------------------------------------------------------------------------------

#: Testbed, deviation of the prior and of the noise.
Setting = tuple[str, float, float]
#: By world: with the bonus or the heat, and without.
Pairs = dict[str, tuple[AgentResult, AgentResult]]


def worlds_of(results: Sequence[AgentResult], bonus: Mapping[str, Any]) -> dict[Setting, Pairs]:
    """`exact-fgts` with this bonus beside `exact-ts`, by testbed and by world, at temperature 1."""
    cool = [r for r in results if r.settings["temperature"] == 1]
    bold = [r for r in cool if r.agent == "exact-fgts" and bonus.items() <= r.settings.items()]
    return _beside(bold, cool)


def heated_of(results: Sequence[AgentResult], temperature: float) -> dict[Setting, Pairs]:
    """`exact-ts` at this temperature beside itself at 1, by testbed and by world."""
    plain = [r for r in results if r.agent == "exact-ts"]
    hot = [r for r in plain if r.settings["temperature"] == temperature]
    return _beside(hot, [r for r in plain if r.settings["temperature"] == 1])


def _beside(changed: Sequence[AgentResult], others: Sequence[AgentResult]) -> dict[Setting, Pairs]:
    plain = {_place(r): r for r in others if r.agent == "exact-ts"}
    found: dict[Setting, Pairs] = {}
    for r in changed:
        if _place(r) in plain:
            *setting, world = _place(r)
            found.setdefault(tuple(setting), {})[world] = (r, plain[_place(r)])
    return dict(sorted(found.items(), key=lambda pair: _order(pair[0])))


def _place(r: AgentResult) -> tuple[Any, ...]:
    own = r.testbed_settings
    return place(r), float(own.get("prior", 1.0)), float(own["noise"]), own["world"]


def _order(setting: Setting) -> tuple[Any, ...]:
    name, _, size = setting[0].partition(",")[0].rpartition("-")
    return name, float(size) if size.replace(".", "").isdigit() else 0.0, setting[2], setting[1]
