"""A data frame or a file of one's own as a bandit. Every guess is told in one sentence."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from feelgood.api.frame_columns import (
    EncodedColumn,
    Tell,
    counted,
    encode_column,
    missing_in,
    read_column,
)
from feelgood.api.frame_tables import first_repeated, to_arrow_table
from feelgood.api.frame_targets import arms_of_label, likelihood_of, payoffs_of
from feelgood.core.errors import FeelgoodError, did_you_mean, shown
from feelgood.testbeds.checks import check_choice, check_testbed_name
from feelgood.testbeds.classification import Classification
from feelgood.testbeds.contexts import Preprocess
from feelgood.testbeds.payoffs import Payoffs

if TYPE_CHECKING:
    import pyarrow as pa

#: The most rounds of a run unless told otherwise: one pass over the rows, or so many of them.
MOST_ROUNDS = 10_000


def from_frame(
    frame: Any,
    *,
    label: Any = None,
    rewards: Any = None,
    features: Any = None,
    name: Any = None,
    preprocess: Any = "standard",
    intercept: Any = True,
    horizon: Any = None,
    notify: Any = print,
) -> Classification | Payoffs:
    """A testbed from a data frame or a file. What is guessed about a column is told.

    **Arguments:**

    - `frame`: a data frame of pandas or polars, a pyarrow table, or the path of a file that ends in
      `.csv`, `.tsv` or `.parquet`.
    - `label`: the column to be guessed. There is one arm per distinct value, and the arm of a
      row's own value pays 1, any other 0.
    - `rewards`: instead of `label`, one column per arm that says what the arm pays.
    - `features`: the columns that an agent sees; all others unless given.
    - `name`: what results call the testbed; by default the file's name.
    - `preprocess`, `intercept`: as for `Classification.from_arrays`.
    - `horizon`: the usual number of rounds; by default one per row, 10,000 at most.
    - `notify`: called with every sentence; None is silent.

    Text and truth values are categories (one-hot), numbers stay numbers, dates become numbers of
    days. A missing number becomes the median, and another column says where. A missing text is a
    category of its own. A row without a label or with a missing reward is dropped. Columns that are
    constant, that number the rows, or that hold too many different texts are left out, unless
    `features` names them.

    **Example:**

    >>> import pyarrow as pa
    >>> import feelgood
    >>> frame = pa.table({"age": [20, 35, 51, 64], "drink": ["tea", "rum", "tea", "rum"]})
    >>> testbed = feelgood.from_frame(frame, label="drink", notify=None)
    >>> testbed.arm_names, testbed.spec.dim
    (('rum', 'tea'), 2)
    """
    if notify is not None and not callable(notify):
        raise FeelgoodError(f"notify = {shown(notify)} is not allowed: give a function, or None.")
    tell: Tell = (lambda _: None) if notify is None else notify
    given = check_testbed_name(name)
    table, called = to_arrow_table(frame, tell)
    source = _Source(table, given or called, tell)
    options = {"preprocess": preprocess, "intercept": intercept, "horizon": horizon}
    return source.testbed(label, rewards, features, **options)


@dataclasses.dataclass(frozen=True)
class _Source:
    """A table, what it is called, and who is told about guesses."""

    table: "pa.Table"
    called: str
    tell: Tell

    def testbed(
        self, label: Any, rewards: Any, features: Any, *, preprocess: Any, **options: Any
    ) -> Classification | Payoffs:
        """The testbed of these columns."""
        table, called = self.table, self.called
        check_choice(called, "preprocess", preprocess, get_args(Preprocess))
        columns = table.column_names
        if repeated := first_repeated(columns):
            raise FeelgoodError(f"{called} has two columns '{repeated}': rename one of them.")
        if not table.num_rows:
            raise FeelgoodError(f"{called} has no rows: give at least one row per arm.")
        targets = _targets(called, columns, label, rewards)
        used = _features(called, columns, targets, features)
        keep = self._known_rows(targets)
        encoded = self._encoded(used, keep, preprocess, features is not None)
        rows, horizon = int(keep.sum()), options["horizon"]
        options |= {
            "kinds": [part.kind for part in encoded],
            "preprocess": preprocess,
            "horizon": min(rows, MOST_ROUNDS) if horizon is None else horizon,
            "name": called,
            "notify": None,
        }
        contexts = np.stack([part.values for part in encoded], axis=1)
        testbed: Classification | Payoffs
        if label is not None:
            names, labels = arms_of_label(called, targets[0], table[targets[0]], keep, self.tell)
            testbed = Classification.from_arrays(contexts, labels, arm_names=names, **options)
        else:
            paid = payoffs_of(called, targets, table, keep)
            likelihood = likelihood_of(paid, self.tell)
            testbed = Payoffs.from_arrays(
                contexts, paid, likelihood=likelihood, arm_names=targets, **options
            )
        constant = ", the last one a constant" if testbed.table.intercept else ""
        self.tell(
            f"{called} has {rows:,} rows, {testbed.spec.arms} arms and contexts of "
            f"{testbed.spec.dim} numbers{constant}; a run has {testbed.rounds:,} rounds unless "
            "told otherwise."
        )
        return testbed

    def _known_rows(self, targets: Sequence[str]) -> np.ndarray:
        """Where all targets are known."""
        keep = np.ones(self.table.num_rows, bool)
        for target in targets:
            missing = missing_in(read_column(self.table[target])) & keep
            keep &= ~missing
            if missing.any():
                rows = counted(missing, "row")
                self.tell(f"The value of '{target}' is missing in {rows}: left out.")
        if not keep.any():
            raise FeelgoodError(
                f"{self.called} has no row in which '{targets[-1]}' is known: fill it in."
            )
        return keep

    def _encoded(
        self, used: Sequence[str], keep: np.ndarray, preprocess: str, told: bool
    ) -> list[EncodedColumn]:
        """The columns that an agent sees, as numbers."""
        encoded: list[EncodedColumn] = []
        for name in used:
            column = read_column(self.table[name])
            encoded += encode_column(self.called, name, column, keep, preprocess, told, self.tell)
        if not encoded:
            raise FeelgoodError(
                f"{self.called} has no column that an agent can learn from: add one, or name it "
                "in features."
            )
        return encoded


def _known(called: str, columns: Sequence[str], wanted: Any) -> str:
    """A column by its name."""
    if str(wanted) not in columns:
        raise FeelgoodError(
            f"{called} has no column {shown(wanted)}: {did_you_mean(str(wanted), columns)}"
        )
    return str(wanted)


def _names(called: str, columns: Sequence[str], what: str, wanted: Any) -> list[str]:
    """Several columns by their names, all different."""
    if isinstance(wanted, str) or not hasattr(wanted, "__iter__"):
        wanted = [wanted]
    out = [_known(called, columns, column) for column in wanted]
    if twice := first_repeated(out):
        raise FeelgoodError(f"{what} name the column '{twice}' twice: name it once.")
    return out


def _targets(called: str, columns: Sequence[str], label: Any, rewards: Any) -> list[str]:
    """The columns that are not features: the label, or one reward per arm."""
    if label is not None and rewards is not None:
        raise FeelgoodError("both label and rewards are given: give one of them.")
    if label is not None:
        return [_known(called, columns, label)]
    if rewards is None:
        raise FeelgoodError(
            "neither label nor rewards is given: name the column to be guessed, or the columns "
            f"that say what each arm pays, among {shown(', '.join(columns))}."
        )
    names = _names(called, columns, "rewards", rewards)
    if len(names) < 2:
        raise FeelgoodError(
            f"rewards names {len(names)} column: a bandit needs at least 2 arms, one per column."
        )
    return names


def _features(
    called: str, columns: Sequence[str], targets: Sequence[str], features: Any
) -> list[str]:
    """The columns that an agent sees."""
    if features is None:
        return [column for column in columns if column not in targets]
    names = _names(called, columns, "features", features)
    for column in names:
        if column in targets:
            raise FeelgoodError(
                f"the column '{column}' is what an agent must find out: leave it out of features."
            )
    return names
