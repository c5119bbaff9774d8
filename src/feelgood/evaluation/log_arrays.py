"""A log as arrays: what learners and estimators need of it."""

import dataclasses

import numpy as np
from jaxtyping import Bool, Float, Int

from feelgood.core.arrow import pc
from feelgood.core.errors import FeelgoodError
from feelgood.logs.event_schema import Events
from feelgood.logs.obp_feedback import context_matrix


@dataclasses.dataclass(frozen=True)
class LogArrays:
    """Decisions that have a reward, in the order of the log.

    `contexts` are `[decisions, numbers]`, or with `shared` `[decisions, arms, numbers]`: the
    features of each arm, 0 for one that was not offered. `probabilities` are NaN where unknown.
    """

    arms: tuple[str, ...]
    contexts: Float[np.ndarray, "decisions ..."]
    offered: Bool[np.ndarray, "decisions arms"]
    played: Int[np.ndarray, " decisions"]
    rewards: Float[np.ndarray, " decisions"]
    weights: Float[np.ndarray, " decisions"]
    probabilities: Float[np.ndarray, " decisions"]
    shared: bool = False

    def __len__(self) -> int:
        return len(self.played)

    def rows(self, start: int, stop: int) -> "LogArrays":
        """Some of the decisions."""
        names = ("contexts", "offered", "played", "rewards", "weights", "probabilities")
        return dataclasses.replace(self, **{n: getattr(self, n)[start:stop] for n in names})


def log_arrays(events: Events, notes: list[str], *, intercept: bool = True) -> LogArrays:
    """The arrays of a log. The context is what agents see, or the arms' own features without one.

    With `intercept`, a context that lacks a constant gets one, as its last number.
    """
    rewards = events.numbers("reward")
    known = np.isfinite(rewards)
    if not known.any():
        raise FeelgoodError("no decision of the log has a reward: nothing can be learned from it.")
    if not known.all():
        notes.append(f"{int((~known).sum()):,} decisions have no reward: left out.")
        events = Events(events.table.filter(known))
        rewards = rewards[known]
    arms = events.arms
    if len(arms) < 2:
        raise FeelgoodError(f"the log offers only the arm '{arms[0]}': a bandit needs at least 2.")
    code = {name: place for place, name in enumerate(arms)}
    lists = events.table["arms"].combine_chunks()
    row_of = pc.list_parent_indices(lists).to_numpy()
    codes = np.array([code[name] for name in lists.flatten().to_pylist()])
    offered = np.zeros((len(events), len(arms)), bool)
    offered[row_of, codes] = True
    contexts = context_matrix(events)
    shared = contexts is None and not events.table["arm_features"].null_count
    if contexts is None:
        contexts = (
            _arm_features(events, row_of, codes, len(arms))
            if shared
            else np.zeros((len(events), 0), np.float32)
        )
    if not shared and (not contexts.shape[1] or (intercept and not _has_constant(contexts))):
        contexts = np.concatenate([contexts, np.ones((len(events), 1), np.float32)], axis=1)
    return LogArrays(
        arms,
        contexts,
        offered,
        np.array([code[name] for name in events.table["arm"].to_pylist()]),
        rewards,
        events.numbers("weight"),
        events.numbers("probability"),
        shared,
    )


def _has_constant(contexts: np.ndarray) -> bool:
    """Whether a sum of columns is constant: one of them, or one per value of something."""
    ones = np.ones(len(contexts))
    fit, *_ = np.linalg.lstsq(contexts.astype(np.float64), ones, rcond=None)
    return bool(np.abs(contexts @ fit - ones).max() < 1e-4)


def _arm_features(events: Events, row_of: np.ndarray, codes: np.ndarray, arms: int) -> np.ndarray:
    vectors = pc.list_flatten(events.table["arm_features"].combine_chunks())
    lengths = np.unique(pc.list_value_length(vectors).to_numpy())
    if len(lengths) != 1 or not lengths[0]:
        raise FeelgoodError("the features of arms differ in length: give all arms the same ones.")
    out = np.zeros((len(events), arms, int(lengths[0])), np.float32)
    out[row_of, codes] = np.asarray(vectors.flatten().to_numpy()).reshape(len(codes), -1)
    return out
