"""Which of several scores with common parameters is the largest: quasi-Monte Carlo.

Scores are mean + root z. Arm a is the best where (root_b − root_a) z < mean_a − mean_b for all
others b: the probability of a cone. Genz's transformation draws one normal after the other, each
within the bounds that the ones before leave it, and multiplies the probabilities of these bounds.
So every point counts, and tiny probabilities have a small relative error too. With Student-t
scores v = √(χ²/freedom) is drawn first, and the right sides are multiplied by it.

Genz, "Numerical computation of multivariate normal probabilities", J. Comput. Graph. Statist. 1992;
Genz and Kwong, "Numerical evaluation of singular multivariate normal distributions", J. Stat.
Comput. Simul. 2000; Genz and Bretz, "Computation of multivariate normal and t probabilities", 2009.
"""

import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy import special

#: Independent scrambles of Sobol's points, whose spread is the error, and points of each.
SCRAMBLES, POINTS = 8, 512
#: Fewer points, but at least the second number, where arms² · normals · points would exceed this.
_MOST_WORK, _FEWEST_POINTS = 1e8, 32
#: What is left of a row below this share of its length is a rounding error.
_NOTHING = 1e-12


def shared_choices(
    mean: Float[np.ndarray, " arms"],
    root: Float[np.ndarray, "arms normals"],
    freedom: float | None = None,
    points: int = POINTS,
) -> tuple[Float[np.ndarray, " arms"], Float[np.ndarray, " arms"]]:
    """The probability that each arm has the largest score, and its standard error.

    With two arms, or where all differences of scores are multiples of one normal, it is exact. Of
    several equal scores the first is the largest. The points are always the same ones, so the same
    law has the same answer. Each scramble's probabilities are divided by their sum.
    """
    shares = cone_shares(mean, root, freedom, points)
    shares = shares / shares.sum(axis=1, keepdims=True)
    error = np.zeros(len(mean))
    if len(shares) > 1:
        error = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
    return shares.mean(axis=0), error


def cone_shares(
    mean: Float[np.ndarray, " arms"],
    root: Float[np.ndarray, "arms normals"],
    freedom: float | None = None,
    points: int = POINTS,
) -> Float[np.ndarray, "scrambles arms"]:
    """Each arm's probability by each scramble; only one row where they are exact."""
    # What all arms have in common does not matter: with few arms, few normals are left.
    left, singular, _ = np.linalg.svd(root - root.mean(axis=0), full_matrices=False)
    large = singular > max(root.shape) * np.finfo(np.float64).eps * np.max(np.abs(root), initial=0)
    large[len(mean) - 1 :] = False  # but for rounding
    rank = int(large.sum())
    if rank == 0:
        return (np.arange(len(mean)) == np.argmax(mean)).astype(np.float64)[None]
    slim, mean = left[:, large] * (singular[large] / singular[0]), mean / singular[0]
    work = len(mean) ** 2 * rank * SCRAMBLES * points
    while work > _MOST_WORK and points > _FEWEST_POINTS:
        points, work = points // 2, work // 2
    uniforms = None if rank == 1 else _uniforms(rank if freedom is not None else rank - 1, points)
    shares = [_share(_Cone.of(mean, slim, arm), uniforms, freedom) for arm in range(len(mean))]
    return np.stack(shares, axis=1)


@functools.lru_cache(maxsize=4)
def _uniforms(dimensions: int, points: int) -> Float[np.ndarray, "scrambles points dimensions"]:
    """Sobol's points; to import them takes long, and few need them."""
    from scipy.stats import qmc

    scrambles = [
        qmc.Sobol(dimensions, rng=np.random.default_rng([dimensions, i])).random(points)
        for i in range(SCRAMBLES)
    ]
    return np.clip(np.stack(scrambles), 2.0**-54, 1.0 - 2.0**-53)


class _Cone(NamedTuple):
    """rows · z < right, with coordinates turned so that few rows depend on the first normals."""

    rows: Float[np.ndarray, "others rank"]
    right: Float[np.ndarray, " others"]
    #: The rows that bound each normal, given the ones before.
    bounding: list[np.ndarray]

    @classmethod
    def of(cls, mean: np.ndarray, slim: np.ndarray, arm: int) -> "_Cone | None":
        """The cone of an arm; None where it is empty."""
        others = np.arange(len(mean)) != arm
        rows, right = (slim - slim[arm])[others], (mean[arm] - mean)[others]
        length = np.linalg.norm(rows, axis=1)
        # An arm that always has the same distance from this one is below, above, or equal; then the
        # first of them is taken as the largest.
        same = length <= _NOTHING
        earlier = np.arange(len(mean))[others] < arm
        if np.any(same & ((right < 0.0) | (earlier & (right == 0.0)))):
            return None
        rows, right = rows[~same], right[~same]
        return _turned(rows, right, length[~same])


