"""What a regret is to be measured against: chance, the best fixed arm, a learner told everything.

`python -m showdown yardsticks` computes them once and keeps them in `results/yardsticks.csv`,
because the data sets are not where the pages are made. All are sums of expected regret over the
rounds of a run, as an agent's regret is.
"""

import csv
import dataclasses
import functools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.intervals import Estimate
from feelgood.stats.shares import stuck_share
from showdown.markdown import grid, section
from showdown.wording import number

FILE = "yardsticks.csv"
#: Seeds over which chance and the best fixed arm are averaged, and those of the learner, which
#: differ by some per cent.
SEEDS, LEARNER_SEEDS = 20, 1
#: The learner is trained anew whenever the rows that it has seen have doubled, from these on.
FIRST_FIT = 100
TREES = 100
#: `simple_regret` is that of so many rounds at the end.
LAST = 500


@dataclasses.dataclass(frozen=True)
class Yardstick:
    """Regrets over `rounds` rounds of one testbed; `learner` is NaN where there is no data set."""

    testbed: str
    settings: str
    rounds: int
    uniform: float
    fixed: float
    learner: float

    @property
    def stuck_from(self) -> float:
        """Regret of the last rounds from which on a seed is stuck: halfway to chance.

        From the learner's; on made worlds, where nothing need be lost, from 0.
        """
        least = 0.0 if math.isnan(self.learner) else self.learner
        return 0.5 * (self.uniform + least) / self.rounds * min(LAST, self.rounds)


Yardsticks = Mapping[tuple[str, str, int], Yardstick]


def key_of(result: AgentResult) -> tuple[str, str, int]:
    """Which yardstick belongs to a result."""
    return result.testbed, json.dumps(dict(result.testbed_settings), sort_keys=True), result.rounds


def those_of(results: Iterable[AgentResult], found: Yardsticks) -> list[Yardstick]:
    """Those that belong to these results, each once, by testbed."""
    return [found[key] for key in sorted({key_of(r) for r in results}) if key in found]


def stuck(result: AgentResult, found: Yardsticks) -> Estimate | None:
    """The share of seeds that are stuck at the end, with its interval; None: no yardstick.

    A seed is stuck whose regret over the last 500 rounds is nearer to that of chance than to that
    of a learner that is told everything.
    """
    own = found.get(key_of(result))
    return None if own is None else _share(result.simple_regret.tobytes(), own.stuck_from)


def dagger(result: AgentResult, found: Yardsticks) -> str:
    """† where the mean regret of the chains that did not diverge is no lower than a fixed arm's."""
    own, whole = found.get(key_of(result)), result.final_regret[np.isfinite(result.final_regret)]
    if own is None:
        return ""
    return mark(float(whole.mean()) if len(whole) else math.nan, own.fixed)


def mark(mean: float, fixed: float) -> str:
    """† of a mean regret that is no lower than a fixed arm's, or that there is not."""
    return "" if mean < fixed else "†"


@functools.lru_cache(maxsize=4096)
def _share(regrets: bytes, stuck_from: float) -> Estimate:
    return stuck_share(np.frombuffer(regrets), stuck_from)


ABOUT = (
    f"Regret over as many rounds, on {SEEDS} other seeds, of arms by chance and of the best fixed "
    "arm."
)
ABOUT_DATA = (
    f"Regret over as many rounds, on {SEEDS} other seeds. Where arms are classes, the best fixed "
    "arm is the majority class. *Forest*: one random forest that is told all rewards."
)


def part(found: Sequence[Yardstick]) -> list[str]:
    """What a page has of them."""
    told = any(math.isfinite(y.learner) for y in found)
    about = ABOUT_DATA if told else ABOUT
    return [section("Yardsticks", about, table(found))] if found else []


def table(found: Sequence[Yardstick]) -> str:
    """One row per testbed; the learner's column is left out where none has one."""
    told = any(math.isfinite(y.learner) for y in found)
    rows = []
    for y in found:
        numbers = (y.uniform, y.fixed, *([y.learner] if told else []))
        rows.append([_name(y, found), f"{y.rounds:,}", *map(number, numbers)])
    header = ("testbed", "rounds", "chance", "best fixed arm", *(["forest"] if told else []))
    return grid(header, rows)


def _name(yardstick: Yardstick, among: Sequence[Yardstick]) -> str:
    """The testbed, with its features where it stands there with others, too."""
    if sum(y.testbed == yardstick.testbed for y in among) == 1:
        return yardstick.testbed
    told = json.loads(yardstick.settings).get("preprocess")
    return f"{yardstick.testbed} ({told})" if told else yardstick.testbed


