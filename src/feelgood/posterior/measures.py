"""How far draws are from a law: one row a measure and arm, each with its Monte Carlo error.

Chains are independent of each other and alike, so whatever is averaged over the draws of one chain
is an independent, identically distributed number a chain, however correlated the draws within it.
All errors come from the spread of these numbers over chains; none from an assumed sample size.

Draws are whitened by the law, in whose units it has mean 0 and covariance I. Two kinds of measure:

- *averages* (trace, coverage, variance along a direction): the mean over chains, its standard
  error, and a t-test of the value that the law has;
- *distances* (bias, W₂², shape, choice) are positive even for exact draws. What exact draws would
  show is found by flipping the sign of every chain's deviation from the mean of all chains at
  random (a wild bootstrap): that keeps the noise and removes the offset. They are tested by
  t-tests too, of averages that are 0 for exact draws: half of the chains say where to look, and
  the other half is looked at there.

Nothing is evidence that could not be otherwise. An offset that single precision cannot resolve
(`Law.rounding`) is left out of the tests. A share is taken to be no surer than that of as many
independent draws: chains that agree on 0 say nothing of an arm with probability 10⁻¹⁰⁰.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import special

from feelgood.core.errors import FeelgoodError
from feelgood.core.spec import Spec
from feelgood.posterior.laws import Law, choice_shares
from feelgood.stats.effective_sample_size import effective_draws
from feelgood.stats.split_rhat import split_rhat

#: Family-wise false-alarm rate of a verdict.
LEVEL = 1e-3
#: Above this split-R̂ chains are said not to have mixed, if their draws are also worth less than
#: this share of independent ones: R̂ of a few independent draws a chain is noisy.
MIXED, WORTH = 1.1, 0.25
#: Sign flips that show what exact draws would give.
FLIPS = 200
#: Directions and grid of the sliced Wasserstein distance.
DIRECTIONS, GRID = 16, np.linspace(-4.0, 4.0, 33)
#: Above so many standard deviations of rounding nothing is called exact.
COARSE = 1.0
#: Offsets below this are rounding errors of these computations themselves: all units are near 1.
NOTHING = 1e-12
#: Fewest chains from which a spread over chains says something.
FEWEST_CHAINS = 10

#: What each measure is, in words; the order of tables.
MEASURES = {
    "bias": "offset of the mean, root mean square over coordinates, in standard deviations",
    "trace": "mean variance ratio: trace of the whitened covariance / dimension",
    "log_determinant": "log-determinant of the whitened covariance",
    "largest": "variance ratio along the widest direction of other chains",
    "smallest": "variance ratio along the narrowest direction of other chains",
    "wasserstein2": "squared 2-Wasserstein distance of the normal laws with these moments",
    "shape": "sliced 1-Wasserstein distance after removing mean and covariance",
    "cover50": "share of draws inside the exact 50 % credible set",
    "cover90": "share of draws inside the exact 90 % credible set",
    "choice": "total variation of the chosen arm, mean over fresh contexts",
    "ess": "effective number of draws of the slowest coordinate",
    "rhat": "largest split-R̂ of any coordinate",
}


class Row(NamedTuple):
    """One measure of one arm (`arm` is None for all arms together)."""

    measure: str
    arm: int | None
    value: float
    #: What exact draws, as many and as correlated, would show.
    expected: float
    #: Monte Carlo standard error.
    error: float
    #: Of the test that the draws are exact; None for what is not tested.
    p_value: float | None = None


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Whether draws are exact within Monte Carlo error, all measures together.

    "undecided" says that nothing wrong was seen by chains that have not mixed, which see little.
    """

    status: Literal["exact", "biased", "undecided", "diverged"]
    level: float
    tests: int
    worst: Row | None
    sentence: str

    @property
    def exact(self) -> bool:
        """Exact within Monte Carlo error, and the chains have mixed."""
        return self.status == "exact"


