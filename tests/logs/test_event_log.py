"""The log on disk: what was acknowledged is there, after kills at any instant."""

import errno
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc

from feelgood import FeelgoodError
from feelgood.logs.event_log import EventLog
from feelgood.logs.event_schema import event_schema, make_events
from feelgood.logs.log_reading import read_log

ARMS = ["a", "b", "c"]

#: Writes decisions and every second reward for ever, and prints each id once it is written.
WRITER = """
import sys
import numpy as np
from feelgood.logs.event_log import EventLog
log = EventLog(sys.argv[1])
first = int(sys.argv[2])
for id in range(first, first + 10**9):
    context = np.full(5, id, np.float32)
    log.decision(id, arm="b", arms=["a", "b"], context=context, pmf=[0.25, 0.75], probability=0.75)
    print("d", id, flush=True)
    if id % 2:
        log.reward(id, float(id), weight=0.5)
        print("r", id, flush=True)
"""


def write_some(path: Path, ids: range, **options: object) -> None:
    with EventLog(path, **options) as log:
        for id in ids:
            pmf = np.array([0.5, 0.25, 0.25])
            log.decision(id, arm="b", arms=ARMS, context=[id, 0.5], pmf=pmf, probability=0.25)


def test_rewards_find_their_decisions_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "log.arrow"
    write_some(path, range(4))
    with EventLog(path) as log:
        for id, paid in ((2, 20.0), (0, 0.5), (99, 1.0), (2, 21.0)):
            log.reward(id, paid, weight=2.0)
    events = read_log(path)
    assert events.table.schema == event_schema()
    assert events.table["id"].to_pylist() == [0, 1, 2, 3]
    assert events.table["reward"].to_pylist() == [0.5, None, 20.0, None]
    assert events.table["weight"].to_pylist() == [2.0, 1.0, 2.0, 1.0]
    assert events.table["context"].to_pylist()[3] == [3.0, 0.5]
    assert events.arms == ("a", "b", "c")
    assert events.notes == (
        "1 rewards belong to no decision: left out.",
        "1 rewards came for decisions that had one: left out.",
    )


def test_every_cut_of_the_last_record_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "log.arrow"
    write_some(path, range(2))
    whole = path.stat().st_size
    write_some(path, range(2, 3))
    content = path.read_bytes()
    for end in [*range(whole, len(content), 5), len(content) - 1]:
        path.write_bytes(content[:end])
        events = read_log(path)
        assert events.table["id"].to_pylist() == [0, 1]
        assert len(events.notes) == (end > whole)
        if end % 97 == 1:  # the next writer goes on behind the last whole record
            write_some(path, range(7, 9))
            assert read_log(path).table["id"].to_pylist() == [0, 1, 7, 8]
            assert not read_log(path).notes


def test_a_cut_head_is_an_empty_log(tmp_path: Path) -> None:
    path = tmp_path / "log.arrow"
    write_some(path, range(1))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(FeelgoodError, match="has no decisions"):
        read_log(path)
    write_some(path, range(3))
    assert len(read_log(path)) == 3


def test_damage_in_the_middle_is_never_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "log.arrow"
    write_some(path, range(1))
    middle = path.stat().st_size
    write_some(path, range(1, 5))
    content = bytearray(path.read_bytes())
    content[middle + 4 : middle + 8] = b"\xff\xff\xff\x7f"
    path.write_bytes(content)
    for attempt in (lambda: read_log(path), lambda: EventLog(path)):
        with pytest.raises(FeelgoodError, match=f"damaged at byte {middle:,}"):
            attempt()
    assert path.read_bytes() == content


