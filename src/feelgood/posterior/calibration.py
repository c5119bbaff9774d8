"""Simulation-based calibration: does an agent's posterior mean what it says?

Draw the true parameter from the prior, let the agent play, draw from its posterior. If the agent is
right, the rank of the truth among the draws is uniform, whatever the testbed's data look like. Data
that the agent chose itself change nothing: the posterior conditions on them.

Talts, Betancourt, Simpson, Vehtari and Gelman, "Validating Bayesian inference algorithms with
simulation-based calibration", 2018.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key
from scipy import special

from feelgood.core.arguments import (
    parse_level,
    parse_name,
    parse_number,
    parse_rounds,
    parse_settings,
    parse_whole,
)
from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import AGENTS, Policy
from feelgood.core.spec import Number, Spec
from feelgood.core.testbed import TESTBEDS, Testbed
from feelgood.engine.compiling import compiled, in_own_precision, keep_compiled_programs
from feelgood.engine.loop import repeated_draws
from feelgood.numerics.keys import ENVIRONMENT, AnyKey, seed_array, seed_keys
from feelgood.posterior.chains import play_many, require_draws
from feelgood.posterior.matched_settings import PRECISION, agent_settings, has_truth
from feelgood.posterior.verdicts import POSTERIOR_LEVEL
from feelgood.stats.student import t_two_sided

#: Bars of the histogram; there are ten ranks per bar.
BARS = 10
RANKED_DRAWS = 10 * BARS - 1
FEWEST_SIMULATIONS, MOST_SIMULATIONS = 50, 100_000
#: The most draws between two that are kept, or before the first.
MOST_DRAWS = 1_000_000


class FromPrior(Testbed):
    """A testbed whose true parameters are drawn from N(0, I/precision)."""

    inner: Testbed
    precision: Number

    @classmethod
    def of(cls, inner: Testbed, precision: float) -> "FromPrior":
        """The testbed for a precision that is a Python number."""
        return cls(inner=inner, precision=jnp.asarray(precision, jnp.float32))

    @property
    def spec(self) -> Spec:
        return self.inner.spec

    @property
    def rounds(self) -> int:
        return self.inner.rounds

    def init(self, key: Key[Array, ""]) -> Any:
        state = self.inner.init(key)
        truth = self.inner.truth(state)
        leaves, structure = jax.tree.flatten(state)
        place = next((i for i, leaf in enumerate(leaves) if leaf is truth), None)
        if truth is None or place is None:
            raise FeelgoodError(
                f"`truth` of {type(self.inner).__name__} is no array of its state: return one as "
                "it is there."
            )
        theta = jax.random.normal(jax.random.fold_in(key, 1), truth.shape)
        leaves[place] = theta / jnp.sqrt(self.precision)
        return jax.tree.unflatten(structure, leaves)

    def truth(self, state: Any) -> Float[Array, "..."] | None:
        return self.inner.truth(state)

    def reward_noise(self) -> Number | None:
        return self.inner.reward_noise()

    def context(self, key: Key[Array, ""], state: Any, t: Int[Array, ""]) -> Float[Array, "..."]:
        return self.inner.context(key, state, t)

    def mean_rewards(
        self, state: Any, context: Float[Array, "..."], t: Int[Array, ""]
    ) -> Float[Array, " arms"]:
        return self.inner.mean_rewards(state, context, t)

    def rewards(
        self, key: Key[Array, ""], state: Any, means: Float[Array, " arms"]
    ) -> Float[Array, " arms"]:
        return self.inner.rewards(key, state, means)


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Ranks of the truth among an agent's draws, and what they say."""

    agent: str
    testbed: str
    rounds: int
    settings: Mapping[str, Any]
    #: In 0 … draws.
    ranks: Int[np.ndarray, "simulations parameters"]
    draws: int
    level: float

    @property
    def histogram(self) -> Int[np.ndarray, " bars"]:
        """Ranks of all parameters together."""
        return np.bincount(self._bars().ravel(), minlength=BARS)

    def _bars(self) -> np.ndarray:
        return self.ranks * BARS // (self.draws + 1)

    @property
    def spread(self) -> tuple[float, float]:
        """Mean squared distance of the ranks from the middle, over that of a uniform law.

        With its standard error over simulations. Above 1 the posterior is too narrow (the truth is
        at its ends too often), below 1 too wide.
        """
        return _mean_and_error(self._spreads())

    @property
    def shift(self) -> tuple[float, float]:
        """Mean of (rank − middle) / draws, with its standard error over simulations."""
        return _mean_and_error((self.ranks / self.draws - 0.5).mean(axis=1))

    def _spreads(self) -> np.ndarray:
        middle = 0.5 * self.draws
        uniform = ((self.draws + 1.0) ** 2 - 1.0) / 12.0
        return ((self.ranks - middle) ** 2 / uniform).mean(axis=1)

    @property
    def p_values(self) -> dict[str, float]:
        """Tests of uniformity: χ² of the worst parameter (Bonferroni), spread and shift (t)."""
        simulations, parameters = self.ranks.shape
        counts = np.stack([(self._bars() == bar).sum(axis=0) for bar in range(BARS)])
        expected = simulations / BARS
        statistic = ((counts - expected) ** 2 / expected).sum(axis=0)
        histogram = min(1.0, parameters * float(special.chdtrc(BARS - 1, statistic.max())))
        out = {"histogram": histogram}
        for name, (value, error), uniform in (
            ("spread", self.spread, 1.0),
            ("shift", self.shift, 0.0),
        ):
            score = abs(value - uniform) / error if error > 0 else np.inf
            out[name] = t_two_sided(score, simulations - 1)
        return out

    @property
    def calibrated(self) -> bool:
        """Whether all tests pass together at the level."""
        p_values = self.p_values
        return min(p_values.values()) * len(p_values) >= self.level

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        simulations, parameters = self.ranks.shape
        if self.calibrated:
            return (
                f"calibrated: ranks are uniform ({simulations} simulations × {parameters} "
                f"parameters, level {self.level:g})."
            )
        value, error = self.spread
        shift, shift_error = self.shift
        if abs(value - 1.0) > 3.0 * error:
            kind = "too narrow" if value > 1.0 else "too wide"
        else:
            kind = "of the wrong shape or place"
        return (
            f"not calibrated: the posterior is {kind} (spread of ranks {value:.2f} ± {error:.2f} "
            f"of a uniform law's, shift {shift:+.3f} ± {shift_error:.3f})."
        )

    def to_json(self) -> dict[str, Any]:
        """In plain types."""
        return {
            "kind": "calibration",
            "agent": self.agent,
            "testbed": self.testbed,
            "rounds": self.rounds,
            "settings": dict(self.settings),
            "draws": self.draws,
            "level": self.level,
            "calibrated": self.calibrated,
            "sentence": self.sentence,
            "p_values": self.p_values,
            "spread": self.spread,
            "shift": self.shift,
            "histogram": self.histogram.tolist(),
            "ranks": self.ranks.tolist(),
        }


