"""The measures along a run: every chain of a running group against its own exact posterior.

The engine has one chain per seed and setting, so Monte Carlo errors come from batches of a
chain's repeated draws in place of parallel chains. The state is not changed: the run goes on as if
nothing had been measured.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int

from feelgood.core.arguments import parse_whole
from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import Policy
from feelgood.core.spec import Spec
from feelgood.core.testbed import Testbed
from feelgood.engine.compiling import BRIEFLY, compiled, in_own_precision
from feelgood.engine.loop import repeated_draws
from feelgood.engine.results import PosteriorAlong
from feelgood.engine.simulation import Outcome
from feelgood.numerics.keys import AnyKey, fold_in
from feelgood.posterior.chains import draws_linear_parameters
from feelgood.posterior.draw_comparison import fresh_contexts
from feelgood.posterior.laws import Moments, exact_posterior, require_normal
from feelgood.posterior.matched_settings import PRECISION, has_truth, noise_of
from feelgood.posterior.measure_rows import MEASURES, MeasureRow
from feelgood.posterior.measures import measure
from feelgood.targets.sums import Stats

#: Batches of a chain's draws, and draws per batch.
BATCHES, BATCH = 20, 10
#: Fresh contexts on which the choice of arms is compared: fewer than at the end of a run.
CONTEXTS = 64
#: Keys of measuring are those of rounds from here on, which no run reaches.
AFTER_ALL_ROUNDS = 2**30
#: What is kept of a row, and how the engine names it: `bias`, `bias.expected`, `bias.error`.
PARTS = {"": "value", ".expected": "expected", ".error": "error"}


class _Redrawer(eqx.Module):
    """Repeated draws; a module, so that equal ones share their program."""

    draws: int = eqx.field(static=True)
    spec: Spec = eqx.field(static=True)

    def __call__(
        self, policy: Policy, keys: AnyKey, state: Any, t: Int[Array, ""]
    ) -> Float[Array, "draws parameters *lanes"]:
        own = fold_in(keys, t + AFTER_ALL_ROUNDS)
        return repeated_draws(policy, policy.needs(self.spec), own, state, self.draws, 0)[0]


def moments_of(seen: Stats) -> Moments:
    """What the chains have seen, with the chains as a leading axis: [chains, blocks, …]."""
    gram, moment = (np.asarray(sums, np.float64) for sums in seen)
    gram, moment = gram.reshape(*gram.shape[:3], -1), moment.reshape(*moment.shape[:2], -1)
    return Moments(
        gram=np.moveaxis(gram, (3, 2), (0, 1)), moment=np.moveaxis(moment, (2, 1), (0, 1))
    )


@in_own_precision
def measure_state(
    policy: Policy,
    keys: AnyKey,
    state: Any,
    seen: Stats,
    spec: Spec,
    t: int,
    *,
    noise: float,
    precision: float = PRECISION,
    contexts: np.ndarray | None = None,
    batches: int = BATCHES,
    batch: int = BATCH,
) -> list[list[MeasureRow]]:
    """Measures of all arms together after round `t`: one list per chain, empty if it diverged.

    `state`, `seen` and `keys` are those of a running group (see `engine.loop.Playing`);
    draws use random numbers of their own.
    """
    args = (policy, keys, state, np.int32(t))
    drawn = np.asarray(_redrawer(batches * batch, spec, *args)[0](*args), np.float64)
    drawn = drawn.reshape(batches, batch, spec.dim, spec.blocks, -1)
    drawn = np.moveaxis(drawn, (4, 0, 1, 3, 2), (0, 1, 2, 3, 4))
    moments = moments_of(seen)
    return [
        measure(
            own,
            exact_posterior(Moments(moments.gram[i], moments.moment[i]), noise, precision),
            spec,
            contexts,
            seed=t,
            by_arm=False,
        )
        for i, own in enumerate(drawn)
    ]


def _redrawer(draws: int, spec: Spec, *args: Any) -> tuple[Any, float]:
    """The program that draws, and the seconds that its compilation took."""
    return compiled(_Redrawer(draws=draws, spec=spec), *args, effort=BRIEFLY)


@dataclasses.dataclass(frozen=True)
class PosteriorWatch:
    """Measures the chains of a run every so many rounds; see `engine.watching.Watch`."""

    every: int
    spec: Spec
    noise: float
    contexts: Float[np.ndarray, "many *context"]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the values that `measure` returns."""
        return tuple(name + part for name in MEASURES for part in PARTS)

    def measure(
        self, policy: Policy, keys: AnyKey, state: Any, seen: Stats, t: int
    ) -> tuple[Float[np.ndarray, "names chains"], float]:
        """All measures of every chain after round `t`, and the seconds that compiling took."""
        _, seconds = _redrawer(BATCHES * BATCH, self.spec, policy, keys, state, np.int32(t))
        chains = measure_state(
            policy, keys, state, seen, self.spec, t, noise=self.noise, contexts=self.contexts
        )
        out = np.full((len(MEASURES), len(PARTS), len(chains)), np.nan)
        where = {name: i for i, name in enumerate(MEASURES)}
        for chain, rows in enumerate(chains):
            for row in rows:
                out[where[row.measure], :, chain] = [getattr(row, p) for p in PARTS.values()]
        return out.reshape(-1, len(chains)), seconds

    def collect(
        self, outcome: Outcome, setting: int, chains: slice = slice(None)
    ) -> PosteriorAlong | None:
        """What the engine recorded of one setting's chains, by measure; None: nothing."""
        if not outcome.along:
            return None
        parts = {
            kept: {name: outcome.along[name + part][setting, chains] for name in MEASURES}
            for part, kept in PARTS.items()
        }
        return PosteriorAlong(rounds=outcome.along_rounds, **parts)


def posterior_watch(every: int, name: str, testbed: Testbed) -> PosteriorWatch:
    """What measures runs on this testbed every so many rounds."""
    noise = require_linear(name, testbed)
    return PosteriorWatch(every, testbed.spec, noise, fresh_contexts(testbed, 0, CONTEXTS))


# ---- what can be measured -------------------------------------------------------------------


def check_every(every: Any, rounds: int) -> int:
    """A number of rounds between two measurements that makes sense."""
    return parse_whole("posterior_every", every, 1, rounds)


def require_linear(name: str, testbed: Testbed) -> float:
    """The noise of a linear-Gaussian testbed; any other is refused."""
    if not has_truth(testbed) or testbed.spec.rewards != "squared":
        raise FeelgoodError(
            f"{name} is not linear with Gaussian noise, so there is no exact posterior to measure "
            "against: use linear-N or planted, or leave posterior_every out."
        )
    return noise_of(name, testbed)


def measurable(policy: Policy, testbed: str, problem: Testbed) -> bool:
    """Whether an agent's posterior can be measured: it must draw parameters of a linear model.

    A testbed or a loss without an exact posterior is refused.
    """
    require_linear(testbed, problem)
    if not draws_linear_parameters(policy, problem.spec):
        return False
    require_normal(policy, problem.spec)
    return True


def require_some(agents: Iterable[str], measured: bool) -> None:
    """Refuse a run of which nothing can be measured."""
    if not measured:
        named = ", ".join(dict.fromkeys(agents))
        raise FeelgoodError(
            f"no agent of this run ({named}) draws parameters of a linear model, so there is no "
            "posterior to measure: add lints or lmcts, or leave posterior_every out."
        )