def measure(
    draws: Float[np.ndarray, "chains draws blocks dim"],
    law: Law,
    spec: Spec,
    contexts: Float[np.ndarray, "many *context"] | None = None,
    seed: int = 0,
    by_arm: bool = True,
) -> list[Row]:
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
    rows: list[Row] = []
    for arm in [*arms, None]:
        own = slice(None) if arm is None else slice(arm, arm + 1)
        rows += _of_blocks(arm, white[:, :, own], law.only(own), signs, noise, seed)
    if contexts is not None:
        rows.append(_choice(draws, law, spec, contexts, signs, noise, seed))
    sizes, agreement = effective_draws(draws), split_rhat(draws)
    for arm in [*arms, None]:
        own = slice(None) if arm is None else slice(arm, arm + 1)
        rows.append(Row("ess", arm, float(sizes[own].min()), float(chains * count), np.nan))
        rows.append(Row("rhat", arm, float(agreement[own].max()), 1.0, np.nan))
    order = list(MEASURES)
    return sorted(rows, key=lambda row: order.index(row.measure))


def judge(rows: Sequence[Row], level: float = LEVEL, rounding: float = 0.0) -> Verdict:
    """Exact within Monte Carlo error, or biased and by how much (Bonferroni over all tests).

    `rounding` says how well single precision tells the law's mean, in standard deviations.
    """
    if not rows:
        return Verdict("diverged", level, 0, None, "diverged: some draws are not finite.")
    tested = [row for row in rows if row.p_value is not None]
    worst = min(tested, key=lambda row: row.p_value or 0.0)
    assert worst.p_value is not None
    overall = {row.measure: row for row in rows if row.arm is None}
    agreement, size = overall["rhat"].value, overall["ess"]
    mixed = agreement <= MIXED or size.value >= WORTH * size.expected
    unmixed = f"the chains have not mixed (R̂ = {agreement:.3g})"
    if worst.p_value * len(tested) >= level:
        if not mixed:
            sentence = f"undecided: no bias seen, but {unmixed}; take more steps."
            return Verdict("undecided", level, len(tested), worst, sentence)
        if rounding > COARSE:
            sentence = (
                f"undecided: no bias seen, but single precision tells this law to {rounding:.2g} "
                "standard deviations only; use a testbed with more noise."
            )
            return Verdict("undecided", level, len(tested), worst, sentence)
        sentence = f"exact within Monte Carlo error ({len(tested)} tests, level {level:g})."
        return Verdict("exact", level, len(tested), worst, sentence)
    trace, bias = overall["trace"], overall["bias"]
    parts = [f"variance × {trace.value:.3f} ± {trace.error:.3f}"]
    parts.append(f"mean off by {_excess(bias):.2g} ± {bias.error:.2g} sd")
    if "choice" in overall:
        choice = overall["choice"]
        parts.append(f"arm choice off by {_excess(choice):.2g} ± {choice.error:.2g}")
    where = "all arms" if worst.arm is None else f"arm {worst.arm}"
    sentence = f"biased: {', '.join(parts)} (clearest: {worst.measure}, {where})"
    sentence += "." if mixed else f"; {unmixed}."
    return Verdict("biased", level, len(tested), worst, sentence)


def _excess(row: Row) -> float:
    """A distance less what exact draws would show; squares add, not distances."""
    return float(np.sqrt(max(0.0, row.value**2 - row.expected**2)))


# ---- averages -------------------------------------------------------------------------------


def _average(
    name: str,
    arm: int | None,
    by_chain: Float[np.ndarray, " chains"],
    expected: float,
    noise: float,
    rounding: float,
    variance: float = 0.0,
) -> Row:
    """The mean over chains with a t-test of its expected value.

    `variance` is the least that a chain's value has, where it is known.
    """
    chains = len(by_chain)
    value = float(by_chain.mean())
    error = float(np.sqrt(max(by_chain.var(ddof=1), variance) / chains)) * noise
    p_value = _t_test(value - expected, error, chains, rounding)
    return Row(name, arm, value, expected, error, p_value)


def _ratio(
    name: str,
    arm: int | None,
    by_chain: Float[np.ndarray, " chains"],
    noise: float,
    rounding: float,
) -> Row:
    """As `_average`, tested on a logarithmic scale: there a mean of few squares is not skew."""
    row = _average(name, arm, by_chain, 1.0, noise, rounding)
    if row.value <= 0.0:
        return row
    error = row.error / row.value
    p_value = _t_test(np.log(row.value), error, len(by_chain), np.log1p(rounding))
    return row._replace(p_value=p_value)


