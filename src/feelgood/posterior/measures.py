"""How far draws are from a law: one row per measure and arm, each with its Monte Carlo error.

Chains are independent of each other and alike. An average over the draws of one chain is therefore
one independent, identically distributed number per chain, however correlated these draws are. All
errors come from the spread of these numbers over chains; none from an assumed sample size.

Draws are whitened by the law, in whose units it has mean 0 and covariance I. Two kinds of measure:

- *averages* (trace, coverage, variance along a direction): the mean over chains, its standard
  error, and a t-test of the value that the law has;
- *distances* (bias, W₂², shape, choice) are positive even for exact draws. What exact draws would
  show is found by a wild bootstrap: the sign of every chain's deviation from the mean of all chains
  is flipped at random. That keeps the noise and removes the offset. They too are tested by t-tests,
  of averages that are 0 for exact draws. One half of the chains gives the signs with which the
  other half's deviations are averaged.

What rounding or too few draws could explain is no evidence. An offset that single precision cannot
resolve (`Law.rounding`) is left out of the tests. A share is taken to be no surer than that of as
many independent draws: chains that agree on 0 say nothing of an arm with probability 10⁻¹⁰⁰.
"""

import numpy as np
from jaxtyping import Float
from scipy import special

from feelgood.core.errors import FeelgoodError
from feelgood.core.spec import Spec
from feelgood.posterior.averages import (
    average_row,
    log_determinant_row,
    ratio_row,
    squares_along,
)
from feelgood.posterior.distances import bias_row, choice_row, shape_row, wasserstein_row
from feelgood.posterior.laws import Law
from feelgood.posterior.measure_rows import MEASURES, MeasureRow
from feelgood.stats.effective_sample_size import effective_draws
from feelgood.stats.split_rhat import split_rhat

#: Sign flips that show what exact draws would give.
FLIPS = 200
#: Fewest chains from which a spread over chains says something.
FEWEST_CHAINS = 10


def measure(
    draws: Float[np.ndarray, "chains draws blocks dim"],
    law: Law,
    spec: Spec,
    contexts: Float[np.ndarray, "many *context"] | None = None,
    seed: int = 0,
    by_arm: bool = True,
) -> list[MeasureRow]:
    """All measures of draws of parallel chains against a law.

    With `contexts`, fresh ones, also the probability of choosing each arm; without `by_arm` only
    the measures of all arms together. The chains must be independent of each other; use batches of
    one long chain only if they are much longer than its correlation time.
    """
    chains, count = draws.shape[:2]
    if chains < FEWEST_CHAINS:
        raise FeelgoodError(
            f"{chains} chains are too few for Monte Carlo errors: use at least {FEWEST_CHAINS}."
        )
    if not np.isfinite(draws).all():
        return []
    white = law.whiten(draws)
    generator = np.random.default_rng([seed, 3])
    signs = generator.choice([-1.0, 1.0], size=(FLIPS, chains))
    # The law's own error, where it is known by draws only.
    noise = float(np.sqrt(1.0 + chains * count / law.size))
    arms = range(draws.shape[2] if by_arm else 0)
    rows: list[MeasureRow] = []
    for arm in [*arms, None]:
        own = slice(None) if arm is None else slice(arm, arm + 1)
        rows += _of_blocks(arm, white[:, :, own], law.only(own), signs, noise, seed)
    if contexts is not None:
        rows.append(choice_row(draws, law, spec, contexts, signs, noise, seed))
    sizes, agreement = effective_draws(draws), split_rhat(draws)
    for arm in [*arms, None]:
        own = slice(None) if arm is None else slice(arm, arm + 1)
        rows.append(MeasureRow("ess", arm, float(sizes[own].min()), float(chains * count), np.nan))
        rows.append(MeasureRow("rhat", arm, float(agreement[own].max()), 1.0, np.nan))
    order = list(MEASURES)
    return sorted(rows, key=lambda row: order.index(row.measure))


def _of_blocks(
    arm: int | None,
    white: Float[np.ndarray, "chains draws blocks dim"],
    law: Law,
    signs: np.ndarray,
    noise: float,
    seed: int,
) -> list[MeasureRow]:
    """All measures of one arm, or of all together: averages over arms, or sums where they add."""
    chains, count, blocks, dim = white.shape
    radius = np.sum(white**2, axis=-1)
    rounding = np.zeros((blocks, dim)) if law.rounding is None else law.rounding
    # An offset δ of the mean adds |δ|² to mean squares.
    squared = np.sum(rounding**2, axis=-1)
    rows = [
        bias_row(arm, white.mean(axis=1).reshape(chains, -1), signs, noise, rounding.reshape(-1)),
        average_row("trace", arm, radius.mean(axis=(1, 2)) / dim, 1.0, noise, squared.mean() / dim),
        log_determinant_row(arm, white, noise),
    ]
    for name, side in (("largest", -1), ("smallest", 0)):
        rows.append(ratio_row(name, arm, squares_along(white, side), noise, squared.max()))
    rows.append(wasserstein_row(arm, white, law.factor, signs, noise))
    rows.append(shape_row(arm, white, law, signs, noise, seed))
    for name, share in (("cover50", 0.5), ("cover90", 0.9)):
        limits = np.array([_radius(law, block, share) for block in range(blocks)])
        inside = (radius < limits).mean(axis=(1, 2))
        # The offset takes |δ|² times a density of χ² out of the set, which is below ¼.
        lost, least = 0.25 * squared.mean(), share * (1.0 - share) / (count * blocks)
        rows.append(average_row(name, arm, inside, share, noise, lost, least))
    return rows


def _radius(law: Law, block: int, share: float) -> float:
    """The squared radius of the credible set that holds `share` of the law's mass."""
    if law.draws is None:
        return float(2.0 * special.gammaincinv(0.5 * law.mean.shape[-1], share))
    return float(np.quantile(np.sum(law.whiten(law.draws)[:, block] ** 2, axis=-1), share))