def test_what_was_acknowledged_survives_kills(tmp_path: Path) -> None:
    path = tmp_path / "log.arrow"
    rng = np.random.default_rng(0)
    told: dict[str, set[int]] = {"d": set(), "r": set()}
    for cycle in range(2):
        command = [sys.executable, "-c", WRITER, str(path), str(cycle * 10**6)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            lines = [child.stdout.readline()]  # it has begun
            time.sleep(rng.uniform(0.0, 0.2))
            os.kill(child.pid, signal.SIGKILL)
            lines += child.stdout.read().splitlines(keepends=True)
        assert child.returncode == -signal.SIGKILL
        for line in lines:
            if line.endswith("\n"):  # the pipe, too, may be torn
                kind, id = line.split()
                told[kind].add(int(id))
        events = read_log(path)
        ids = np.array(events.table["id"].to_pylist())
        rewards = events.numbers("reward")
        assert told["d"] <= set(ids.tolist())
        assert told["r"] <= set(ids[np.isfinite(rewards)].tolist())
        assert (rewards[np.isfinite(rewards)] == ids[np.isfinite(rewards)]).all()
        contexts = np.stack(events.table["context"].to_numpy())
        assert (contexts == ids[:, None].astype(np.float32)).all()
    assert len(told["d"]) > 2


def test_gathered_records_are_written_by_flush_and_close(tmp_path: Path) -> None:
    path = tmp_path / "log.arrow"
    log = EventLog(path, batch=3)
    for id in range(4):
        log.decision(str(id), arm="a", arms=ARMS, arm_features=np.ones((3, 2)))
    assert len(read_log(path)) == 3
    log.flush()
    assert read_log(path).table["arm_features"].to_pylist() == [[[1.0, 1.0]] * 3] * 4
    log.reward("0", 1.0)
    log.close()
    assert read_log(path).table["reward"].to_pylist() == [1.0, None, None, None]
    with pytest.raises(FeelgoodError, match="is closed"):
        log.reward("1", 1.0)


def test_decisions_of_a_bandit_are_recorded(tmp_path: Path) -> None:
    fields = {"id": 3, "arm": 7, "arms": (5, 7), "pmf": np.array([0.25, 0.75]), "version": 9}
    decision = SimpleNamespace(**fields, probability=0.75)
    with EventLog(tmp_path / "log.arrow") as log:
        log.record(decision, [0.5, 1.0], time=1_000_000)
        log.record(SimpleNamespace(**{**vars(decision), "id": 4}), np.eye(2))
    one, two = read_log(tmp_path / "log.arrow").table.to_pylist()
    assert (one["arm"], one["arms"], one["probability"]) == ("7", ["5", "7"], 0.75)
    assert (one["context"], one["pmf"], one["version"]) == ([0.5, 1.0], [0.25, 0.75], 9)
    assert one["time"].isoformat() == "1970-01-01T00:00:01+00:00"
    assert two["context"] is None and two["arm_features"] == [[1.0, 0.0], [0.0, 1.0]]


def test_threads_may_share_a_log(tmp_path: Path) -> None:
    with EventLog(tmp_path / "log.arrow", batch=7) as log:

        def work(first: int) -> None:
            for id in range(first, first + 50):
                log.decision(id, arm="a", arms=ARMS)
                log.reward(id, float(id))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(0, 400, 50)))
    events = read_log(tmp_path / "log.arrow")
    assert sorted(events.table["id"].to_pylist()) == list(range(400))
    assert events.table["reward"].to_pylist() == events.table["id"].to_pylist()


