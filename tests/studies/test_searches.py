"""Which candidate wins, and what the table of all of them says."""

import csv
import dataclasses
import io
import json
import math

import numpy as np
import pytest
from made_results import result

from feelgood.engine.results import AgentResult
from feelgood.studies.searches import (
    COLUMNS,
    best_candidate,
    by_merit,
    candidate_rows,
    candidates_csv,
    searched_values,
)

NAN = math.nan


def candidates(*values: list[float]) -> list[AgentResult]:
    return [
        dataclasses.replace(result("a", own), settings={"alpha": float(i), "rho": 1.0})
        for i, own in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("values", "order"),
    [
        pytest.param([[3.0, 5.0], [1.0, 4.0], [2.0, 9.0]], [1, 0, 2], id="the lower mean"),
        pytest.param([[2.0, 4.0], [4.0, 2.0], [3.0, 3.0]], [0, 1, 2], id="ties: the earlier"),
        pytest.param([[9.0, 9.0], [1.0, NAN]], [0, 1], id="a diverged chain loses"),
        pytest.param([[NAN, NAN], [NAN, 9.0], [1.0, NAN]], [2, 1, 0], id="the fewest, the lower"),
        pytest.param([[NAN, NAN], [NAN, NAN]], [0, 1], id="all diverged: as it is"),
    ],
)
def test_the_best_has_the_lowest_mean_and_nobody_is_left_out(
    values: list[list[float]], order: list[int]
) -> None:
    results = candidates(*values)
    assert by_merit(results) == order
    assert best_candidate(results) == order[0]


def test_rows_hold_means_and_paired_differences() -> None:
    results = candidates([4.0, 6.0, 9.0], [2.0, 3.0, 5.5], [NAN, NAN, 1.0])
    first, second, third = candidate_rows(results)
    assert [r["best"] for r in (first, second, third)] == [False, True, False]
    assert [r["searched"] for r in (first, second, third)] == [{"alpha": i} for i in (0, 1, 2)]
    assert second["regret"] == pytest.approx(3.5)
    assert second["difference"] == pytest.approx(np.mean([-2.0, -3.0, -3.5]))
    assert second["low"] < 3.5 < second["high"]
    assert second["difference_low"] < second["difference"] < second["difference_high"] < 0
    assert first["difference"] == first["difference_low"] == 0.0
    assert third["diverged"] == 2 and third["regret"] == 1.0 and third["low"] is None


def test_the_table_opens_elsewhere() -> None:
    rows = candidate_rows(candidates([4.0, 6.0], [NAN, NAN]))
    read = list(csv.DictReader(io.StringIO(candidates_csv(rows))))
    assert tuple(read[0]) == COLUMNS
    assert [line["best"] for line in read] == ["yes", "no"]
    assert json.loads(read[1]["settings"]) == {"alpha": 1.0, "rho": 1.0}
    assert float(read[0]["regret"]) == 5.0 and read[1]["regret"] == ""


def test_what_all_share_was_not_searched() -> None:
    assert searched_values(candidates([1.0], [2.0])) == [{"alpha": 0.0}, {"alpha": 1.0}]
    assert searched_values(candidates([1.0])) == [{}]
