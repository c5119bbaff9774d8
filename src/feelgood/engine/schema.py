"""The one table of what a run measures.

Whatever reads or writes results takes the names, axes and kinds of numbers from `QUANTITIES`. These
are the JSON and Arrow forms of a result, the files of a study's cells and those of the showdown. A
new number is one line here, one value of that name in `Tally.numbers`, and one test.
"""

import dataclasses
import enum
from typing import Literal


class Axes(enum.Enum):
    """What a number has one value per.

    **Example:**

    >>> from feelgood.engine.schema import QUANTITIES, Axes
    >>> [q.name for q in QUANTITIES if q.axes is Axes.ARM]
    ['arm_counts']
    """

    SEED = "seed"
    ARM = "seed and arm"
    POINT = "seed and point of the curve"
    #: A dictionary of arrays, one per diagnostic of the sampler.
    DIAGNOSTIC = "diagnostic, seed and point of the curve"


@dataclasses.dataclass(frozen=True)
class Quantity:
    """One measured quantity: what it is, and how it is written and summed up.

    **Example:**

    >>> from feelgood.engine.schema import Quantity
    >>> Quantity("switches", "rounds in which the arm changed", whole=True).column
    'switches'
    """

    #: The name of the value in `Tally.numbers`, in `Outcome` and in `AgentResult`.
    name: str
    meaning: str
    axes: Axes = Axes.SEED
    #: Whether it is a whole number (int64); otherwise it is a float64, and NaN is no value.
    whole: bool = False
    #: The whole number that means "none", which files hold as null.
    none: int | None = None
    #: Its column in files, where that has another name.
    file_column: str = ""
    #: Whether it sums up the whole run, so that a chain that diverged has none.
    of_whole_run: bool = True
    #: What a run's summary has of it, if there is one value per seed: "spread" is mean, std and
    #: quantiles.
    summed_up: Literal["spread", "mean", "no"] = "mean"
    #: What the columns of a spread begin with.
    prefix: str = ""
    #: Whether `RunResult.to_arrow` has it.
    in_table: bool = True
    #: Whether the results of the showdown keep it: with all digits, in single precision, or not.
    showdown: Literal["full", "single", "no"] = "full"

    @property
    def column(self) -> str:
        """Its column in files."""
        return self.file_column or self.name


#: In the order of a file's columns.
QUANTITIES: tuple[Quantity, ...] = (
    Quantity("final_regret", "regret of all rounds", summed_up="spread", prefix="regret"),
    Quantity("simple_regret", "regret of the last 500 rounds", summed_up="spread", prefix="simple"),
    Quantity("best_arm_rate", "share of rounds in which a best arm was played"),
    Quantity("arm_counts", "plays of each arm", Axes.ARM, whole=True, showdown="no"),
    Quantity("diverged_at", "round of divergence", whole=True, none=-1, summed_up="no"),
    Quantity(
        "ess",
        "effective sample size of 200 repeated draws at the end; NaN: the agent draws none",
        of_whole_run=False,
        summed_up="no",
        in_table=False,
        showdown="single",
    ),
    Quantity(
        "curve",
        "cumulative regret along the run",
        Axes.POINT,
        file_column="curve_regret",
        showdown="single",
    ),
    Quantity(
        "health",
        "diagnostics of the sampler: means over the rounds since the point before",
        Axes.DIAGNOSTIC,
        in_table=False,
        showdown="single",
    ),
)
