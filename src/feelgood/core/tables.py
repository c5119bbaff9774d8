"""A data frame, a table or a file of one's own as an Arrow table."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feelgood.core.errors import FeelgoodError
from feelgood.core.table_columns import Tell, read_column

if TYPE_CHECKING:
    import pyarrow as pa


def to_arrow_table(frame: Any, tell: Tell) -> "tuple[pa.Table, str]":
    """Anything that holds columns as a pyarrow table, and what to call it."""
    from feelgood.core.arrow import pa

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
            if repeated := first_repeated(names):
                raise FeelgoodError(f"the frame has two columns '{repeated}': rename one of them.")
            renamed = frame.set_axis(names, axis=1)
            return pa.Table.from_pandas(renamed, preserve_index=False, nthreads=1), "frame"
        if hasattr(frame, "__arrow_c_stream__") or isinstance(frame, pa.RecordBatch):
            return pa.table(frame), "frame"
        if hasattr(frame, "__dataframe__"):
            from feelgood.core.arrow import interchange

            return interchange.from_dataframe(frame), "frame"
    except FeelgoodError:
        raise
    except Exception as error:  # the code of another library
        if isinstance(frame, pa.RecordBatch) or hasattr(frame, "columns"):
            raise FeelgoodError(
                f"the frame cannot be read ({_reason(error)}): give each column values of one kind."
            ) from error
        raise wrong from error
    raise wrong


def first_repeated(names: Sequence[str]) -> str | None:
    """A name that comes twice, if there is one."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _reason(error: BaseException) -> str:
    """An error of pyarrow or of the system in a few words on one line."""
    text = getattr(error, "strerror", None) or "; ".join(map(str, error.args))
    return " ".join(text.split())[:150].rstrip(". ") or type(error).__name__


def _read_file(path: Path, tell: Tell) -> "tuple[pa.Table, str]":
    """The table of a file and the file's name."""
    from feelgood.core.arrow import pa

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
    from feelgood.core.arrow import csv, pa

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
    texts = {text for text in read_column(column).texts or [None] if text is not None}
    return bool(texts) and all(re.fullmatch(r"\s*-?\d+(,\d+)?\s*", text) for text in texts)