def _turned(rows: np.ndarray, right: np.ndarray, length: np.ndarray) -> _Cone:
    """The tightest bounds first: at each step the row least likely to hold, given the others."""
    rows, typical, bounding = rows.copy(), np.zeros(rows.shape[1]), []
    free = np.ones(len(rows), bool)
    for j in range(rows.shape[1]):
        rest = np.linalg.norm(rows[:, j:], axis=1)
        room = right - rows[:, :j] @ typical[:j]
        bound = np.where(free, room / np.where(free, rest, 1.0), np.inf)
        chosen = int(np.argmin(bound))
        if not free[chosen]:
            bounding.append(np.zeros(0, np.intp))
            continue
        mirror = rows[chosen, j:].copy()
        mirror[0] -= rest[chosen]
        if mirror @ mirror > 0.0:
            rows[:, j:] -= np.outer(rows[:, j:] @ mirror, (2.0 / (mirror @ mirror)) * mirror)
        # Rows of which nothing is left for later normals bound this one too.
        ends = free & (np.linalg.norm(rows[:, j + 1 :], axis=1) <= _NOTHING * length)
        ends[chosen] = True
        free &= ~ends
        bounding.append(np.flatnonzero(ends))
        # The mean of a normal below its bound, −φ/Φ.
        typical[j] = -np.sqrt(2.0 / np.pi) / special.erfcx(-bound[chosen] / np.sqrt(2.0))
    return _Cone(rows, right, bounding)


def _share(
    cone: _Cone | None,
    uniforms: Float[np.ndarray, "scrambles points d"] | None,
    freedom: float | None,
) -> Float[np.ndarray, " scrambles"]:
    """The probability of a cone, by each scramble."""
    if cone is None:
        return np.zeros(1 if uniforms is None else len(uniforms))
    if uniforms is None:
        low, high = _bounds(cone, 0, np.zeros((1, 0)), np.ones(1))
        if freedom is not None:  # the law of a normal over v is Student's
            low, high = special.stdtr(freedom, (low, high))
            return np.maximum(high - low, 0.0)
        return np.exp(_log_between(low, high)[0])
    flat = uniforms.reshape(-1, uniforms.shape[2])
    v = np.ones(len(flat))
    if freedom is not None:
        v = np.sqrt(special.gammaincinv(0.5 * freedom, flat[:, -1]) / (0.5 * freedom))
    rank = cone.rows.shape[1]
    z, log_share = np.zeros((len(flat), rank)), np.zeros(len(flat))
    for j in range(rank):
        low, high = _bounds(cone, j, z[:, :j], v)
        log_p, flipped, log_low = _log_between(low, high)
        log_share += log_p
        if j < rank - 1:
            inside = np.logaddexp(log_low, np.log(flat[:, j]) + log_p)
            drawn = special.ndtri_exp(np.minimum(inside, 0.0))
            z[:, j] = np.where(np.isfinite(drawn), np.where(flipped, -drawn, drawn), 0.0)
    return np.exp(log_share).reshape(uniforms.shape[:2]).mean(axis=1)


def _bounds(
    cone: _Cone, j: int, before: Float[np.ndarray, "n j"], v: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Between what the j-th normal may lie, given the ones before."""
    which = cone.bounding[j]
    slope = cone.rows[which, j]
    edges = (v[:, None] * cone.right[which] - before @ cone.rows[which, :j].T) / slope
    up = slope > 0.0
    return (
        np.max(edges[:, ~up], axis=1, initial=-np.inf),
        np.min(edges[:, up], axis=1, initial=np.inf),
    )


def _log_between(
    low: Float[np.ndarray, " n"], high: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " n"], Bool[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """log P(low < z < high); whether it was found for −z, and log Φ of the lower end then."""
    flipped = low > 0.0
    low, high = np.where(flipped, -high, low), np.where(flipped, -low, high)
    log_low, log_high = special.log_ndtr(low), special.log_ndtr(high)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p = log_high + np.log1p(-np.exp(np.minimum(log_low - log_high, 0.0)))
    return np.where(low < high, log_p, -np.inf), flipped, log_low
