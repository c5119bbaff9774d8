"""What an agent must find out in a frame: the arm of each row, or what each arm pays."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from feelgood.api.frame_columns import FEW_ROWS
from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.table_columns import Tell, read_column, text_of

if TYPE_CHECKING:
    import pyarrow as pa


def arms_of_label(
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
    shares = ", ".join(f"{text_of(one)} ({counts[one]:,} rows)" for one in classes[:6])
    more = f" and {len(classes) - 6:,} others" if len(classes) > 6 else ""
    tell(f"Label '{column}' has {len(classes):,} values, one arm each: {shares}{more}.")
    position = {one: i for i, one in enumerate(classes)}
    return [text_of(one) for one in classes], np.array([position[one] for one in each])


def payoffs_of(
    called: str, columns: Sequence[str], table: "pa.Table", keep: np.ndarray
) -> np.ndarray:
    """What each arm pays for each row."""
    from feelgood.core.arrow import pa

    out = []
    for column in columns:
        values = table[column]
        if pa.types.is_boolean(values.type):
            values = values.cast(pa.float64())
        read = read_column(values).of(keep)
        if read.numbers is None or read.what != "numbers":
            raise FeelgoodError(
                f"the rewards '{column}' of {called} are {read.what}: give columns of numbers."
            )
        out.append(read.numbers)
    return np.stack(out, axis=1)


def likelihood_of(paid: np.ndarray, tell: Tell) -> str:
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
