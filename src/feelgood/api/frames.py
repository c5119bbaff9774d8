"""A data frame or a file of one's own as a bandit. Every guess is told in one sentence."""

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from feelgood.core.errors import FeelgoodError, did_you_mean, shown
from feelgood.data.catalogue import Kind
from feelgood.testbeds.checks import check_choice, check_testbed_name
from feelgood.testbeds.classification import Classification
from feelgood.testbeds.contexts import Preprocess
from feelgood.testbeds.payoffs import Payoffs

if TYPE_CHECKING:
    import pyarrow as pa

Tell = Callable[[str], None]

#: Text with more different values than this, or with more than half as many as there are rows, is
#: taken for names or notes that no agent can learn from; so is a label for no class.
MANY = 100
FEW_ROWS = 20
#: The most rounds of a run unless told otherwise: one pass over the rows, or so many of them.
MOST_ROUNDS = 10_000
#: Whole numbers with so few different values could be categories; what they are is told.
FEW_NUMBERS = 10
MISSING = "missing"
DAY = 86_400e6  # microseconds


class Encoded(NamedTuple):
    """One column of contexts before it is scaled."""

    values: np.ndarray
    kind: Kind


class Read(NamedTuple):
    """A column of a frame: numbers with NaN, or texts with None, where nothing is known."""

    what: str
    numbers: np.ndarray | None = None
    texts: list[str | None] | None = None

    def of(self, rows: np.ndarray) -> "Read":
        """The same column in some rows."""
        numbers = None if self.numbers is None else self.numbers[rows]
        texts = None if self.texts is None else list(compress(self.texts, rows))
        return Read(self.what, numbers, texts)


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
    days. A missing number becomes the median, and another column says where; a missing text is a
    category of its own; a row without a label or with a missing reward is dropped. Columns that are
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
    table, called = _as_table(frame, tell)
    called = given or called
    check_choice(called, "preprocess", preprocess, get_args(Preprocess))
    columns = table.column_names
    if repeated := _repeated(columns):
        raise FeelgoodError(f"{called} has two columns '{repeated}': rename one of them.")
    if not table.num_rows:
        raise FeelgoodError(f"{called} has no rows: give at least one row per arm.")
    targets = _targets(called, columns, label, rewards)
    used = _features(called, columns, targets, features)

    keep = np.ones(table.num_rows, bool)
    for target in targets:
        missing = _missing(_read(table[target])) & keep
        keep &= ~missing
        if missing.any():
            tell(f"The value of '{target}' is missing in {_count(missing, 'row')}: left out.")
    if not keep.any():
        raise FeelgoodError(f"{called} has no row in which '{targets[-1]}' is known: fill it in.")
    encoded = [
        part
        for column in used
        for part in _encode(
            called, column, _read(table[column]), keep, preprocess, features is not None, tell
        )
    ]
    if not encoded:
        raise FeelgoodError(
            f"{called} has no column that an agent can learn from: add one, or name it in features."
        )
    rows = int(keep.sum())
    common = {
        "kinds": [part.kind for part in encoded],
        "preprocess": preprocess,
        "intercept": intercept,
        "horizon": min(rows, MOST_ROUNDS) if horizon is None else horizon,
        "name": called,
        "notify": None,
    }
    contexts = np.stack([part.values for part in encoded], axis=1)
    testbed: Classification | Payoffs
    if label is not None:
        names, labels = _classes(called, targets[0], table[targets[0]], keep, tell)
        testbed = Classification.from_arrays(contexts, labels, arm_names=names, **common)
    else:
        paid = _payoffs(called, targets, table, keep)
        likelihood = _likelihood(paid, tell)
        testbed = Payoffs.from_arrays(
            contexts, paid, likelihood=likelihood, arm_names=targets, **common
        )
    constant = ", the last one a constant" if testbed.table.intercept else ""
    tell(
        f"{called} has {rows:,} rows, {testbed.spec.arms} arms and contexts of {testbed.spec.dim} "
        f"numbers{constant}; a run has {testbed.rounds:,} rounds unless told otherwise."
    )
    return testbed


# ---- what a frame is ------------------------------------------------------------------------


