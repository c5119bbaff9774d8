"""The summary of a log: shares, rewards, probabilities that fit or do not, drift.

The checks of the summary have a level of 1 % each, so a sound log is told to be unsound now and
then; the logs here have fixed seeds, and the unsound ones are far from sound.
"""

import numpy as np
import pyarrow as pa
import pytest

from feelgood.evaluation.log_summary import summarise
from feelgood.logs.event_schema import Events, make_events, rows_as_lists

ARMS = ["a", "b"]


def made(decisions: int = 2_000, lie: float = 0.0, drift: float = 0.0, pmf: bool = True) -> Events:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, decisions)
    arm = (rng.random(decisions) > p).astype(int)
    told = np.clip(p + lie, 0.01, 0.99)
    late = np.arange(decisions) >= decisions // 2
    x = rng.normal(size=(decisions, 3)) + drift * late[:, None] * [0, 1, 0]
    columns = {
        "arm": [ARMS[k] for k in arm],
        "arms": [ARMS] * decisions,
        "reward": rng.normal(size=decisions) + arm + drift * late,
        "context": rows_as_lists(x.astype(np.float32), pa.float32()),
        "pmf": rows_as_lists(np.stack([told, 1 - told], axis=1), pa.float64()) if pmf else None,
        "probability": np.where(arm == 0, told, 1 - told) if pmf else None,
        "time": pa.array(np.arange(decisions) * 1_000_000, pa.timestamp("us", "UTC")),
    }
    return make_events(columns, "test")


def test_numbers_are_those_of_the_log() -> None:
    events = made()
    found = summarise(events)
    rewards, labels = events.numbers("reward"), np.array(events.table["arm"].to_pylist())
    assert (found.decisions, found.rewarded) == (2_000, 2_000)
    assert found.reward == pytest.approx(rewards.mean())
    assert (found.first, found.last) == ("1970-01-01 00:00:00+00:00", "1970-01-01 00:33:19+00:00")
    for arm in found.arms:
        assert arm.played == (labels == arm.arm).sum() and arm.offered == 2_000
        assert arm.reward == pytest.approx(rewards[labels == arm.arm].mean())
    assert sum(arm.expected for arm in found.arms) == pytest.approx(2_000)
    first = found.parts[0]
    assert found.parts[-1].end == 2_000 and len(found.parts) == 24
    assert first.shares["a"] == (labels[: first.end] == "a").mean()
    assert first.reward == pytest.approx(rewards[: first.end].mean())
    assert found.findings == (
        "All arms were played about as often as their probabilities say.",
        "Neither rewards nor contexts differ between the halves of the log.",
    )


def test_wrong_probabilities_and_drift_are_told() -> None:
    assert "the logged probabilities are wrong" in summarise(made(lie=0.1)).findings[0]
    found = summarise(made(drift=0.5)).findings
    assert "Rewards changed by +0." in found[1]
    assert "1 of 3 numbers of the context changed" in found[2] and "number 1" in found[2]


def test_unknown_probabilities_are_told() -> None:
    assert "2,000 decisions have no probability" in summarise(made(pmf=False)).findings[0]


def test_tiny_logs_have_a_summary() -> None:
    found = summarise(make_events({"arm": ["a"], "reward": [None]}, "test"))
    assert found.rewarded == 0 and np.isnan(found.reward)
