"""What callers may ask of a bandit: contexts, arms, masks, rewards and weights, checked.

Every error is one sentence, and is raised before anything has changed.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from feelgood.core.errors import FeelgoodError, did_you_mean, shown
from feelgood.core.spec import Spec

#: The largest feature and reward: their squares must fit into single precision, times many rounds.
LARGEST_NUMBER, LARGEST_WEIGHT = 1e12, 1e6
Label = str | int
DOUBLE = np.dtype(np.float64)


def parse_arms(arms: Any) -> list[Label]:
    """The labels of a bandit's arms."""
    if isinstance(arms, int) and not isinstance(arms, bool):
        arms = range(arms)
    if isinstance(arms, str) or not isinstance(arms, Iterable):
        raise FeelgoodError(f"arms = {shown(arms)} are no arms: use a list of names, or a number.")
    labels = [parse_label(label) for label in arms]
    if len(labels) < 2:
        raise FeelgoodError(f"arms = {shown(labels)} are too few: a bandit needs at least 2.")
    texts = Counter(str(label) for label in labels)  # as logs and tables have them
    for label in labels:
        if texts[str(label)] > 1:
            raise FeelgoodError(f"the arm {shown(label)} is there twice: give each one name.")
    return labels


def parse_label(label: Any) -> Label:
    """The name of an arm."""
    if isinstance(label, np.integer):
        label = int(label)
    if isinstance(label, bool) or not isinstance(label, str | int):
        raise FeelgoodError(f"{shown(label)} cannot name an arm: use a text or a whole number.")
    return label


class ArmTable:
    """The arms of a bandit: labels as callers know them, slots as the agent does.

    A slot is never used again, so that whatever remembers it stays right.
    """

    def __init__(self, labels: Sequence[Label], removed: Iterable[int] = ()) -> None:
        self.labels, self.removed = list(labels), set(removed)
        self._renew()

    def _renew(self) -> None:
        self.slots = [i for i in range(len(self.labels)) if i not in self.removed]
        self.active = tuple(self.labels[i] for i in self.slots)
        self.slot_of = {self.labels[i]: i for i in self.slots}
        #: Which slots there are, where some are not.
        self.present = None
        if self.removed:
            self.present = np.array([i not in self.removed for i in range(len(self.labels))])

    def slot(self, label: Any) -> int:
        """Where the agent has the arm of this name."""
        try:
            return self.slot_of[label]
        except (KeyError, TypeError):
            names = [str(name) for name in self.active]
            raise FeelgoodError(
                f"{shown(label)} is no arm: {did_you_mean(str(label), names)}"
            ) from None

    def add(self, label: Label) -> None:
        """One more arm, in a slot of its own."""
        self.labels.append(label)
        self._renew()

    def remove(self, label: Label) -> None:
        """An arm less; its slot stays."""
        self.removed.add(self.slot(label))
        self._renew()

    def require_new(self, label: Any) -> Label:
        """A name for one more arm."""
        label = parse_label(label)
        if str(label) in map(str, self.active):
            raise FeelgoodError(f"the arm {shown(label)} is there already: use another name.")
        return label

    def require_spare(self, label: Any) -> None:
        """An error unless this arm may go."""
        self.slot(label)
        if len(self.active) <= 2:
            raise FeelgoodError(
                f"the arm {shown(label)} cannot go: a bandit needs at least 2, and has "
                f"{len(self.active)}."
            )

    def mask(self, mask: Any) -> tuple[np.ndarray | None, tuple[Label, ...]]:
        """Which slots may be played, None for all, and their labels."""
        if mask is None:
            return self.present, self.active
        chosen = self._chosen(mask)
        if not chosen.any():
            raise FeelgoodError("mask allows none of the arms: allow at least one.")
        out = np.zeros(len(self.labels), bool)
        out[self.slots] = chosen
        labels = tuple(a for a, yes in zip(self.active, chosen, strict=True) if yes)
        return out, labels

    def _chosen(self, mask: Any) -> np.ndarray:
        array = np.asarray(mask) if isinstance(mask, list | tuple | np.ndarray) else None
        if array is not None and array.dtype == bool and array.shape == (len(self.active),):
            return array
        if isinstance(mask, list | tuple | set | frozenset) and len(mask):
            wanted = {self.slot(label) for label in mask if not isinstance(label, bool | np.bool_)}
            if len(wanted) == len(mask):
                return np.array([slot in wanted for slot in self.slots])
        if isinstance(mask, list | tuple | set | frozenset) and not mask:
            return np.zeros(len(self.active), bool)
        raise FeelgoodError(
            f"mask = {shown(mask)} does not fit: use {len(self.active)} truth values, one per arm, "
            "or the names of the arms that may be played."
        )