def _as_table(frame: Any, tell: Tell) -> "tuple[pa.Table, str]":
    """Anything that holds columns as a pyarrow table, and what to call it."""
    import pyarrow as pa

    if isinstance(frame, (str, Path)):
        return _read_file(Path(frame), tell)
    wrong = FeelgoodError(
        f"a frame of type {type(frame).__name__} is not known: give a data frame of pandas or "
        "polars, a pyarrow table, or the path of a .csv, .tsv or .parquet file."
    )
    if isinstance(frame, type):
        raise wrong
    try:
        if isinstance(frame, pa.Table):
            return frame, "frame"
        if type(frame).__module__.split(".")[0] == "pandas" and hasattr(frame, "columns"):
            if getattr(frame.index.dtype, "kind", "O") not in "iu":
                tell("The index is left out: reset_index() makes it a column.")
            names = [str(column) for column in frame.columns]
            if repeated := _repeated(names):
                raise FeelgoodError(f"the frame has two columns '{repeated}': rename one of them.")
            renamed = frame.set_axis(names, axis=1)
            return pa.Table.from_pandas(renamed, preserve_index=False, nthreads=1), "frame"
        if hasattr(frame, "__arrow_c_stream__") or isinstance(frame, pa.RecordBatch):
            return pa.table(frame), "frame"
        if hasattr(frame, "__dataframe__"):
            from pyarrow.interchange import from_dataframe

            return from_dataframe(frame), "frame"
    except FeelgoodError:
        raise
    except Exception as error:  # the code of another library
        if isinstance(frame, pa.RecordBatch) or hasattr(frame, "columns"):
            raise FeelgoodError(
                f"the frame cannot be read ({_reason(error)}): give each column values of one kind."
            ) from error
        raise wrong from error
    raise wrong


def _repeated(names: Sequence[str]) -> str | None:
    """A name that comes twice, if there is one."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _reason(error: BaseException) -> str:
    """An error of pyarrow or of the system in a few words on one line."""
    text = getattr(error, "strerror", None) or "; ".join(map(str, error.args))
    return " ".join(text.split())[:150].rstrip(". ") or type(error).__name__


def _read_file(path: Path, tell: Tell) -> "tuple[pa.Table, str]":
    """The table of a file and the file's name."""
    import pyarrow as pa

    suffix = path.suffix.lower()
    if suffix not in (".csv", ".tsv", ".parquet"):
        raise FeelgoodError(
            f"'{path}' is no .csv, .tsv or .parquet file: save the table as one of these."
        )
    if not os.path.isfile(path):  # also False for a path that is too long
        what = "is a folder" if os.path.isdir(path) else "does not exist"
        raise FeelgoodError(f"'{path}' {what}: check the path.")
    try:
        content = path.read_bytes()
        if suffix == ".parquet":
            from feelgood.core.parquet import read_parquet

            return read_parquet(content), path.stem
        return _read_text(path, content, suffix, tell), path.stem
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, FeelgoodError):
            raise
        kind = suffix[1:].upper() if suffix != ".parquet" else "Parquet"
        raise FeelgoodError(
            f"'{path}' cannot be read as {kind} ({_reason(error)}): check the file."
        ) from error


def _read_text(path: Path, content: bytes, suffix: str, tell: Tell) -> "pa.Table":
    """A table of separated values whose first line names the columns."""
    import pyarrow as pa
    from pyarrow import csv

    if not content.strip():
        raise FeelgoodError(f"'{path}' is empty: give a line of column names and one line per row.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FeelgoodError(
            f"'{path}' is no UTF-8 text (at byte {error.start:,}): save it as CSV in UTF-8."
        ) from None
    if "\0" in text:
        raise FeelgoodError(f"'{path}' holds binary data: save the table as CSV text.")
    first = text.lstrip("\r\n").partition("\n")[0]
    separator = "\t"
    if suffix == ".csv":
        separator = ","
        if "," not in first and (";" in first or "\t" in first):
            separator = max(";\t", key=first.count)
            tell(f"The values are separated by {'tabs' if separator == chr(9) else 'semicolons'}.")

    def read(decimal_point: str) -> "pa.Table":
        return csv.read_csv(
            pa.BufferReader(content),
            # One block: the kind of a column is known only when all of it has been seen.
            csv.ReadOptions(use_threads=False, block_size=min(len(content) + 1, 2**31 - 1)),
            csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            csv.ConvertOptions(strings_can_be_null=True, decimal_point=decimal_point),
        )

    table = read(".")
    if separator == ";" and any(map(_decimal_commas, table.columns)):
        tell("Numbers are written with a decimal comma.")
        table = read(",")
    return table


