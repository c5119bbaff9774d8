"""Dictionaries of logged decisions as Open Bandit Pipeline (`obp`) has them.

Saito et al., "Open Bandit Dataset and Pipeline", NeurIPS 2021. Keys: `n_rounds`, `n_actions`,
`action`, `reward`, `pscore`, `context`, `position` and `pi_b`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from feelgood.core.arrow import pa
from feelgood.core.errors import FeelgoodError, shown
from feelgood.logs.encoding import joined_contexts, one_column_each
from feelgood.logs.event_schema import Events, make_events, rows_as_lists, same_in_all_rows


def events_from_obp(feedback: Mapping[str, Any], called: str = "the dictionary") -> Events:
    """Events from a dictionary of `obp`; arms are called "0", "1", …

    Where there are several positions, the context ends with one number per position: the log's
    probabilities are those of an item at its position.
    """
    if not isinstance(feedback, Mapping) or not {"action", "reward"} <= set(feedback):
        raise FeelgoodError(f"{shown(feedback)} is no dictionary of obp: give action and reward.")
    actions = np.asarray(feedback["action"])
    rows = len(actions)
    if actions.ndim != 1 or actions.dtype.kind not in "iu" or (rows and actions.min() < 0):
        raise FeelgoodError(f"action = {shown(actions)} is not allowed: use whole numbers from 0.")
    arms = int(feedback.get("n_actions") or actions.max(initial=0) + 1)
    if rows and actions.max() >= arms:
        raise FeelgoodError(f"action = {actions.max()} does not exist: n_actions is {arms}.")
    position = feedback.get("position")
    several = position is not None and len(np.unique(position)) > 1
    columns: dict[str, Any] = {
        "arm": pa.array([str(a) for a in actions.tolist()], pa.string()),
        "arms": same_in_all_rows([str(a) for a in range(arms)], rows, pa.string()),
    }
    for name, key in (("reward", "reward"), ("probability", "pscore")):
        given = feedback.get(key)
        columns[name] = None if given is None else np.asarray(given, np.float64)
    seen = feedback.get("context")
    context = joined_contexts(
        None if seen is None else np.asarray(seen),
        one_column_each(np.asarray(position)) if several else None,
    )
    columns["context"] = None if context is None else rows_as_lists(context, pa.float32())
    if feedback.get("pi_b") is not None:
        laws = np.asarray(feedback["pi_b"], np.float64)
        at = np.asarray(position) if several else np.zeros(rows, int)
        columns["pmf"] = rows_as_lists(laws[np.arange(rows), :, at], pa.float64())
    return make_events(columns, called)


def events_to_obp(events: Events) -> dict[str, Any]:
    """The dictionary of `obp` for events that all have a reward; `pscore` needs probabilities."""
    arms = {name: code for code, name in enumerate(events.arms)}
    rewards = events.numbers("reward")
    if np.isnan(rewards).any():
        raise FeelgoodError(
            f"{int(np.isnan(rewards).sum()):,} decisions have no reward yet: leave them out first."
        )
    chances = events.numbers("probability")
    table = events.table
    out: dict[str, Any] = {
        "n_rounds": len(events),
        "n_actions": len(arms),
        "action": np.array([arms[name] for name in table["arm"].to_pylist()]),
        "position": None,
        "reward": rewards,
        "pscore": None if np.isnan(chances).any() else chances,
        "context": context_matrix(events),
        "action_context": None,
    }
    if not table["pmf"].null_count:
        laws = np.zeros((len(events), len(arms), 1))
        rows = zip(table["arms"].to_pylist(), table["pmf"].to_pylist(), strict=True)
        for row, (names, chance) in enumerate(rows):
            laws[row, [arms[name] for name in names], 0] = chance
        out["pi_b"] = laws
    return out


def context_matrix(events: Events) -> np.ndarray | None:
    """Contexts `[rows, numbers]`; None where no decision has one."""
    column = events.table["context"].combine_chunks()
    if column.null_count == len(column):
        return None
    widths = np.unique([len(x) if x is not None else -1 for x in column.to_numpy(False)])
    if len(widths) != 1:
        raise FeelgoodError("the contexts differ in length: give all decisions the same numbers.")
    return np.asarray(column.flatten().to_numpy(), np.float32).reshape(len(column), int(widths[0]))
