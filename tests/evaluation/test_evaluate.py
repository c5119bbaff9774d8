"""Judging agents on a log: stand-ins whose value is known, and who has seen what."""

import numpy as np
import pyarrow as pa
import pytest

from feelgood import FeelgoodError
from feelgood.evaluation.evaluating import LogEvaluation, evaluate
from feelgood.evaluation.judging import judge_agent
from feelgood.evaluation.log_arrays import LogArrays, log_arrays
from feelgood.evaluation.progressive import model_rewards, walk
from feelgood.evaluation.reward_model import RidgeModel
from feelgood.logs.event_schema import Events, make_events, rows_as_lists

#: P(|z| > 4.9) = 1e-6.
FARTHEST = 4.9
#: Chance of a reward for two contexts and three arms, and the law of the log.
CHANCE = np.array([[0.1, 0.5, 0.8], [0.7, 0.3, 0.2]])
LOGGED = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
ARMS = ["left", "middle", "right"]


def made_log(decisions: int, seed: int = 0, known: bool = True, masked: bool = False) -> Events:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, decisions)
    offered = np.ones((decisions, 3), bool)
    if masked:
        offered[np.arange(decisions), rng.integers(0, 3, decisions)] = rng.random(decisions) < 0.5
    laws = LOGGED[x] * offered
    laws /= laws.sum(axis=1, keepdims=True)
    arm = (rng.random((decisions, 1)) > np.cumsum(laws, axis=1)).sum(axis=1)
    columns = {
        "arm": [ARMS[a] for a in arm],
        "arms": [[ARMS[k] for k in np.flatnonzero(row)] for row in offered],
        "context": rows_as_lists(np.eye(2, dtype=np.float32)[x], pa.float32()),
        "reward": (rng.random(decisions) < CHANCE[x, arm]).astype(float),
        "probability": laws[np.arange(decisions), arm] if known else None,
    }
    return make_events(columns, "test")


class Fixed:
    """A policy that never learns: probabilities by context, among the arms that it is told of."""

    def __init__(self, law: np.ndarray) -> None:
        self.law, self.learned, self.arms = law, 0, tuple(ARMS)

    def learn(self, context: object, arm: list, reward: object, weight: object = None) -> None:
        self.learned += len(arm)

    def pmf(self, x: np.ndarray, mask: list | None = None) -> np.ndarray:
        chances = self.law[np.argmax(x[:, :2], axis=1)]
        chances = chances[:, [ARMS.index(name) for name in self.arms if name in (mask or ARMS)]]
        return chances / chances.sum(axis=1, keepdims=True)


class Counting(Fixed):
    """Plays the arm with the highest mean so far, and most arms a little."""

    def __init__(self) -> None:
        super().__init__(np.full((2, 3), 1 / 3))
        self.paid, self.seen = np.zeros((2, 3)), np.zeros((2, 3))

    def learn(self, context: np.ndarray, arm: list, reward: np.ndarray, weight: object = None):
        cell = np.argmax(context[:, :2], axis=1), [ARMS.index(name) for name in arm]
        np.add.at(self.paid, cell, reward)
        np.add.at(self.seen, cell, 1)
        best = (self.paid / np.maximum(self.seen, 1)).argmax(axis=1)
        self.law = 0.1 / 3 + 0.9 * np.eye(3)[best]


class Chains(Fixed):
    """Has probabilities only where there are several chains."""

    def __init__(self, members: int) -> None:
        super().__init__(np.full((2, 3), 1 / 3))
        self.members = members

    def pmf(self, x: np.ndarray, mask: list | None = None) -> np.ndarray | None:
        return super().pmf(x, mask) if self.members > 1 else None


POLICY = np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
VALUE = float((POLICY * CHANCE).sum(axis=1).mean())


def stand_in(name: str, log: LogArrays, members: int) -> Fixed:
    kinds = {
        "good": lambda: Fixed(POLICY),
        "log": lambda: Fixed(LOGGED),
        "uniform": lambda: Fixed(np.full((2, 3), 1 / 3)),
        "learner": Counting,
        "chains": lambda: Chains(members),
    }
    made = kinds[name]()
    made.arms = log.arms
    return made


