"""Decisions, and those whose reward is still to come."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from feelgood.core.errors import FeelgoodError, shown

#: How many decisions are remembered after their end, to say what became of them.
_REMEMBERED = 100_000
REWARDED, EXPIRED = "was rewarded before", "has expired"


class Decision:
    """What a bandit decided.

    `probability` is the chance with which this arm was played, and `pmf` has that of every arm, in
    the order of `arms`. Both are None where the agent has no such number. They are computed when
    they are first asked for, from the state as it was.

    **Example:**

    >>> import feelgood
    >>> bandit = feelgood.Bandit("uniform", arms=["red", "green"], features=1)
    >>> decision = bandit.act([1.0])
    >>> decision.arm in decision.arms, decision.probability, decision.pmf.tolist()
    (True, 0.5, [0.5, 0.5])
    """

    __slots__ = ("_law", "_pmf", "arm", "arms", "id", "version")

    def __init__(
        self,
        id: int,
        arm: Any,
        arms: tuple[Any, ...],
        version: int,
        law: tuple[Callable[[Any], np.ndarray], Any] | None,
    ) -> None:
        # One by one: it is quicker than several at once.
        self.id = id
        self.arm = arm
        self.arms = arms
        self.version = version
        #: A function and what it computes the law from.
        self._law = law
        self._pmf: np.ndarray | None = None

    @property
    def pmf(self) -> np.ndarray | None:
        """The probability of every arm of `arms`; None where there is none."""
        law = self._law
        if law is not None:
            self._pmf = law[0](law[1])
            self._law = None
        return self._pmf

    @property
    def probability(self) -> float | None:
        """The probability of the arm that was played; None where there is none."""
        pmf = self.pmf
        return None if pmf is None else float(pmf[self.arms.index(self.arm)])

    def __repr__(self) -> str:
        return f"Decision(id={self.id}, arm={self.arm!r}, version={self.version})"


class Pending(NamedTuple):
    """A decision that waits for its reward."""

    context: np.ndarray
    #: Where the agent has the arm.
    slot: int
    time: float


#: Makes a `Pending` of a tuple in a third of the time that its own constructor takes.
make_pending = tuple.__new__


class Ledger:
    """All decisions that wait, and what became of the latest others."""

    def __init__(self, most: int, first: int = 0) -> None:
        self.most, self.next = most, first
        self.waiting: OrderedDict[int, Pending] = OrderedDict()
        self.ended: OrderedDict[int, str] = OrderedDict()

    def withdraw(self, first: int) -> None:
        """Decisions from this number on were none."""
        for own in range(first, self.next):
            self.waiting.pop(own, None)
        self.next = first

    def overdue(self) -> list[int]:
        """The oldest decisions, where there are more than may wait."""
        extra = len(self.waiting) - self.most
        if extra <= 0:
            return []
        ids = iter(self.waiting)
        return [next(ids) for _ in range(extra)]

    def older_than(self, seconds: float) -> list[int]:
        """Decisions made longer ago than this."""
        end = time.time() - seconds
        return [own for own, pending in self.waiting.items() if pending.time < end]

    def find(self, own: Any) -> Pending:
        """The decision of this number, which waits; an error where it does not."""
        found = self.waiting.get(own) if type(own) is int or _is_number(own) else None
        if found is None:
            raise FeelgoodError(self._why_not(own))
        return found

    def _why_not(self, own: Any) -> str:
        if not _is_number(own):
            return f"id = {shown(own)} is no decision's: use the id of a Decision, a whole number."
        if own in self.ended:
            return f"decision {own} {self.ended[own]}: a decision has one reward, nothing changed."
        if own >= 0 and (own >> 40) == (self.next >> 40) and own < self.next:
            return f"decision {own} ended long ago, by a reward or by time: nothing changed."
        return f"decision {own} is unknown here: use the id of a Decision of this bandit."

    def close(self, own: int, how: str) -> None:
        """This one waits no more."""
        del self.waiting[own]
        ended = self.ended
        ended[own] = how
        if len(ended) > _REMEMBERED:
            ended.popitem(last=False)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