def test_a_full_disk_leaves_the_records_before(tmp_path: Path) -> None:
    """Half of a record is written, then the disk is full: it is taken back, and may come again."""

    class Full:
        closed = False

        def __init__(self, file: Any) -> None:
            self.file = file

        def write(self, content: memoryview) -> int:
            self.file.write(content[: len(content) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")

        def truncate(self, size: int) -> None:
            self.file.truncate(size)

    path = tmp_path / "log.arrow"
    write_some(path, range(2))
    before = path.read_bytes()
    log = EventLog(path)
    good, log._file = log._file, Full(log._file)  # type: ignore[assignment]
    with pytest.raises(FeelgoodError, match="free some space"):
        log.reward(0, 1.0)
    assert path.read_bytes() == before
    log._file = good
    log.reward(0, 1.0)
    log.close()
    assert read_log(path).table["reward"].to_pylist() == [1.0, None]


def test_any_arrow_library_opens_it(tmp_path: Path) -> None:
    path = tmp_path / "log.arrow"
    write_some(path, range(3))
    with pa.OSFile(str(path)) as file:
        table = ipc.open_stream(file).read_all()
    assert table["id"].to_pylist() == [0, 1, 2]


def test_whole_events_are_appended(tmp_path: Path) -> None:
    events = make_events({"arm": ["a", "b"], "reward": [1.0, None]}, "test")
    with EventLog(tmp_path / "log.arrow", sync=True) as log:
        log.append(events)
    assert read_log(tmp_path / "log.arrow").table == events.table


def test_a_reward_that_came_with_its_decision_stays(tmp_path: Path) -> None:
    with EventLog(tmp_path / "log.arrow") as log:
        log.append(make_events({"arm": ["a", "b"], "reward": [1.0, None]}, "test"))
        for id in (0, 1):
            log.reward(id, 5.0)
    events = read_log(tmp_path / "log.arrow")
    assert events.table["reward"].to_pylist() == [1.0, 5.0]
    assert events.notes == ("1 rewards came for decisions that had one: left out.",)


def test_misuse_is_told_in_a_sentence_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.arrow"
    with EventLog(path) as log:
        log.decision(1, arm="a", arms=ARMS)
        before = path.read_bytes()
        for wrong, sentence in (
            (lambda: log.decision("x", arm="a", arms=ARMS), "ids of the type int64"),
            (lambda: log.decision(2, arm="z", arms=ARMS), "is not once among the texts"),
            (lambda: log.decision(2, arm="a", arms=["a", "a"]), "is not once among the texts"),
            (lambda: log.decision(2, arm="a", arms=ARMS, pmf=[0.5, 0.5]), "2 rows for 3 arms"),
            (lambda: log.decision(2, arm="a", arms=ARMS, pmf=[0.5, 0.5, 0.5]), "add up to 1"),
            (lambda: log.decision(2, arm="a", arms=ARMS, probability=0), "above 0"),
            (lambda: log.decision(2, arm="a", arms=ARMS, context=[np.nan]), "with one axis"),
            (lambda: log.decision(2, arm="a", arms=ARMS, context="x"), "with one axis"),
            (lambda: log.decision(2, arm="a", arms=ARMS, arm_features=[1.0]), "with 2 axes"),
            (lambda: log.reward(1, 1.0, weight=-1), "weight = -1 is not allowed"),
            (lambda: log.decision(1.5, arm="a", arms=ARMS), "use a number or a text"),
            (lambda: log.reward(1, float("nan")), "reward = nan is not allowed"),
            (lambda: EventLog(path), "written by someone else"),
            (lambda: EventLog(path, batch=0), "batch = 0 is not allowed"),
        ):
            with pytest.raises(FeelgoodError, match=sentence):
                wrong()
        assert path.read_bytes() == before
    other = tmp_path / "other.arrow"
    other.write_text("no log")
    with pytest.raises(FeelgoodError, match="no Arrow stream"):
        read_log(other)


def test_the_probability_follows_from_the_pmf() -> None:
    columns = {
        "arm": ["b", "a"],
        "arms": [["a", "b"], ["c", "a"]],
        "pmf": [[0.25, 0.75], [0.5] * 2],
    }
    assert make_events(columns, "test").table["probability"].to_pylist() == [0.75, 0.5]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"arm": ["a"], "arms": [["b"]]}, "arm = 'a' in row 0: list it once"),
        ({"arm": ["a", "a"], "probability": [0.5, 0.0]}, "probability = 0.0 in row 1"),
        ({"arm": ["a"], "probability": [1.5]}, "probability = 1.5 in row 0"),
        ({"arm": ["a"], "pmf": [[0.5, 0.5]]}, "the length of pmf = 2 in row 0"),
        ({"arm": ["a"], "pmf": [[1.0]], "probability": [0.5]}, "make it what pmf says"),
        ({"arm": ["a"], "pmf": [[0.5]]}, "the sum of pmf = 0.5 in row 0"),
        ({"arm": ["a"], "context": [[float("inf")]]}, "not finite"),
        ({"arm": ["a"], "reward": ["much"]}, "column 'reward' of test is not of the type double"),
        ({"arm": ["a", None]}, "no arm in row 1"),
        ({"arm": ["a", "a"], "id": ["x", "x"]}, "two decisions with the id 'x'"),
        ({"arm": ["a"], "weight": [-1.0]}, "weight = -1.0 in row 0"),
        ({"arm": []}, "has no decisions"),
    ],
)
def test_events_that_contradict_themselves_are_refused(columns: dict, sentence: str) -> None:
    with pytest.raises(FeelgoodError, match=sentence):
        make_events(columns, "test")
