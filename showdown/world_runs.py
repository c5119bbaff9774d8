"""What the page of the worlds reads from kept runs: points, prices, slopes and stuck seeds."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.intervals import RESAMPLES, Estimate, bootstrap

FRONTIER = "worlds-frontier"
KINDS = ("plain", "hotter", "constant λ", "λ_s = c/√s")


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
        plain = {"plain": "plain", "hotter": f"temperature {self.label}"}
        return plain.get(self.kind, self.label if self.kind == "constant λ" else f"{self.label}/√s")

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
    lam = result.settings["lam"]
    if result.settings["lam_schedule"] == "sqrt":
        return "λ_s = c/√s", f"{lam:g}"
    return "constant λ", f"{lam:g}"


def points_of(results: Sequence[AgentResult]) -> list[Point]:
    """Every agent that was run in the bad world and in its mirror, by testbed and kind."""
    groups: dict[tuple[str, str, str], dict[str, AgentResult]] = {}
    for r in results:
        world = str(r.testbed_settings["world"])
        groups.setdefault((r.testbed, *_kind(r)), {})[world] = r
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
    """Those that no other one has lower means than in both; from cautious to bold."""
    kept = [
        p
        for p in points
        if not any(q.bad_mean < p.bad_mean and q.bayes_mean < p.bayes_mean for q in points)
    ]
    return sorted(kept, key=lambda p: p.bayes_mean)


def beaten_by(point: Point, others: Sequence[Point]) -> list[Point]:
    """Those of the same world with lower regrets in both, beyond the 95 % intervals."""
    return [
        q
        for q in others
        if q.testbed == point.testbed
        and bootstrap(q.bad - point.bad).high < 0
        and bootstrap(q.bayes - point.bayes).high < 0
    ]


def largest_regrets(points: Sequence[Point]) -> list[tuple[str, float]]:
    """Each agent's largest mean over all bad worlds and mirrors; the least first."""
    testbeds = {p.testbed for p in points}
    worst: dict[str, dict[str, float]] = {}
    for p in points:
        worst.setdefault(p.name, {})[p.testbed] = max(p.bad_mean, float(p.mirror.mean()))
    whole = [(name, max(own.values())) for name, own in worst.items() if set(own) == testbeds]
    return sorted(whole, key=lambda pair: pair[1])


# Along a run ---------------------------------------------------------------------------------


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


def stuck(result: AgentResult) -> int:
    """Seeds that play the worse arm in most rounds."""
    return int(np.sum(result.final_regret > 0.5 * arm_gap(result) * result.rounds))


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
#: By world: with the bonus, and without.
Pairs = dict[str, tuple[AgentResult, AgentResult]]


def worlds_of(results: Sequence[AgentResult], bonus: Mapping[str, Any]) -> dict[Setting, Pairs]:
    """`exact-fgts` with this bonus beside `exact-ts`, by testbed and by world."""
    plain = {_place(r): r for r in results if r.agent == "exact-ts"}
    found: dict[Setting, Pairs] = {}
    for r in results:
        if r.agent == "exact-fgts" and bonus.items() <= r.settings.items() and _place(r) in plain:
            *setting, world = _place(r)
            found.setdefault(tuple(setting), {})[world] = (r, plain[_place(r)])
    return dict(sorted(found.items(), key=lambda pair: _order(pair[0])))


def _place(r: AgentResult) -> tuple[Any, ...]:
    own = r.testbed_settings
    return r.testbed, float(own.get("prior", 1.0)), float(own["noise"]), own["world"]


def _order(setting: Setting) -> tuple[Any, ...]:
    name, _, size = setting[0].rpartition("-")
    return name, float(size) if size.replace(".", "").isdigit() else 0.0, setting[2], setting[1]
