"""Measures that are distances, which are positive even for exact draws.

What exact draws would show comes from flipping the signs of chains' deviations at random. The test
averages one half of the chains with the signs that the other half gives.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import special

from feelgood.core.spec import Spec
from feelgood.posterior.averages import mean_squares, t_test
from feelgood.posterior.laws import Law, choice_shares
from feelgood.posterior.measure_rows import MeasureRow

#: Directions and grid of the sliced Wasserstein distance.
DIRECTIONS, GRID = 16, np.linspace(-4.0, 4.0, 33)


def _distance(
    name: str,
    arm: int | None,
    by_chain: Float[np.ndarray, "chains *rest"],
    signs: Float[np.ndarray, "flips chains"],
    noise: float,
    distance: Callable[[np.ndarray], np.ndarray],
    variance: Callable[[np.ndarray], float] = lambda signs: 0.0,
) -> MeasureRow:
    """`distance` of the mean deviation, and of its sign-flipped repetitions.

    `variance` is the least that a chain's deviations have, added up with such signs.
    """
    chains = len(by_chain)
    mean = by_chain.mean(axis=0)
    value = float(distance(mean[None])[0])
    scale = noise / np.sqrt(chains * (chains - 1.0))
    flipped = np.tensordot(signs * scale, by_chain - mean, axes=1)
    exact = distance(flipped)
    expected, error = float(exact.mean()), float(exact.std(ddof=1))
    return MeasureRow(name, arm, value, expected, error, _split_test(by_chain, noise, variance))


def _split_test(
    by_chain: Float[np.ndarray, "chains *rest"],
    noise: float,
    variance: Callable[[np.ndarray], float],
) -> float:
    """The p-value of deviations whose mean is 0 for exact draws, whatever their joint law.

    One half of the chains gives the signs of the mean deviation. The other half's deviations, with
    these signs, add up to an average that is 0 for exact draws, and that is tested. Then the other
    way round; the smaller of both counts twice.
    """
    flat = by_chain.reshape(len(by_chain), -1)
    halves = (flat[::2], flat[1::2])
    tails = []
    for guide, tested in (halves, halves[::-1]):
        signs = np.sign(guide.mean(axis=0))
        found = tested @ signs
        least = variance(signs.reshape(by_chain.shape[1:]))
        error = float(np.sqrt(max(found.var(ddof=1), least) / len(found))) * noise
        both = t_test(float(found.mean()), error, len(found))
        tails.append(0.5 * both if found.mean() > 0.0 else 1.0)
    return min(1.0, 2.0 * min(tails))


def bias_row(
    arm: int | None,
    means: Float[np.ndarray, "chains dim"],
    signs: np.ndarray,
    noise: float,
    rounding: Float[np.ndarray, " dim"],
) -> MeasureRow:
    """Root mean square over coordinates; each coordinate is tested alone, which sees more."""
    chains, dim = means.shape
    row = _distance(
        "bias", arm, means, signs, noise, lambda offset: np.sqrt((offset**2).mean(axis=-1))
    )
    errors = means.std(axis=0, ddof=1) / np.sqrt(chains) * noise
    offsets = zip(means.mean(axis=0), errors, rounding, strict=True)
    tails = [t_test(offset, error, chains, known) for offset, error, known in offsets]
    return row._replace(p_value=min(1.0, dim * min(tails)))


def wasserstein_row(
    arm: int | None,
    white: Float[np.ndarray, "chains draws blocks dim"],
    factor: Float[np.ndarray, "blocks dim dim"],
    signs: np.ndarray,
    noise: float,
) -> MeasureRow:
    """‖m − μ‖² + tr(S + Σ − 2(Σ^½ S Σ^½)^½), in the parameters' own units, summed over blocks."""
    eye = np.eye(white.shape[-1])
    offsets = np.concatenate([white.mean(axis=1)[:, :, None], mean_squares(white) - eye], axis=2)
    inner = np.swapaxes(factor, 1, 2) @ factor

    def distance(offset: np.ndarray) -> np.ndarray:
        mean, excess = offset[:, :, 0], offset[:, :, 1:]
        covariance = eye + excess - mean[..., :, None] * mean[..., None, :]
        roots = np.linalg.eigvalsh(inner @ covariance @ inner)
        middle = np.sqrt(np.maximum(roots, 0.0)).sum(axis=-1)
        traces = np.einsum("bij,nbji->nb", inner, eye + covariance)
        moved = np.einsum("bij,nbi,nbj->nb", inner, mean, mean)
        return np.maximum(moved + traces - 2.0 * middle, 0.0).sum(axis=-1)

    # Not tested: what it is made of, means and variances, is, and with exact tests.
    row = _distance("wasserstein2", arm, offsets, signs, noise, distance)
    return row._replace(p_value=None)


