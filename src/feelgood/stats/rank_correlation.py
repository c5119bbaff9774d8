"""Do two things order agents alike? Rank correlations with bootstrap intervals."""

import dataclasses

import numpy as np
from jaxtyping import Float

#: Below this many agents an order says too little: four agree by chance once in 24 times.
FEWEST_AGENTS = 5
CORRELATION_RESAMPLES = 1_000

PerAgent = Float[np.ndarray, "agents seeds"]


@dataclasses.dataclass(frozen=True)
class RankCorrelation:
    """Spearman's ρ and Kendall's τ of agents' means, with intervals; NaN: too few agents."""

    agents: int
    level: float
    spearman: float
    spearman_interval: tuple[float, float]
    kendall: float
    kendall_interval: tuple[float, float]

    @property
    def enough(self) -> bool:
        """Whether there are agents enough for a number."""
        return self.agents >= FEWEST_AGENTS

    @property
    def spearman_text(self) -> str:
        """Spearman's ρ with its interval."""
        return _shown(self.spearman, self.spearman_interval)

    @property
    def kendall_text(self) -> str:
        """Kendall's τ with its interval."""
        return _shown(self.kendall, self.kendall_interval)

    @property
    def sentence(self) -> str:
        """In words, with the intervals; or why there is no number."""
        if not self.enough:
            return f"{self.agents} agents are too few to correlate: it takes {FEWEST_AGENTS}"
        return (
            f"Spearman {self.spearman_text}, Kendall {self.kendall_text}; {self.agents} agents, "
            f"{100 * self.level:g} % intervals"
        )


def _shown(value: float, interval: tuple[float, float]) -> str:
    if not np.isfinite(value):
        return "undefined"
    return f"{value:+.2f} ({interval[0]:+.2f} to {interval[1]:+.2f})"


def rank_correlation(
    x: PerAgent, y: PerAgent, level: float = 0.95, seed: int = 0
) -> RankCorrelation:
    """Rank correlation over agents of their means over seeds.

    NaN are left out of the means; an agent without a number in one of the tables is left out. The
    interval is that of the percentile bootstrap that draws agents and, in both tables alike, seeds.
    It holds for other agents of this kind and other seeds, not for these agents alone.
    """
    usable = np.isfinite(x).any(axis=1) & np.isfinite(y).any(axis=1)
    x, y = x[usable], y[usable]
    agents, seeds = x.shape
    nothing = (np.nan, np.nan)
    if agents < FEWEST_AGENTS:
        return RankCorrelation(agents, level, np.nan, nothing, np.nan, nothing)
    spearman, kendall = rank_coefficients(_means(x), _means(y))
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(CORRELATION_RESAMPLES):
        rows = generator.integers(agents, size=agents)
        columns = generator.integers(seeds, size=seeds)
        found.append(rank_coefficients(_means(x[:, columns])[rows], _means(y[:, columns])[rows]))
    kept = np.array([pair for pair in found if np.isfinite(pair).all()]).reshape(-1, 2)
    ends = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    low, high = np.quantile(kept, ends, axis=0) if len(kept) else np.full((2, 2), np.nan)
    return RankCorrelation(
        agents,
        level,
        spearman,
        (float(low[0]), float(high[0])),
        kendall,
        (float(low[1]), float(high[1])),
    )


def _means(values: PerAgent) -> Float[np.ndarray, " agents"]:
    """Means over the seeds that have a number; NaN where none has."""
    finite = np.isfinite(values)
    count = finite.sum(axis=1)
    total = np.where(finite, values, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def rank_coefficients(
    x: Float[np.ndarray, " agents"], y: Float[np.ndarray, " agents"]
) -> tuple[float, float]:
    """Spearman's ρ, with mean ranks for ties, and Kendall's τ-b; NaN where all are tied."""
    finite = np.isfinite(x) & np.isfinite(y)
    above_x, above_y = (np.sign(v[finite, None] - v[None, finite]) for v in (x, y))
    # Row sums of the signs are twice the ranks, less a constant.
    rank_x, rank_y = above_x.sum(axis=1), above_y.sum(axis=1)
    return _cosine(rank_x, rank_y), _cosine(above_x.ravel(), above_y.ravel())


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    length = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / length if length > 0.0 else np.nan