class Contexts:
    """Contexts as callers give them, and as agents take them."""

    def __init__(self, spec: Spec, arms: ArmTable) -> None:
        self.arms, self.shared, self.dim, self.slots = arms, spec.shared, spec.dim, spec.arms
        #: How many axes several contexts have.
        self.batch_axes = 3 if spec.shared else 2
        #: The shape of one context.
        self.shape = (len(arms.active), spec.dim) if spec.shared else (spec.dim,)

    def is_batch(self, x: Any) -> bool:
        """Whether these are several contexts."""
        try:
            return np.asarray(x).ndim == self.batch_axes
        except ValueError:  # rows of several lengths
            return False

    def one(self, x: Any) -> np.ndarray:
        """A context for the agent, checked."""
        if type(x) is np.ndarray and x.dtype is DOUBLE and x.shape == self.shape:
            given = x
        else:
            given = self._numbers(x)
        flat = given.ravel() if self.shared else given
        if not flat.dot(flat) < LARGEST_NUMBER:
            self._check_numbers(given)
        array = given.astype(np.float32)
        if not self.shared:
            return array
        out = np.empty((self.dim, self.slots), np.float32)
        if self.arms.present is None:
            out[:] = array.T
        else:
            out[:] = array[0][:, None]  # an arm that is not there shows what another shows
            out[:, self.arms.slots] = array.T
        return out

    def _numbers(self, x: Any) -> np.ndarray:
        """As numbers of the right shape."""
        if type(x) is np.ndarray and x.dtype.kind not in "fiub":
            raise self._wrong(x)
        try:
            given = np.asarray(x, np.float64)
        except (TypeError, ValueError, OverflowError):
            raise self._wrong(x) from None
        if given.shape != self.shape:
            raise self._wrong(x)
        return given

    def _wrong(self, x: Any) -> FeelgoodError:
        want = " × ".join(str(n) for n in self.shape)
        words = f"{want} numbers" if len(self.shape) == 1 else f"{want} numbers, a row per arm"
        try:
            given = " × ".join(str(n) for n in np.shape(x)) or "one value"
        except ValueError:
            given = "rows of several lengths"
        return FeelgoodError(f"a context of {given} does not fit ({shown(x, 40)}): use {words}.")

    def _check_numbers(self, x: np.ndarray) -> None:
        numbers = np.abs(x)
        if not np.isfinite(numbers).all():
            raise FeelgoodError(f"a context holds a number that is not finite: {shown(x, 60)}.")
        if numbers.max() > LARGEST_NUMBER:
            raise FeelgoodError(
                f"a context holds {numbers.max():.3g}, too large for single precision: use numbers "
                f"up to {LARGEST_NUMBER:g}."
            )


def parse_reward(reward: Any, bernoulli: bool) -> float:
    """A reward, checked."""
    if type(reward) is float and not bernoulli and -LARGEST_NUMBER <= reward <= LARGEST_NUMBER:
        return reward
    number = _number("reward", reward)
    if bernoulli and not 0.0 <= number <= 1.0:
        raise FeelgoodError(
            f"reward = {shown(reward)} is not allowed with Bernoulli rewards: use 0 to 1."
        )
    if abs(number) > LARGEST_NUMBER:
        raise FeelgoodError(
            f"reward = {shown(reward)} is too large for single precision: use at most "
            f"{LARGEST_NUMBER:g}."
        )
    return number


def parse_weight(weight: Any, sums: bool, agent: str) -> float:
    """How often a reward counts, checked."""
    if type(weight) is float and weight == 1.0:
        return 1.0
    number = 1.0 if weight is None else _number("weight", weight)
    if not 0.0 < number <= LARGEST_WEIGHT:
        raise FeelgoodError(
            f"weight = {shown(weight)} is not allowed: use a number above 0 and at most "
            f"{LARGEST_WEIGHT:g}."
        )
    if number != 1.0 and not sums:
        raise FeelgoodError(
            f"weight = {shown(weight)} is not possible with {agent}, which keeps more than sums of "
            "its rewards: leave the weight out."
        )
    return number


def _number(what: str, value: Any) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, bool | np.bool_ | int | float | np.number) and not np.iscomplexobj(value):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    elif isinstance(value, np.ndarray) and value.ndim == 0:
        return _number(what, value[()])
    raise FeelgoodError(f"{what} = {shown(value)} is not allowed: use a finite number.")
