"""The protocol of evaluators."""

from abc import abstractmethod
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from feelgood.core.spec import Spec
from feelgood.targets.bonus import Bonus
from feelgood.targets.history import Rows
from feelgood.targets.sums import Theta, Value


class Evaluator(eqx.Module):
    """A way to evaluate the bonus. `memo` is what it carries from evaluation to evaluation."""

    bonus: Bonus
    spec: Spec = eqx.field(static=True)

    @property
    def uniforms(self) -> int:
        """Uniform random numbers that one evaluation uses."""
        return 0

    @property
    def keeps_contexts(self) -> bool:
        """Whether past contexts are in the memo, so that nobody else need keep them."""
        return False

    @property
    def reads_filled(self) -> bool:
        """Whether an evaluation costs what there is to read, and not what there is room for."""
        return False

    @property
    def shares_reads(self) -> bool:
        """Whether what is read on a processor's core serves all settings of a seed."""
        return False

    def alone(self) -> "Evaluator | None":
        """The same for a chain that has a program of its own; None: it can have none."""
        return None

    def full(self) -> "Evaluator":
        """One that reads every context at every evaluation, and has the memo ()."""
        from feelgood.targets.evaluators.full import FullPass

        return FullPass(bonus=self.bonus, spec=self.spec)

    @abstractmethod
    def init(self) -> Any:
        """The memo before the first round."""

    def reserve(self, memo: Any, rounds: int) -> Any:
        """Make room for `rounds` rounds."""
        del rounds
        return memo

    def extend(self, memo: Any, rows: Rows, context: Float[Array, "..."]) -> Any:
        """The history has grown by this context."""
        del rows, context
        return memo

    def begin(self, memo: Any, rows: Rows, theta: Theta) -> Any:
        """A round begins at `theta`."""
        del rows, theta
        return memo

    def end(self, memo: Any) -> Any:
        """A round ends: what to keep of the memo."""
        return memo

    @abstractmethod
    def evaluate(
        self, memo: Any, rows: Rows, theta: Theta, uniform: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Theta, Any]:
        """Σ w_s φ (up to a constant that is fixed within a round), its gradient, the new memo."""

    def value(
        self, memo: Any, rows: Rows, theta: Theta, uniform: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Any]:
        """Σ w_s φ alone, and the new memo."""
        value, _, memo = self.evaluate(memo, rows, theta, uniform)
        return value, memo

    def most(self, memo: Any, rows: Rows) -> Value:
        """A value that no θ exceeds."""
        del memo
        return self.bonus.most(rows.filled)
