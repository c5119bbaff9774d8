"""Logs of Vowpal Wabbit: dsjson, one JSON object per line and decision.

`c._multi` has the features of each arm, and all else in `c` is shared. `_labelIndex` (from 0) is
the arm that was played, `_label_cost` minus its reward, and `_label_probability` its probability.
`a` are all arms, from 1, and `p` their probabilities in that order. A line that has `RewardValue`
brings the reward of an earlier `EventId`.
"""

import datetime
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from feelgood.core import atomic
from feelgood.core.arguments import parse_path
from feelgood.core.arrow import pa
from feelgood.core.errors import FeelgoodError, shown
from feelgood.logs.event_schema import Events, make_events

#: A feature is a number by its name. A text is the number 1 of "name=text".
Features = dict[str, float]


def flat_features(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """The features in a JSON value: namespaces, lists, numbers, texts and truth values."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not key.startswith("_"):
                yield from flat_features(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from flat_features(inner, f"{name}[{place}]")
    elif isinstance(value, (bool, int, float)):
        yield name, float(value)
    elif isinstance(value, str):
        yield f"{name}={value}", 1.0


def _label(arm: Mapping[str, Any], place: int) -> str:
    """What an arm is called: its tag, else its texts, else its place."""
    if isinstance(arm.get("_tag"), str):
        return str(arm["_tag"])
    texts = [name for name, _ in flat_features(arm) if "=" in name]
    return ",".join(texts) or str(place)


def events_from_dsjson(path: Any) -> Events:
    """Events from a file of dsjson lines.

    Features that are numbers keep their value, texts become one number each. A feature that a line
    lacks is 0. An arm is called by its tag, else by its texts, else by its place.
    """
    file = parse_path(path, "dsjson file")
    rows: list[dict[str, Any]] = []
    late: dict[str, float] = {}
    with atomic.reading(file), file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                _take(line, f"{file}, line {number}", rows, late)
    for row in rows:
        if row["reward"] is None:
            row["reward"] = late.get(row["id"])
    return _events(rows, str(file))


def _take(line: str, where: str, rows: list[dict[str, Any]], late: dict[str, float]) -> None:
    """One line: a decision, or the reward of an earlier one."""
    try:
        record = json.loads(line)
        if "c" in record:
            rows.append(_decision(record, len(rows), where))
        elif "RewardValue" in record:
            late.setdefault(str(record["EventId"]), float(record["RewardValue"]))
        else:
            raise KeyError("c")
    except FeelgoodError:
        raise
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        reason = " ".join(str(error).split())[:100]
        raise FeelgoodError(f"{where} is no decision in dsjson ({reason}): correct it.") from None


def _decision(record: Mapping[str, Any], place: int, where: str) -> dict[str, Any]:
    shared, arms = record["c"], record["c"]["_multi"]
    if "_slots" in shared:
        raise FeelgoodError(f"{where} has several slots: only logs with one decision per line fit.")
    labels = [_label(arm, k) for k, arm in enumerate(arms)]
    if len(set(labels)) < len(labels):
        labels = [str(k) for k in range(len(arms))]
    order = [int(k) - 1 for k in record.get("a", ())]
    played = record.get("_labelIndex", record.get("_label_Action", 0) - 1)
    if played < 0 and order:
        played = order[0]
    if not 0 <= played < len(arms):
        raise FeelgoodError(f"{where} played the arm {played} of {len(arms)}: correct _labelIndex.")
    chances = record.get("p")
    pmf = None
    if chances is not None and sorted(order) == list(range(len(arms))):
        pmf = np.zeros(len(arms))
        pmf[order] = chances
    chance = record.get("_label_probability")
    if chance is None and pmf is not None:
        chance = pmf[played]
    cost = record.get("_label_cost")
    return {
        "id": str(record.get("EventId", place)),
        "time": record.get("Timestamp"),
        "shared": dict(flat_features(shared)),
        "each": [dict(flat_features(arm)) for arm in arms],
        "arm": labels[played],
        "arms": labels,
        "reward": None if cost is None else 0.0 - cost,
        "weight": 1.0 / (1.0 - record.get("pdrop", 0.0)),
        "probability": chance,
        "pmf": pmf,
    }


def _events(rows: list[dict[str, Any]], called: str) -> Events:
    if not rows:
        raise FeelgoodError(f"{called} has no decisions: give a log with at least one.")
    shared = _vocabulary(row["shared"] for row in rows)
    own = _vocabulary(each for row in rows for each in row["each"])
    names = ("id", "arm", "arms", "reward", "weight", "probability", "pmf")
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in names}
    columns["time"] = pa.array([_time(row["time"], called) for row in rows])
    if shared:
        columns["context"] = [_vector(row["shared"], shared) for row in rows]
    if own:
        columns["arm_features"] = [[_vector(e, own).tolist() for e in row["each"]] for row in rows]
    return make_events(columns, called)


def _vocabulary(many: Iterator[Features]) -> dict[str, int]:
    """The place of every feature, in the order of first appearance."""
    names = dict.fromkeys(name for features in many for name in features)
    return {name: place for place, name in enumerate(names)}


def _vector(features: Features, places: Mapping[str, int]) -> np.ndarray:
    out = np.zeros(len(places), np.float32)
    for name, value in features.items():
        out[places[name]] = value
    return out


def _time(text: str | None, called: str) -> datetime.datetime | None:
    if text is None:
        return None
    try:
        head, dot, digits = text.rstrip("Z").partition(".")
        when = datetime.datetime.fromisoformat(head + (f"{dot}{digits[:6]:0<6}" if dot else ""))
    except ValueError:
        raise FeelgoodError(
            f"{called} has the Timestamp {shown(text)}: write 2021-07-29T10:00:00Z."
        ) from None
    return when.replace(tzinfo=datetime.UTC)


def events_to_dsjson(events: Events, path: Any) -> int:
    """Write those events that have a probability as dsjson; returns how many.

    A decision without a reward has no label, as Vowpal Wabbit expects it.
    """
    file = parse_path(path, "dsjson file")
    rows = [row for row in events.table.to_pylist() if row["probability"] is not None]

    def fill(target: Path) -> None:
        with target.open("w", encoding="utf-8") as stream:
            for row in rows:
                stream.write(json.dumps(_record(row)) + "\n")

    with atomic.reporting(file), atomic.replacing(file) as temporary:
        fill(temporary)
    return len(rows)


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    """One decision; the arm that was played comes first in `a` and `p`."""
    arms, played = row["arms"], row["arms"].index(row["arm"])
    pmf = row["pmf"]
    order = [played] if pmf is None else sorted(range(len(arms)), key=lambda k: k != played)
    multi: list[dict[str, Any]] = [{"_tag": name} for name in arms]
    for place, features in enumerate(row["arm_features"] or ()):
        multi[place]["arm"] = _named(features)
    if not row["arm_features"]:  # Vowpal Wabbit needs a feature to tell arms apart
        for each in multi:
            each["arm"] = {"name": each["_tag"]}
    out: dict[str, Any] = {}
    if row["reward"] is not None:
        out["_label_cost"] = 0.0 - row["reward"]
        out["_label_probability"] = row["probability"]
        out |= {"_label_Action": played + 1, "_labelIndex": played}
    out |= {"Version": "1", "EventId": str(row["id"])}
    if row["time"] is not None:
        out["Timestamp"] = row["time"].strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    shared = {} if row["context"] is None else {"shared": _named(row["context"])}
    return out | {
        "a": [k + 1 for k in order],
        "c": {**shared, "_multi": multi},
        "p": [row["probability"]] if pmf is None else [pmf[k] for k in order],
        "VWState": {"m": "N/A" if row["version"] is None else str(row["version"])},
    }


def _named(numbers: list[float]) -> Features:
    return {f"x{place}": number for place, number in enumerate(numbers)}