def _standardised(white: Float[np.ndarray, "*many blocks dim"]) -> np.ndarray:
    """Draws with the mean and covariance of each block removed."""
    flat = white.reshape(-1, *white.shape[-2:])
    centred = flat - flat.mean(axis=0)
    covariance = np.einsum("nbi,nbj->bij", centred, centred, optimize=True) / (len(flat) - 1.0)
    inverse = np.linalg.inv(np.linalg.cholesky(covariance + 1e-12 * np.eye(flat.shape[-1])))
    return np.einsum("bij,nbj->nbi", inverse, centred, optimize=True).reshape(white.shape)


def _below(values: Float[np.ndarray, "*many draws blocks directions"]) -> np.ndarray:
    """The distribution function on the grid, [*many, blocks, directions, grid]."""
    ordered = np.moveaxis(values, -3, -1)
    return (ordered[..., None, :] <= GRID[:, None]).mean(axis=-1)


def shape_row(
    arm: int | None,
    white: Float[np.ndarray, "chains draws blocks dim"],
    law: Law,
    signs: np.ndarray,
    noise: float,
    seed: int,
) -> MeasureRow:
    """∫ |F − F_exact| along random directions, of draws with mean 0 and covariance I."""
    generator = np.random.default_rng([seed, 4])
    directions = generator.standard_normal((white.shape[-1], DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    exact: Any = special.ndtr(GRID)
    if law.draws is not None:
        exact = _below(_standardised(law.whiten(law.draws)) @ directions)
    along = _standardised(white) @ directions
    offsets = _below(along) - exact
    # All chains together have mean 0 and variance 1 along every direction; a single chain has not.
    # Take out what that does to its distribution function, to first order (Durbin 1973).
    density = np.exp(-0.5 * GRID**2) / np.sqrt(2.0 * np.pi)
    means, squares = along.mean(axis=1)[..., None], (along**2).mean(axis=1)[..., None]
    offsets += density * (means + 0.5 * GRID * (squares - 1.0))
    spacing = GRID[1] - GRID[0]
    return _distance(
        "shape",
        arm,
        offsets,
        signs,
        noise,
        lambda offset: spacing * np.abs(offset).sum(axis=-1).mean(axis=(-2, -1)),
    )


def choice_row(
    draws: np.ndarray,
    law: Law,
    spec: Spec,
    contexts: np.ndarray,
    signs: np.ndarray,
    noise: float,
    seed: int,
) -> MeasureRow:
    """½ Σ_a |p(a) − p_exact(a)|, on average over contexts."""
    exact = law.choices(spec, contexts, seed)
    offsets = choice_shares(spec, draws, contexts) - exact

    def variance(signs: Float[np.ndarray, "many arms"]) -> float:
        """The variance for independent draws and contexts; similar contexts have more."""
        sums = (exact * signs**2).sum(axis=-1) - (exact * signs).sum(axis=-1) ** 2
        return float(sums.sum() / draws.shape[1])

    return _distance(
        "choice",
        None,
        offsets,
        signs,
        noise,
        lambda offset: 0.5 * np.abs(offset).sum(axis=-1).mean(axis=-1),
        variance,
    )