def _mean_and_error(values: Float[np.ndarray, " simulations"]) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


class _Ranker(eqx.Module):
    """Draws after a run, thinned."""

    burn: int = eqx.field(static=True)
    thin: int = eqx.field(static=True)
    draws: int = eqx.field(static=True)
    spec: Spec = eqx.field(static=True)

    def __call__(
        self, policy: Policy, keys: AnyKey, state: Any, first: Int[Array, ""]
    ) -> Float[Array, "draws parameters lanes"]:
        needs, count = policy.needs(self.spec), self.draws * self.thin
        _, state = repeated_draws(policy, needs, keys, state, self.burn, first)
        drawn, _ = repeated_draws(policy, needs, keys, state, count, first + self.burn)
        return drawn[self.thin - 1 :: self.thin]


@in_own_precision
def calibrate(
    agent: str | Any,
    testbed: str | Any = "planted",
    *,
    simulations: int | Any = 200,
    rounds: int | Any = 100,
    steps: int | Any | None = None,
    thin: int | Any = 4,
    burn: int | Any = 10,
    precision: float | Any = PRECISION,
    preset: str | Any | None = None,
    settings: Mapping[str, Any] | Any | None = None,
    testbed_settings: Mapping[str, Any] | Any | None = None,
    level: float | Any = POSTERIOR_LEVEL,
    seed: int | Any = 0,
) -> Calibration:
    """Simulation-based calibration of an agent on a testbed whose parameters have a prior.

    **Arguments:**

    - `agent`, `testbed`: names; the testbed must have true parameters (`linear-N`, `planted`,
      `logistic-N`), which are drawn from N(0, I/`precision`).
    - `simulations`, `rounds`: how many truths, and how many rounds the agent plays with each.
    - `steps`, `thin`, `burn`: inner steps per draw, draws of which one is kept, and draws thrown
      away first. Ranks are uniform only for nearly independent draws.
    - `preset`, `settings`: as in `analyse`; without them the agent's target is the posterior.
    - `level`: false-alarm rate of the verdict.

    **Example:**

    >>> from feelgood.posterior import calibrate
    >>> calibrate("lints", simulations=50, rounds=10).ranks.shape
    (50, 120)
    """
    AGENTS[agent]
    problem = TESTBEDS[testbed].build(testbed_settings)
    preset = None if preset is None else parse_name("preset", preset)
    steps = None if steps is None else parse_whole("steps", steps, 1, 100_000)
    rounds, level = parse_rounds(rounds), parse_level("level", level)
    simulations = parse_whole("simulations", simulations, FEWEST_SIMULATIONS, MOST_SIMULATIONS)
    thin, burn = parse_whole("thin", thin, 1, MOST_DRAWS), parse_whole("burn", burn, 0, MOST_DRAWS)
    seed = parse_whole("seed", seed, 0, 2**32 - simulations)
    given, precision = parse_settings("settings", settings), _parse_precision(precision)
    chosen: dict[str, Any] = {"preset": preset, "steps": steps, "precision": precision}
    values = agent_settings(agent, testbed, problem, rounds, given=given, **chosen)
    policy = AGENTS[agent].build(values)
    _require_truth(testbed, problem)
    require_draws(agent, policy, problem.spec)
    thin, burn = (1, 0) if policy.hints(problem.spec).exact_draws else (thin, burn)
    ranker = _Ranker(burn=burn, thin=thin, draws=RANKED_DRAWS, spec=problem.spec)
    seeds = list(range(seed, seed + simulations))
    return Calibration(
        agent=agent,
        testbed=testbed,
        rounds=rounds,
        settings=AGENTS[agent].resolve(values),
        ranks=_ranks(FromPrior.of(problem, precision), policy, rounds, seeds, ranker),
        draws=RANKED_DRAWS,
        level=level,
    )