def _t_test(offset: float, error: float, chains: int, rounding: float = 0.0) -> float:
    """Of an offset that is 0 for exact draws, or up to `rounding` for want of digits."""
    offset = abs(offset) - rounding
    if offset <= NOTHING:
        return 1.0
    if error == 0.0:
        return 0.0
    return float(2.0 * special.stdtr(chains - 1, -offset / error))


def _of_blocks(
    arm: int | None,
    white: Float[np.ndarray, "chains draws blocks dim"],
    law: Law,
    signs: np.ndarray,
    noise: float,
    seed: int,
) -> list[Row]:
    """All measures of one arm, or of all together: averages over arms, or sums where they add."""
    chains, count, blocks, dim = white.shape
    radius = np.sum(white**2, axis=-1)
    rounding = np.zeros((blocks, dim)) if law.rounding is None else law.rounding
    # An offset δ of the mean adds |δ|² to mean squares.
    squared = np.sum(rounding**2, axis=-1)
    rows = [
        _bias(arm, white.mean(axis=1).reshape(chains, -1), signs, noise, rounding.reshape(-1)),
        _average("trace", arm, radius.mean(axis=(1, 2)) / dim, 1.0, noise, squared.mean() / dim),
        _log_determinant(arm, white, noise),
    ]
    for name, side in (("largest", -1), ("smallest", 0)):
        rows.append(_ratio(name, arm, _along(white, side), noise, squared.max()))
    rows.append(_wasserstein(arm, white, law.factor, signs, noise))
    rows.append(_shape(arm, white, law, signs, noise, seed))
    for name, share in (("cover50", 0.5), ("cover90", 0.9)):
        limits = np.array([_radius(law, block, share) for block in range(blocks)])
        inside = (radius < limits).mean(axis=(1, 2))
        # The offset takes |δ|² times a density of χ² out of the set, which is below ¼.
        lost, least = 0.25 * squared.mean(), share * (1.0 - share) / (count * blocks)
        rows.append(_average(name, arm, inside, share, noise, lost, least))
    return rows


def _squares(white: Float[np.ndarray, "chains draws blocks dim"]) -> np.ndarray:
    """Mean of z zᵀ of every chain and block."""
    return np.einsum("cnbi,cnbj->cbij", white, white, optimize=True) / white.shape[1]


def _along(white: Float[np.ndarray, "chains draws blocks dim"], side: int) -> np.ndarray:
    """Mean squares of every second chain along the widest (−1) or narrowest (0) direction.

    The direction comes from the other chains, so exact draws give 1 on average, with an error that
    the chains measured show: the extreme eigenvalues of one sample covariance have neither.
    """
    squares = _squares(white)
    values, vectors = np.linalg.eigh(squares[::2].mean(axis=0))
    block = values[:, side].argmax() if side else values[:, side].argmin()
    direction = vectors[block, :, side]
    return direction @ squares[1::2, block] @ direction


def _log_determinant(
    arm: int | None, white: Float[np.ndarray, "chains draws blocks dim"], noise: float
) -> Row:
    """With its bias removed and its error by the jackknife over chains."""
    chains, count = white.shape[:2]
    total = float(chains * count)
    sums, squares = white.sum(axis=1), count * _squares(white)

    def value(total: float, mean: np.ndarray, square: np.ndarray) -> Any:
        covariance = square / total - mean[..., :, None] * mean[..., None, :]
        return np.linalg.slogdet(covariance)[1].sum(axis=-1)

    whole = value(total, sums.sum(axis=0) / total, squares.sum(axis=0))
    rest = total - count
    without = value(rest, (sums.sum(axis=0) - sums) / rest, squares.sum(axis=0) - squares)
    with np.errstate(invalid="ignore"):  # chains that never move have determinant 0
        corrected = float(chains * whole - (chains - 1) * without.mean())
        error = float(np.sqrt((chains - 1.0) / chains * np.sum((without - without.mean()) ** 2)))
    if not np.isfinite(corrected) or not np.isfinite(error):
        return Row("log_determinant", arm, -np.inf, 0.0, np.nan, 0.0)
    error *= noise
    p_value = _t_test(corrected, error, chains)
    return Row("log_determinant", arm, corrected, 0.0, error, p_value)


# ---- distances ------------------------------------------------------------------------------


