"""The measures, and one row for each measure and arm."""

import math
from typing import NamedTuple

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


class MeasureRow(NamedTuple):
    """One measure of one arm (`arm` is None for all arms together)."""

    measure: str
    arm: int | None
    value: float
    #: What exact draws, as many and as correlated, would show.
    expected: float
    #: Monte Carlo standard error.
    error: float
    #: p-value of the test that the draws are exact; None for what is not tested.
    p_value: float | None = None


#: Measures that are positive even for exact draws: the excess over what those show is the error.
DISTANCES = ("choice", "bias", "wasserstein2", "shape")


def measured_text(row: MeasureRow, digits: int, unit: float = 1.0, thousands: str = "") -> str:
    """`value ± error`; for a distance, what exact draws would show is in brackets.

    `thousands` separates thousands in values without an error.
    """
    value, expected, error = (
        f"{number / unit:.{digits}f}" for number in (row.value, row.expected, row.error)
    )
    if not math.isfinite(row.error):
        return f"{row.value / unit:{thousands}.{digits}f}"
    if row.measure in DISTANCES:
        return f"{value} ({expected} ± {error})"
    return f"{value} ± {error}"