def _parse_precision(precision: Any) -> float:
    number = parse_number("precision", precision, "a number above 0")
    if number <= 0.0:
        raise FeelgoodError(f"precision = {number} is not allowed: use a number above 0.")
    return number


def _require_truth(testbed: str, problem: Testbed) -> None:
    if not has_truth(problem):
        raise FeelgoodError(
            f"{testbed} has no parameters with a prior: use one that has, such as linear-20."
        )


def _ranks(
    testbed: Testbed, policy: Policy, rounds: int, seeds: list[int], ranker: _Ranker
) -> Int[np.ndarray, "simulations parameters"]:
    """Ranks of the truths among the draws of agents that have played."""
    keep_compiled_programs()
    state, keys, many = play_many(testbed, policy, rounds, seeds)
    args = (many, keys, state, jnp.asarray(rounds + 1))
    draws = np.asarray(compiled(ranker, *args)[0](*args))
    return (draws < _truths(testbed, seeds)).sum(axis=0).T


def _truths(testbed: Testbed, seeds: list[int]) -> Float[np.ndarray, "parameters seeds"]:
    """The true parameters of these seeds, as `engine.environment` draws them."""
    keys = seed_keys(seed_array(seeds), ENVIRONMENT)
    truths = jax.vmap(lambda key: testbed.truth(testbed.init(jax.random.fold_in(key, 0))))(keys)
    return np.asarray(truths).reshape(len(seeds), -1).T