def _decimal_commas(column: "pa.ChunkedArray") -> bool:
    texts = {text for text in _read(column).texts or [None] if text is not None}
    return bool(texts) and all(re.fullmatch(r"\s*-?\d+(,\d+)?\s*", text) for text in texts)


# ---- which columns --------------------------------------------------------------------------


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
    if twice := _repeated(out):
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


# ---- what a column is -----------------------------------------------------------------------


def _read(column: "pa.ChunkedArray") -> Read:
    """A column as numbers or as texts; neither where it holds something else."""
    import pyarrow as pa

    kind, types = column.type, pa.types
    words = {
        "categories": types.is_dictionary(kind),
        "truth values": types.is_boolean(kind),
        "strings": str(kind) in ("string", "large_string", "string_view"),
        "nothing": types.is_null(kind),
    }
    for what, true in words.items():
        if true:
            texts = [None if value is None else _text(value) for value in column.to_pylist()]
            return Read(what, texts=texts)
    what, unit = "dates or times", DAY
    if types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
    elif types.is_date(kind):
        column = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    elif types.is_time(kind):
        column = column.cast(pa.time64("us"), safe=False).cast(pa.int64())
    elif types.is_duration(kind):
        column = column.cast(pa.duration("us"), safe=False).cast(pa.int64())
    elif types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        what, unit = "numbers", 1.0
    else:
        return Read(str(kind))
    numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return Read(what, numbers=numbers / unit)


