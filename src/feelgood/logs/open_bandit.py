"""Files of the Open Bandit Dataset: https://research.zozo.com/data.html, one CSV row per decision.

Columns: `timestamp`, `item_id`, `position`, `click`, `propensity_score` (`action_prob` in some
texts), `user_feature_0` …, and affinities, which are not used, as `obp` does not.
"""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from feelgood.core import atomic
from feelgood.core.arguments import parse_path
from feelgood.core.arrow import pa, pc
from feelgood.core.errors import FeelgoodError
from feelgood.core.tables import to_arrow_table
from feelgood.logs.encoding import encode_columns, joined_contexts, one_column_each
from feelgood.logs.event_schema import Events, make_events, rows_as_lists, same_in_all_rows
from feelgood.logs.obp_feedback import context_matrix

NEEDED = ("item_id", "click")
_CHANCES = ("propensity_score", "action_prob")


def is_open_bandit(names: list[str]) -> bool:
    """Whether these are columns of the Open Bandit Dataset."""
    return set(NEEDED) <= set(names)


def events_from_open_bandit(path: Any) -> Events:
    """Events from a CSV file of the dataset (or a table of it), in order of time.

    Arms are items. The context has the user's features, each text as one column per value but the
    first, and then one number per position, if there are several.
    """
    notes: list[str] = []
    table, called = to_arrow_table(path, notes.append)
    if not is_open_bandit(table.column_names):
        raise FeelgoodError(f"{called} has no columns item_id and click: it is no Open Bandit log.")
    times, rows = _times(table, called), table.num_rows
    if times is not None:
        order = np.argsort(times.to_numpy(zero_copy_only=False), kind="stable")
        table, times = table.take(pa.array(order)), times.take(pa.array(order))
    items = table["item_id"].cast(pa.int64()).to_numpy()
    names = [name for name in table.column_names if name.startswith("user_feature")]
    places = table["position"].to_numpy() if "position" in table.column_names else np.zeros(rows)
    context = joined_contexts(
        encode_columns(table, names, called, notes),
        one_column_each(places) if len(np.unique(places)) > 1 else None,
    )
    chance = next((name for name in _CHANCES if name in table.column_names), None)
    columns = {
        "arm": pa.array([str(item) for item in items.tolist()], pa.string()),
        "arms": same_in_all_rows([str(i) for i in range(items.max() + 1)], rows, pa.string()),
        "reward": table["click"],
        "probability": None if chance is None else table[chance],
        "context": None if context is None else rows_as_lists(context, pa.float32()),
        "time": times,
    }
    return make_events(columns, called, notes)


def _times(table: pa.Table, called: str) -> pa.Array | None:
    """When each decision was made; without a zone, it is meant in UTC."""
    if "timestamp" not in table.column_names:
        return None
    column = table["timestamp"].combine_chunks()
    if not pa.types.is_timestamp(column.type):
        try:
            column = pc.cast(column, pa.timestamp("us", "UTC"))
        except pa.ArrowException:
            raise FeelgoodError(
                f"{called} has a timestamp that is none: write 2019-11-24 00:03:13+00:00."
            ) from None
    return column


def events_to_open_bandit(events: Events, path: Any) -> int:
    """Write those events that have a reward and a probability as such a file; returns how many.

    Items are numbered as in `events.arms`, and the numbers of a context are its user's features.
    """
    file = parse_path(path, "CSV file")
    arms = {name: code for code, name in enumerate(events.arms)}
    contexts = context_matrix(events)
    width = 0 if contexts is None else contexts.shape[1]
    rewards, chances = events.numbers("reward"), events.numbers("probability")
    kept = np.flatnonzero(np.isfinite(rewards) & np.isfinite(chances))
    labels, times = events.table["arm"].to_pylist(), events.table["time"].to_pylist()
    head = ["", "timestamp", "item_id", "position", "click", "propensity_score"]

    def fill(target: Path) -> None:
        with target.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow([*head, *(f"user_feature_{k}" for k in range(width))])
            for row in kept.tolist():
                seen = [] if contexts is None else contexts[row].tolist()
                when = "" if times[row] is None else times[row].isoformat(" ")
                paid = f"{rewards[row]:.17g}"
                decision = [row, when, arms[labels[row]], 1, paid, repr(float(chances[row]))]
                writer.writerow([*decision, *seen])

    with atomic.reporting(file), atomic.replacing(file) as temporary:
        fill(temporary)
    return len(kept)
