"""The pages about logs: everything that they say is escaped, and nothing is fetched."""

import re

import numpy as np

from feelgood.evaluation.evaluating import LogEvaluation
from feelgood.evaluation.judging import judge_agent
from feelgood.evaluation.log_arrays import LogArrays
from feelgood.evaluation.log_summary import summarise
from feelgood.logs.event_schema import make_events
from feelgood.report.log_page import evaluation_page, log_page
from feelgood.stats.off_policy import direct_method

ARMS = ("<b>left", 'right & "up"')


def some_log(rows: int = 300) -> LogArrays:
    rng = np.random.default_rng(0)
    return LogArrays(
        ARMS,
        np.ones((rows, 1), np.float32),
        np.ones((rows, 2), bool),
        rng.integers(0, 2, rows),
        rng.normal(size=rows),
        np.ones(rows),
        np.full(rows, 0.5),
    )


def checked(page: str) -> str:
    assert "<b>left" not in page and "&lt;b&gt;left" in page
    assert "<script" not in page
    assert not re.findall(r'(?:src|href)="(?!#)[^"]+"', page)
    assert page.count("<svg") == page.count("<figure") >= 2
    return page


def test_the_page_of_an_evaluation() -> None:
    log = some_log()
    chances = np.tile([0.9, 0.1], (len(log), 1))
    values = tuple(
        judge_agent(agent, log, law, np.zeros_like(law)) for agent, law in (("one", chances),)
    )
    found = LogEvaluation(
        direct_method(log.rewards), values, len(log), 100, 4, 0.95, ("A <note>.",)
    )
    page = checked(evaluation_page(found, "<i>log"))
    for text in ("doubly robust", "replay", "one", "A &lt;note&gt;.", "&lt;i&gt;log"):
        assert text in page


def test_the_page_of_a_log() -> None:
    log = some_log()
    columns = {
        "arm": [ARMS[k] for k in log.played],
        "reward": log.rewards,
        "probability": log.probabilities,
    }
    events = make_events(columns, "test")
    page = checked(log_page(summarise(events), "log", ("A note.",)))
    for text in ("300 decisions", "A note.", "mean reward", "Probabilities"):
        assert text in page
