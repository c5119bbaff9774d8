"""Any log: which format it has is seen from it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from feelgood.core import atomic
from feelgood.core.arguments import parse_choice
from feelgood.core.errors import FeelgoodError
from feelgood.core.tables import to_arrow_table
from feelgood.logs.dsjson import events_from_dsjson
from feelgood.logs.event_schema import Events
from feelgood.logs.frame_events import events_from_frame
from feelgood.logs.log_reading import STREAM_START, read_log
from feelgood.logs.obp_feedback import events_from_obp
from feelgood.logs.open_bandit import events_from_open_bandit, is_open_bandit

FORMATS = ("feelgood", "open-bandit", "obp", "dsjson", "frame")
_LINES = (".dsjson", ".json", ".jsonl", ".ndjson")


def open_events(source: Any, format: str | None = None) -> Events:
    """The events of a file, a dictionary of `obp` or a data frame.

    `format` is one of feelgood, open-bandit, obp, dsjson and frame; by default it is guessed. A
    file that begins as an Arrow stream is a log of ours. One that ends in .json, .jsonl, .ndjson or
    .dsjson is Vowpal Wabbit's. A table with the columns item_id and click is of the Open Bandit
    Dataset.

    **Example:**

    >>> import feelgood
    >>> import pyarrow as pa
    >>> events = feelgood.open_events(pa.table({"age": [3.0], "arm": ["a"], "reward": [1.0]}))
    >>> len(events), events.arms
    (1, ('a',))
    """
    if isinstance(source, Events):
        return source
    if isinstance(source, str):
        source = Path(source)
    kind = _guess(source) if format is None else parse_choice("format", format, FORMATS)
    if kind == "feelgood":
        return read_log(source)
    if kind == "obp":
        return events_from_obp(source)
    if kind == "dsjson":
        return events_from_dsjson(source)
    if kind == "open-bandit":
        return events_from_open_bandit(source)
    table, _ = to_arrow_table(source, lambda _: None)
    if format is None and is_open_bandit(table.column_names):
        return events_from_open_bandit(source)
    return events_from_frame(source)


def _guess(source: Any) -> str:
    if isinstance(source, Mapping):
        return "obp"
    if not isinstance(source, Path):
        return "frame"
    if not source.is_file():
        what = "is a folder" if source.is_dir() else "does not exist"
        raise FeelgoodError(f"'{source}' {what}: give the path of a log.")
    if source.suffix.lower() in _LINES:
        return "dsjson"
    with atomic.reading(source), source.open("rb") as file:
        start = file.read(4)
    tables = (".csv", ".tsv", ".parquet")
    if start == STREAM_START or source.suffix.lower() not in tables:
        return "feelgood"
    return "frame"