# The file ------------------------------------------------------------------------------------


def read(folder: Path) -> dict[tuple[str, str, int], Yardstick]:
    """What was written; nothing where there is no file."""
    path = folder / FILE
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        rows = [
            Yardstick(
                line["testbed"],
                line["settings"],
                int(line["rounds"]),
                *(float(line[name] or "nan") for name in ("uniform", "fixed", "learner")),
            )
            for line in csv.DictReader(file)
        ]
    return {(y.testbed, y.settings, y.rounds): y for y in rows}


def write(folder: Path, yardsticks: Iterable[Yardstick]) -> Path:
    """One line per testbed, its settings and number of rounds."""
    names = [field.name for field in dataclasses.fields(Yardstick)]
    with (folder / FILE).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for y in sorted(yardsticks, key=lambda y: (y.testbed, y.settings, y.rounds)):
            numbers = (y.uniform, y.fixed, y.learner)
            told = ["" if math.isnan(value) else f"{value:.6g}" for value in numbers]
            writer.writerow([y.testbed, y.settings, y.rounds, *told])
    return folder / FILE


# Measuring -----------------------------------------------------------------------------------


def measure(
    wanted: Iterable[tuple[str, str, int]],
    known: Yardsticks,
    note: Callable[[str], None] = lambda text: None,
) -> list[Yardstick]:
    """Those that are wanted; what is known is not computed again, and what cannot be is named."""
    from feelgood.core.errors import FeelgoodError

    out = []
    for key in sorted(set(wanted)):
        if key in known:
            out.append(known[key])
            continue
        try:
            out.append(measure_one(*key))
        except FeelgoodError as error:
            note(f"{error} {key[0]} has no yardstick.")
    return out


def measure_one(testbed: str, settings: str, rounds: int) -> Yardstick:
    """Chance, the best fixed arm of each seed, and a learner where there is a data set."""
    from feelgood.core.testbed import TESTBEDS
    from feelgood.testbeds.dataset_bandit import DatasetBandit

    built = TESTBEDS[testbed].build(json.loads(settings))
    rounds_of = _rounds_of(built, rounds)
    uniform, fixed, learner = [], [], []
    for seed in range(SEEDS):
        contexts, means = rounds_of(seed)
        regrets = means.max(axis=1, keepdims=True) - means
        uniform.append(regrets.mean(axis=1).sum())
        fixed.append(regrets.sum(axis=0).min())
        if isinstance(built, DatasetBandit) and seed < LEARNER_SEEDS:
            learner.append(_told_everything(contexts, means, seed))
    sums = (float(np.mean(own)) if own else math.nan for own in (uniform, fixed, learner))
    return Yardstick(testbed, settings, rounds, *sums)


def _rounds_of(testbed: Any, rounds: int) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
    """Contexts and expected rewards of all rounds of a seed: draws of its own, not of a run."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def play(seed: Any) -> tuple[Any, Any]:
        start, along = jax.random.split(jax.random.key(seed))
        state = testbed.begin(start, seed)

        def one(key: Any, t: Any) -> tuple[Any, Any]:
            context = testbed.context(key, state, t)
            return context, testbed.mean_rewards(state, context, t)

        keys = jax.random.split(along, rounds)
        return jax.vmap(one)(keys, jnp.arange(rounds))

    def own(seed: int) -> tuple[np.ndarray, np.ndarray]:
        contexts, means = play(jnp.uint32(seed))
        return np.asarray(contexts, np.float64), np.asarray(means, np.float64)

    return own


def _told_everything(contexts: np.ndarray, rewards: np.ndarray, seed: int) -> float:
    """Regret of a random forest that is told the rewards of all arms of every row it has seen."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    one_hot = bool(((rewards == 0) | (rewards == 1)).all() and (rewards.sum(axis=1) == 1).all())
    kind = RandomForestClassifier if one_hot else RandomForestRegressor
    rounds = len(rewards)
    regrets = rewards.max(axis=1, keepdims=True) - rewards
    total = float(regrets[:FIRST_FIT].mean(axis=1).sum())
    first = FIRST_FIT
    while first < rounds:
        last = min(2 * first, rounds)
        forest = kind(TREES, max_features="sqrt", min_samples_leaf=2, random_state=seed, n_jobs=1)
        forest.fit(contexts[:first], rewards[:first].argmax(axis=1) if one_hot else rewards[:first])
        told = forest.predict(contexts[first:last])
        arms = told if one_hot else told.argmax(axis=1)
        total += float(regrets[np.arange(first, last), arms].sum())
        first = last
    return total