def _text(value: Any) -> str:
    """A value as people write it: 3, not 3.0."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _missing(read: Read) -> Any:
    """Where nothing is known."""
    if read.numbers is not None:
        return np.isnan(read.numbers)
    return np.array([text is None for text in read.texts]) if read.texts else np.False_


def _count(where: np.ndarray, noun: str) -> str:
    """So many of something."""
    number = int(where.sum())
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _encode(
    called: str,
    column: str,
    read: Read,
    keep: np.ndarray,
    preprocess: str,
    told: bool,
    tell: Tell,
) -> list[Encoded]:
    """A column as one or two columns of numbers; none if it is left out."""
    if not told and read.what == "numbers" and read.numbers is not None and _counts(read.numbers):
        tell(f"Column '{column}' numbers the rows: left out (name it in features to keep it).")
        return []
    read = read.of(keep)
    if read.numbers is None and read.texts is None:
        tell(f"Column '{column}' holds values of the kind {read.what}: left out.")
        return []
    missing = _missing(read)
    if missing.all():
        tell(f"Column '{column}' is empty: left out.")
        return []
    if read.texts is not None:
        return _encode_texts(column, read, preprocess, told, tell)
    assert read.numbers is not None
    return _encode_numbers(called, column, read, missing, tell)


def _encode_texts(
    column: str, read: Read, preprocess: str, told: bool, tell: Tell
) -> list[Encoded]:
    assert read.texts is not None
    texts = [MISSING if text is None else text for text in read.texts]
    levels, codes = np.unique(np.array(texts, dtype=object), return_inverse=True)
    what = f"{len(levels):,} different {read.what}"
    if len(levels) == 1:
        tell(f"Column '{column}' has the same value in all rows: left out.")
        return []
    if not told and _too_many(len(levels), len(texts)):
        tell(
            f"Column '{column}' has {what} in {len(texts):,} rows: left out (name it in features "
            "to keep it)."
        )
        return []
    how = "one-hot" if preprocess == "standard" else "as codes in alphabetical order"
    gaps = _missing(read)
    own = f"; {MISSING} ({_count(gaps, 'row')}) is one of them" if gaps.any() else ""
    tell(f"Column '{column}' has {what}: {how}{own}.")
    return [Encoded(codes.astype(np.float64), "category")]


def _encode_numbers(
    called: str, column: str, read: Read, missing: np.ndarray, tell: Tell
) -> list[Encoded]:
    numbers = read.numbers
    assert numbers is not None
    if read.what != "numbers":
        tell(f"Column '{column}' holds {read.what}: used as a number of days.")
    known = numbers[~missing]
    wrong = np.flatnonzero(~missing & ~(np.abs(numbers) <= np.finfo(np.float32).max))
    if len(wrong):
        raise FeelgoodError(
            f"{called} has the value {numbers[wrong[0]]} in row {wrong[0]} of column '{column}': "
            "numbers must be finite in float32, so correct it or leave the row out."
        )
    out = []
    if missing.any():
        middle = float(np.median(known))
        tell(
            f"Column '{column}' has {_count(missing, 'missing value')}: filled with the median "
            f"{middle:g}, and another column says where."
        )
        numbers = np.where(missing, middle, numbers)
        out.append(Encoded(missing.astype(np.float64), "flag"))
    if known.min() == known.max():
        rest = " but for the missing ones" if out else ""
        tell(f"Column '{column}' has the same value in all rows{rest}: left out.")
        return out
    different = np.unique(known)
    if 2 < len(different) <= FEW_NUMBERS < len(known) and (different == np.rint(different)).all():
        tell(
            f"Column '{column}' has {len(different)} different whole numbers: used as a number "
            "(make it text for one-hot)."
        )
    return [Encoded(numbers, "number"), *out]


def _counts(numbers: np.ndarray) -> bool:
    """Whether a column is 0, 1, 2, … or 1, 2, 3, …"""
    return numbers[0] in (0, 1) and len(numbers) > 2 and bool((np.diff(numbers) == 1).all())


def _too_many(different: int, rows: int) -> bool:
    return different > MANY or (rows >= FEW_ROWS and 2 * different > rows)


# ---- what is to be found out ----------------------------------------------------------------


def _classes(
    called: str, column: str, values: "pa.ChunkedArray", keep: np.ndarray, tell: Tell
) -> tuple[list[str], np.ndarray]:
    """The names of the arms, in order, and the arm of each row."""
    try:
        each = list(compress(values.to_pylist(), keep))
        classes = sorted(set(each))
    except (TypeError, ValueError):
        raise FeelgoodError(
            f"the label '{column}' holds values of the kind {values.type}: use text or numbers."
        ) from None
    rows = len(each)
    if len(classes) == 1:
        raise FeelgoodError(
            f"the label '{column}' is {shown(classes[0])} in all rows of {called}: a bandit needs "
            "at least 2 arms, so choose another column."
        )
    if len(classes) == rows or (rows >= FEW_ROWS and 2 * len(classes) > rows):
        raise FeelgoodError(
            f"the label '{column}' has {len(classes):,} different values in {rows:,} rows: "
            "choose a column with few values, each in many rows."
        )
    counts = Counter(each)
    shares = ", ".join(f"{_text(one)} ({counts[one]:,} rows)" for one in classes[:6])
    more = f" and {len(classes) - 6:,} others" if len(classes) > 6 else ""
    tell(f"Label '{column}' has {len(classes):,} values, one arm each: {shares}{more}.")
    position = {one: i for i, one in enumerate(classes)}
    return [_text(one) for one in classes], np.array([position[one] for one in each])


def _payoffs(
    called: str, columns: Sequence[str], table: "pa.Table", keep: np.ndarray
) -> np.ndarray:
    """What each arm pays for each row."""
    import pyarrow as pa

    out = []
    for column in columns:
        values = table[column]
        if pa.types.is_boolean(values.type):
            values = values.cast(pa.float64())
        read = _read(values).of(keep)
        if read.numbers is None or read.what != "numbers":
            raise FeelgoodError(
                f"the rewards '{column}' of {called} are {read.what}: give columns of numbers."
            )
        out.append(read.numbers)
    return np.stack(out, axis=1)


def _likelihood(paid: np.ndarray, tell: Tell) -> str:
    """What agents take the rewards for."""
    if np.isin(paid, (0.0, 1.0)).all():
        tell("All rewards are 0 or 1: agents take them for successes and failures (Bernoulli).")
        return "bernoulli"
    deviation = float(paid.std())
    if math.isfinite(deviation) and not 0.1 <= deviation <= 10:
        tell(
            f"The rewards have a standard deviation of {deviation:.3g}: agents expect about 1 "
            "unless their settings say otherwise, so consider dividing the rewards by that."
        )
    return "squared"