def _distance(
    name: str,
    arm: int | None,
    by_chain: Float[np.ndarray, "chains *rest"],
    signs: Float[np.ndarray, "flips chains"],
    noise: float,
    distance: Callable[[np.ndarray], np.ndarray],
    variance: Callable[[np.ndarray], float] = lambda signs: 0.0,
) -> Row:
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
    return Row(name, arm, value, expected, error, _split_test(by_chain, noise, variance))


def _split_test(
    by_chain: Float[np.ndarray, "chains *rest"],
    noise: float,
    variance: Callable[[np.ndarray], float],
) -> float:
    """Of deviations that are 0 on average over chains, whatever their joint law.

    One half of the chains gives the signs of the mean deviation; with these, the other half's
    absolute deviations add up to an average that is 0 for exact draws, and is tested. Then the
    other way round; the smaller of both counts twice.
    """
    flat = by_chain.reshape(len(by_chain), -1)
    halves = (flat[::2], flat[1::2])
    tails = []
    for guide, tested in (halves, halves[::-1]):
        signs = np.sign(guide.mean(axis=0))
        found = tested @ signs
        least = variance(signs.reshape(by_chain.shape[1:]))
        error = float(np.sqrt(max(found.var(ddof=1), least) / len(found))) * noise
        both = _t_test(float(found.mean()), error, len(found))
        tails.append(0.5 * both if found.mean() > 0.0 else 1.0)
    return min(1.0, 2.0 * min(tails))


def _bias(
    arm: int | None,
    means: Float[np.ndarray, "chains dim"],
    signs: np.ndarray,
    noise: float,
    rounding: Float[np.ndarray, " dim"],
) -> Row:
    """Root mean square over coordinates; tested coordinate by coordinate, which sees more."""
    chains, dim = means.shape
    row = _distance(
        "bias", arm, means, signs, noise, lambda offset: np.sqrt((offset**2).mean(axis=-1))
    )
    errors = means.std(axis=0, ddof=1) / np.sqrt(chains) * noise
    offsets = zip(means.mean(axis=0), errors, rounding, strict=True)
    tails = [_t_test(offset, error, chains, known) for offset, error, known in offsets]
    return row._replace(p_value=min(1.0, dim * min(tails)))


def _wasserstein(
    arm: int | None,
    white: Float[np.ndarray, "chains draws blocks dim"],
    factor: Float[np.ndarray, "blocks dim dim"],
    signs: np.ndarray,
    noise: float,
) -> Row:
    """‖m − μ‖² + tr(S + Σ − 2(Σ^½ S Σ^½)^½), in the parameters' own units, summed over blocks."""
    eye = np.eye(white.shape[-1])
    offsets = np.concatenate([white.mean(axis=1)[:, :, None], _squares(white) - eye], axis=2)
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


def _shape(
    arm: int | None,
    white: Float[np.ndarray, "chains draws blocks dim"],
    law: Law,
    signs: np.ndarray,
    noise: float,
    seed: int,
) -> Row:
    """∫ |F − F_exact| along random directions, of draws with mean 0 and covariance I."""
    generator = np.random.default_rng([seed, 4])
    directions = generator.standard_normal((white.shape[-1], DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    exact: Any = special.ndtr(GRID)
    if law.draws is not None:
        exact = _below(_standardised(law.whiten(law.draws)) @ directions)
    along = _standardised(white) @ directions
    offsets = _below(along) - exact
    # All chains together have mean 0 and variance 1 along every direction, each alone has not: take
    # out what that does to its distribution function, to first order (Durbin 1973).
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


def _choice(
    draws: np.ndarray,
    law: Law,
    spec: Spec,
    contexts: np.ndarray,
    signs: np.ndarray,
    noise: float,
    seed: int,
) -> Row:
    """½ Σ_a |p(a) − p_exact(a)|, on average over contexts."""
    exact = law.choices(spec, contexts, seed)
    offsets = choice_shares(spec, draws, contexts) - exact

    def variance(signs: Float[np.ndarray, "many arms"]) -> float:
        """Of independent draws, were contexts independent too; alike ones have more."""
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


def _radius(law: Law, block: int, share: float) -> float:
    """The squared radius of the credible set that holds `share` of the law's mass."""
    if law.draws is None:
        return float(2.0 * special.gammaincinv(0.5 * law.mean.shape[-1], share))
    return float(np.quantile(np.sum(law.whiten(law.draws)[:, block] ** 2, axis=-1), share))
