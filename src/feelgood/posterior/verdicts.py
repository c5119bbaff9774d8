"""Are draws exact within Monte Carlo error? One verdict from all measures together."""

import dataclasses
from collections.abc import Sequence
from typing import Literal

import numpy as np

from feelgood.posterior.measure_rows import MeasureRow

#: Family-wise false-alarm rate of a verdict.
POSTERIOR_LEVEL = 1e-3
#: Chains have not mixed if their split-R̂ is above the first number and their draws are worth less
#: than the second, as a share of independent ones. R̂ alone is noisy with few draws.
MIXED, WORTH = 1.1, 0.25
#: Above so many standard deviations of rounding nothing is called exact.
COARSE = 1.0


@dataclasses.dataclass(frozen=True)
class PosteriorVerdict:
    """Whether draws are exact within Monte Carlo error, all measures together.

    "undecided" says that nothing wrong was seen by chains that have not mixed, which see little.
    """

    status: Literal["exact", "biased", "undecided", "diverged"]
    level: float
    tests: int
    worst: MeasureRow | None
    sentence: str

    @property
    def exact(self) -> bool:
        """Exact within Monte Carlo error, and the chains have mixed."""
        return self.status == "exact"


def judge(
    rows: Sequence[MeasureRow], level: float = POSTERIOR_LEVEL, rounding: float = 0.0
) -> PosteriorVerdict:
    """Exact within Monte Carlo error, or biased and by how much (Bonferroni over all tests).

    `rounding` says how well single precision tells the law's mean, in standard deviations.
    """
    if not rows:
        return PosteriorVerdict("diverged", level, 0, None, "diverged: some draws are not finite.")
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
            return PosteriorVerdict("undecided", level, len(tested), worst, sentence)
        if rounding > COARSE:
            sentence = (
                f"undecided: no bias seen, but single precision tells this law to {rounding:.2g} "
                "standard deviations only; use a testbed with more noise."
            )
            return PosteriorVerdict("undecided", level, len(tested), worst, sentence)
        sentence = f"exact within Monte Carlo error ({len(tested)} tests, level {level:g})."
        return PosteriorVerdict("exact", level, len(tested), worst, sentence)
    trace, bias = overall["trace"], overall["bias"]
    parts = [f"variance × {trace.value:.3f} ± {trace.error:.3f}"]
    parts.append(f"mean off by {_excess(bias):.2g} ± {bias.error:.2g} sd")
    if "choice" in overall:
        choice = overall["choice"]
        parts.append(f"arm choice off by {_excess(choice):.2g} ± {choice.error:.2g}")
    where = "all arms" if worst.arm is None else f"arm {worst.arm}"
    sentence = f"biased: {', '.join(parts)} (clearest: {worst.measure}, {where})"
    sentence += "." if mixed else f"; {unmixed}."
    return PosteriorVerdict("biased", level, len(tested), worst, sentence)


def _excess(row: MeasureRow) -> float:
    """A distance less what exact draws would show; squares add, not distances."""
    return float(np.sqrt(max(0.0, row.value**2 - row.expected**2)))