def judged(events: Events, *names: str, **options: object) -> LogEvaluation:
    return evaluate(events, list(names), make=stand_in, **options)


def test_values_of_known_policies_are_found() -> None:
    """20,000 decisions: each estimate within 4.9 of its own errors of the truth (1e-6 each)."""
    found = judged(made_log(20_000), "good", "log")
    good, own = found.values
    assert list(good.values) == ["dr", "snips", "ips", "dm"]  # the log is not uniform: no replay
    for name in ("dr", "snips", "ips"):
        assert abs(good.values[name].value - VALUE) < FARTHEST * good.values[name].error, name
    # A policy that is the log's own earns what the log earned, by weights of 1.
    assert own.values["ips"].value == pytest.approx(found.log.value, abs=1e-12)
    assert own.effective == found.decisions == 19_000
    assert good.values["dr"].error < good.values["ips"].error
    assert not found.warnings
    assert found.sentence.startswith("good earns most: +0.")


def test_masked_arms_have_no_probability() -> None:
    events = made_log(20_000, seed=1, masked=True)
    (good,) = judged(events, "good").values
    arrays = log_arrays(events, [])
    x, order = np.argmax(arrays.contexts[:, :2], axis=1), [ARMS.index(a) for a in arrays.arms]
    laws, chance = POLICY[x][:, order] * arrays.offered, CHANCE[x][:, order]
    truth = (laws / laws.sum(axis=1, keepdims=True) * chance).sum(axis=1)[1_000:].mean()
    assert abs(good.values["dr"].value - truth) < FARTHEST * good.values["dr"].error
    assert sum(good.shares.values()) == pytest.approx(1.0)


def test_no_agent_has_seen_what_it_is_judged_on() -> None:
    """The learner is asked about a block before it learns from it, and never learns the last."""
    asked: list[tuple[int, int]] = []

    class Spy(Fixed):
        def pmf(self, x: np.ndarray, mask: list | None = None) -> np.ndarray:
            asked.append((self.learned, len(x)))
            return super().pmf(x, mask)

    log = log_arrays(made_log(103), [])
    spy = Spy(POLICY)
    chances = walk(spy, log, 4)
    assert chances is not None and len(chances) == 103 - 25
    assert asked == [(0, 1), (25, 26), (51, 26), (77, 26)]
    assert spy.learned == 77


def test_an_agent_that_learns_beats_the_log() -> None:
    found = judged(made_log(5_000, seed=2), "uniform", "learner")
    uniform, learner = found.values
    assert learner.main.value > uniform.main.value + 0.1
    assert "learner earns most" in found.sentence
    assert learner.shares["right"] > 0.4


def test_the_model_gives_up_on_noise() -> None:
    """Rewards that nothing explains are predicted by their mean, once blocks have shown it."""
    rng = np.random.default_rng(3)
    n = 400
    columns = {
        "arm": [ARMS[a] for a in rng.integers(0, 3, n)],
        "context": rng.normal(size=(n, 60)).astype(np.float32).tolist(),
        "reward": rng.normal(size=n),
    }
    log = log_arrays(make_events(columns, "test"), [])
    model = RidgeModel(log)
    for start in range(0, n, 100):
        model.learn(log.rows(start, start + 100))
    assert model.precision == 1e4
    assert np.abs(model.predict(log) - log.rewards.mean()).max() < 0.5


def test_the_model_never_sees_the_decision_that_it_is_used_for() -> None:
    """Rewards of the last block do not matter for its model, and those before do."""
    events = made_log(300, seed=8)
    log = log_arrays(events, [])
    before = model_rewards(log, 3)
    rewards = log.rewards.copy()
    rewards[200:] += 10.0
    changed = model_rewards(LogArrays(**{**vars(log), "rewards": rewards}), 3)
    assert (changed == before).all()
    rewards[:200] += 1.0
    changed = model_rewards(LogArrays(**{**vars(log), "rewards": rewards}), 3)
    assert changed == pytest.approx(before + 1.0)


