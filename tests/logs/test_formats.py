"""Logs of other libraries: what is read is what they mean, and what is written is read again."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from feelgood import FeelgoodError
from feelgood.logs.dsjson import events_to_dsjson
from feelgood.logs.event_log import EventLog
from feelgood.logs.event_schema import Events, make_events
from feelgood.logs.frame_events import events_from_frame
from feelgood.logs.obp_feedback import context_matrix, events_from_obp, events_to_obp
from feelgood.logs.open_bandit import events_to_open_bandit
from feelgood.logs.opening import open_events

OPEN_BANDIT = """,timestamp,item_id,position,click,propensity_score,user_feature_0,affinity_0
0,2019-11-24 00:00:03.5+00:00,2,3,0,0.25,red,0.0
1,2019-11-24 00:00:01.5+00:00,0,1,1,0.5,blue,1.0
2,2019-11-24 00:00:02.5+00:00,3,3,0,0.125,,0.0
3,2019-11-24 00:00:04.5+00:00,2,1,0,0.25,green,0.0
"""

#: After the format's own page and the files of its reinforcement-learning client.
DSJSON = [
    {
        "_label_cost": -1.5,
        "_label_probability": 0.8,
        "_label_Action": 2,
        "_labelIndex": 1,
        "Version": "1",
        "EventId": "one",
        "Timestamp": "2021-02-04T16:31:29.2460000Z",
        "a": [2, 1, 3],
        "c": {
            "User": {"name": "Ann", "age": 30, "ignored": None, "_hidden": 1},
            "_multi": [
                {"T": {"topic": "tea"}, "size": 1.5},
                {"T": {"topic": "rum"}},
                {"T": {"topic": "milk"}, "both": [0.5, 2]},
            ],
        },
        "p": [0.8, 0.15, 0.05],
        "pdrop": 0.5,
    },
    {
        "Version": "1",
        "EventId": "two",
        "a": [1, 2],
        "c": {"User": {"name": "Bob", "new": True}, "_multi": [{"_tag": "x"}, {"_tag": "y"}]},
        "p": [0.75, 0.25],
    },
    {"EventId": "two", "RewardValue": 3.0},
]


def write_lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def some_events(rows: int = 6, seed: int = 0) -> Events:
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.ones(3), rows)
    arms = rng.integers(0, 3, rows)
    columns = {
        "id": [f"d{k}" for k in range(rows)],
        "time": pa.array(np.arange(rows) * 1_500_000, pa.timestamp("us", "UTC")),
        "arm": [str(arm) for arm in arms],
        "arms": [["0", "1", "2"]] * rows,
        "context": rng.normal(size=(rows, 2)).astype(np.float32).tolist(),
        "arm_features": rng.normal(size=(rows, 3, 2)).astype(np.float32).tolist(),
        "reward": rng.normal(size=rows),
        "probability": laws[np.arange(rows), arms],
        "pmf": laws.tolist(),
        "version": np.arange(rows),
    }
    return make_events(columns, "test")


def equal_but(one: Events, other: Events, *left_out: str) -> bool:
    names = [name for name in one.table.column_names if name not in left_out]
    return one.table.select(names).to_pylist() == other.table.select(names).to_pylist()


def test_open_bandit_files_are_read_in_order_of_time(tmp_path: Path) -> None:
    (tmp_path / "men.csv").write_text(OPEN_BANDIT)
    events = open_events(tmp_path / "men.csv")
    assert events.table["arm"].to_pylist() == ["0", "3", "2", "2"]
    assert events.arms == ("0", "1", "2", "3")
    assert events.table["reward"].to_pylist() == [1.0, 0.0, 0.0, 0.0]
    assert events.table["probability"].to_pylist() == [0.5, 0.125, 0.25, 0.25]
    assert events.table["time"][0].as_py().isoformat() == "2019-11-24T00:00:01.500000+00:00"
    # blue, the first text, is 0 in all; green, red; then the positions 1 and 3
    seen = [[0, 0, 1, 0], [0, 0, 0, 1], [0, 1, 0, 1], [1, 0, 1, 0]]
    assert events.table["context"].to_pylist() == seen


def test_open_bandit_files_are_written_as_they_are_read(tmp_path: Path) -> None:
    events = some_events(rows=20)
    assert events_to_open_bandit(events, tmp_path / "log.csv") == len(events)
    again = open_events(str(tmp_path / "log.csv"))
    assert equal_but(events, again, "id", "pmf", "arm_features", "version")


def test_dictionaries_of_obp_are_read_and_written() -> None:
    rng = np.random.default_rng(1)
    laws = rng.dirichlet(np.ones(4), (5, 2)).transpose(0, 2, 1)
    position = np.array([0, 1, 1, 0, 1])
    action = np.array([3, 0, 2, 2, 1])
    feedback = {
        "n_rounds": 5,
        "n_actions": 4,
        "action": action,
        "position": position,
        "reward": np.array([0, 1, 0, 0, 1]),
        "pscore": laws[np.arange(5), action, position],
        "context": rng.normal(size=(5, 3)),
        "pi_b": laws,
    }
    events = open_events(feedback)
    assert events.arms == ("0", "1", "2", "3")
    contexts = context_matrix(events)
    assert contexts is not None
    assert (contexts[:, :3] == feedback["context"].astype(np.float32)).all()
    assert (contexts[:, 3:] == np.eye(2)[position]).all()
    back = events_to_obp(events)
    for name in ("n_rounds", "n_actions"):
        assert back[name] == feedback[name]
    for name in ("action", "reward", "pscore"):
        assert (back[name] == feedback[name]).all()
    assert (back["pi_b"][:, :, 0] == laws[np.arange(5), :, position]).all()
    assert equal_but(events_from_obp(back), events)


def test_dsjson_means_what_vowpal_wabbit_means(tmp_path: Path) -> None:
    events = open_events(write_lines(tmp_path / "log.dsjson", DSJSON))
    one, two = events.table.to_pylist()
    assert one["id"] == "one" and one["arm"] == "T.topic=rum"
    assert one["arms"] == ["T.topic=tea", "T.topic=rum", "T.topic=milk"]
    assert (one["reward"], one["probability"], one["weight"]) == (1.5, 0.8, 2.0)
    assert one["pmf"] == [0.15, 0.8, 0.05]
    assert one["time"].isoformat() == "2021-02-04T16:31:29.246000+00:00"
    assert one["context"] == [1, 30, 0, 0]  # Ann, age, Bob, new
    assert one["arm_features"] == [[1, 1.5, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0.5, 2]]
    assert two["arm"] == "x" and two["arms"] == ["x", "y"]
    assert (two["reward"], two["probability"]) == (3.0, 0.75)
    assert two["context"] == [0, 0, 1, 1]


def test_dsjson_is_written_as_it_is_read(tmp_path: Path) -> None:
    events = some_events()
    assert events_to_dsjson(events, tmp_path / "log.dsjson") == len(events)
    assert equal_but(events, open_events(tmp_path / "log.dsjson"), "version")
    line = json.loads((tmp_path / "log.dsjson").read_text().splitlines()[0])
    first = events.table.to_pylist()[0]
    assert line["_label_cost"] == -first["reward"]
    assert line["a"][0] == line["_label_Action"] == line["_labelIndex"] + 1
    assert line["p"][0] == line["_label_probability"] == first["probability"]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_all_libraries_are_read(library: Any) -> None:
    columns = {
        "age": [20.0, 35.0, 50.0],
        "town": ["Oslo", "Rome", "Oslo"],
        "action": ["tea", "rum", "tea"],
        "reward": [1, 0, 1],
        "propensity": [0.5, 0.25, 0.5],
    }
    events = open_events(library(columns))
    assert events.table["context"].to_pylist() == [[20, 0], [35, 1], [50, 0]]
    assert events.table["arm"].to_pylist() == ["tea", "rum", "tea"]
    assert events.table["probability"].to_pylist() == [0.5, 0.25, 0.5]
    chosen = events_from_frame(library(columns), arm="town", features=["age"])
    assert chosen.arms == ("Oslo", "Rome") and len(chosen.table["context"][0]) == 1


def test_gaps_are_filled_and_told(tmp_path: Path) -> None:
    columns = {"x": [1.0, None, 3.0], "arm": [1, 2, 1], "reward": [0.5, None, 1.0]}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    events = open_events(tmp_path / "log.parquet")
    assert events.table["context"].to_pylist() == [[1], [2], [3]]
    assert events.table["reward"].to_pylist() == [0.5, None, 1.0]
    assert events.table["arm"].to_pylist() == ["1", "2", "1"]
    assert events.notes == ("Column 'x' of log lacks 1 numbers: filled with the median 2.",)


def test_our_own_tables_are_frames_too(tmp_path: Path) -> None:
    events = some_events()
    assert equal_but(events_from_frame(events.table), events)
    with EventLog(tmp_path / "log") as log:
        log.append(events)
    assert equal_but(open_events(tmp_path / "log"), events)


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        ("{", "line 1 is no decision in dsjson"),
        (json.dumps({"EventId": "x"}), "line 1 is no decision in dsjson"),
        (json.dumps({"c": {"_multi": [{}], "_slots": []}}), "several slots"),
        (json.dumps({"c": {"_multi": [{}, {}]}, "_labelIndex": 5}), "played the arm 5 of 2"),
        (json.dumps({"c": {"_multi": []}}), "played the arm -1 of 0"),
        ("", "has no decisions"),
        (json.dumps({"c": {"_multi": [{}]}, "a": [1], "Timestamp": "now"}), "write 2021-07-29T"),
    ],
)
def test_lines_that_are_no_dsjson_are_refused(tmp_path: Path, record: str, sentence: str) -> None:
    (tmp_path / "log.json").write_text(record)
    with pytest.raises(FeelgoodError, match=sentence):
        open_events(tmp_path / "log.json")


def test_misuse_is_told_in_a_sentence(tmp_path: Path) -> None:
    open_log = make_events({"arm": ["a"]}, "test")
    for wrong, sentence in (
        (lambda: open_events(tmp_path), "is a folder"),
        (lambda: open_events("nowhere.csv"), "does not exist"),
        (lambda: open_events(pa.table({"x": [1]})), "no column for the arm"),
        (lambda: open_events({"x": 1}), "no dictionary of obp"),
        (lambda: open_events({"action": [2], "reward": [1], "n_actions": 2}), "2 does not exist"),
        (lambda: open_events(pa.table({"arm": [1]}), "csv"), "unknown format 'csv'"),
        (lambda: events_to_obp(open_log), "no reward yet"),
    ):
        with pytest.raises(FeelgoodError, match=sentence):
            wrong()
