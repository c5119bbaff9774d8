"""Arrow tables as data frames of libraries that need not be installed."""

from typing import TYPE_CHECKING

from feelgood.core.errors import FeelgoodError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


def to_pandas(table: "pa.Table") -> "pd.DataFrame":
    """The same for pandas."""
    try:
        import pandas  # noqa: F401  (Arrow makes the frame)
    except ImportError:
        raise FeelgoodError("pandas is not installed: run 'pip install pandas'.") from None
    return table.to_pandas(use_threads=False)


def to_polars(table: "pa.Table") -> "pl.DataFrame":
    """The same for polars."""
    try:
        import polars
    except ImportError:
        raise FeelgoodError("polars is not installed: run 'pip install polars'.") from None
    frame = polars.from_arrow(table)
    assert isinstance(frame, polars.DataFrame)
    return frame