def test_the_model_is_ridge_regression() -> None:
    log = log_arrays(made_log(500, seed=4), [])
    model = RidgeModel(log)
    model.learn(log.rows(0, 300))
    assert model.precision == 1e4  # nothing is known yet
    model.learn(log.rows(300, 500))
    assert model.precision <= 100.0  # the rewards do depend on the context
    found = model.predict(log)
    mean = log.rewards.mean()
    for arm in range(3):
        mine = log.played == arm
        x, r = log.contexts[mine].astype(float), log.rewards[mine] - mean
        shrunk = x.T @ x + model.precision * np.eye(x.shape[1])
        slope = np.linalg.solve(shrunk, x.T @ r)
        assert found[:, arm] == pytest.approx(mean + log.contexts @ slope, abs=1e-6)


def test_chains_are_taken_where_the_rule_has_no_formula() -> None:
    (one,) = judged(made_log(400), "chains", members=8).values
    assert one.members == 8
    with pytest.raises(FeelgoodError, match="members = 1 is not allowed"):
        judged(made_log(400), "chains", members=1)


def test_without_probabilities_only_replay_and_the_model_are_left() -> None:
    found = judged(made_log(400, known=False), "good")
    assert list(found.values[0].values) == ["dm", "replay"]
    assert "lacks probabilities" in found.notes[-1]


def test_thin_overlap_is_told() -> None:
    found = judged(made_log(300), "good", blocks=2)
    assert "too thin" in found.warnings[0] and "warning about good" in found.sentence


def test_replay_is_there_for_a_uniform_log() -> None:
    log = log_arrays(made_log(300, seed=5), [])
    uniform = judge_agent(
        "x",
        LogArrays(**{**vars(log), "probabilities": np.full(300, 1 / 3)}),
        np.full((300, 3), 1 / 3),
        np.zeros((300, 3)),
    )
    assert uniform.values["replay"].value == pytest.approx(log.rewards.mean())


def test_features_of_arms_are_used_where_there_is_no_context() -> None:
    features = np.arange(12.0).reshape(2, 3, 2).tolist()
    columns = {"arm": ["b", "a"], "arms": [["a", "b", "c"]] * 2, "arm_features": features}
    log = log_arrays(make_events(columns | {"reward": [1.0, 0.0]}, "test"), [])
    assert log.shared and log.contexts.shape == (2, 3, 2)
    assert (log.contexts[1, log.played[1]] == [6.0, 7.0]).all()
    model = RidgeModel(log)
    model.learn(log)
    assert model.predict(log).shape == (2, 3)


def test_contexts_get_a_constant_unless_they_have_one() -> None:
    columns = {"arm": ["a", "b", "a"], "reward": [1.0, 0.0, 1.0]}
    bare = log_arrays(make_events(columns, "test"), [])
    assert (bare.contexts == 1.0).all() and bare.contexts.shape == (3, 1)
    positions = make_events(columns | {"context": [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]}, "test")
    assert log_arrays(positions, []).contexts.shape == (3, 2)
    numbers = make_events(columns | {"context": [[1.0], [2.0], [3.0]]}, "test")
    assert log_arrays(numbers, []).contexts.shape == (3, 2)
    assert log_arrays(numbers, [], intercept=False).contexts.shape == (3, 1)


def test_misuse_is_told_in_a_sentence() -> None:
    few = {"arm": ["a", "b"]}
    for wrong, sentence in (
        (lambda: judged(made_log(10), "good", blocks=11), "blocks = 11 is not allowed"),
        (lambda: judged(made_log(10), "good", level=2), "level = 2 is not allowed"),
        (lambda: judged(make_events(few, "test"), "good"), "no decision of the log has a reward"),
        (
            lambda: judged(make_events({"arm": ["a"], "reward": [1.0]}, "test"), "good"),
            "only the arm 'a'",
        ),
        (lambda: judged(made_log(10)), "no agent was named"),
    ):
        with pytest.raises(FeelgoodError, match=sentence):
            wrong()
