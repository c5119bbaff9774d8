"""Testbeds whose rounds show the rows of a dataset."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, Num, UInt32

from feelgood.datasets import located
from feelgood.errors import FeelgoodError
from feelgood.protocols import TESTBEDS, Testbed
from feelgood.registry import Entry, Family
from feelgood.settings import Setting, setting
from feelgood.testbeds.shuffling import shuffle_key, shuffled_row
from feelgood.testbeds.tables import PREPROCESS, Kind, Preprocess, Table, encode
from feelgood.types import Likelihood, Spec


class Rows(Testbed):
    """Round t shows a row of `table`; the rewards of a row are the same whenever it is shown.

    Every seed meets the rows in a random order of its own, the same for every agent; after the
    last row comes another pass in another order.
    """

    table: Table

    def init(self, key: Key[Array, ""]) -> UInt32[Array, " words"]:
        return shuffle_key(key)

    def row(self, state: UInt32[Array, " words"], t: Int[Array, ""]) -> Int[Array, ""]:
        """The row of round `t`."""
        return shuffled_row(state, t, self.table.rows)

    def context(
        self, key: Key[Array, ""], state: UInt32[Array, " words"], t: Int[Array, ""]
    ) -> Float[Array, " dim"]:
        del key
        return self.table.context(self.row(state, t))

    def rewards(
        self, key: Key[Array, ""], state: UInt32[Array, " words"], means: Float[Array, " arms"]
    ) -> Float[Array, " arms"]:
        del key, state
        return means


class Payoffs(Rows):
    """A table of contexts and beside it what every arm pays for each row."""

    payoffs: Float[Array, "rows arms"]
    likelihood: Likelihood = eqx.field(static=True, default="squared")
    horizon: int = setting(10_000, "usual number of rounds", low=1, high=1_000_000_000)

    @classmethod
    def from_arrays(
        cls,
        features: Num[np.ndarray, "..."],
        payoffs: Num[np.ndarray, "..."],
        *,
        kinds: Sequence[Kind] | Kind = "number",
        preprocess: Preprocess = "standard",
        likelihood: Likelihood = "squared",
        horizon: int = 10_000,
        name: str = "this dataset",
    ) -> "Payoffs":
        """A testbed from arrays: `features` as for `Classification`, `payoffs` one a row and arm.

        **Example:**

        >>> import numpy as np
        >>> from feelgood.testbeds import Payoffs
        >>> testbed = Payoffs.from_arrays(np.eye(3), np.array([[0.5, 2.0], [1.0, 0.0], [0.0, 3.0]]))
        >>> testbed.spec.arms, testbed.spec.dim
        (2, 3)
        """
        table = encode(name, features, kinds, preprocess)
        if payoffs.ndim != 2 or len(payoffs) != table.rows:
            raise FeelgoodError(
                f"{name} has {table.rows} rows and payoffs of shape {payoffs.shape}: "
                "give one a row and arm."
            )
        if not np.isfinite(payoffs).all():
            row, arm = np.argwhere(~np.isfinite(payoffs))[0]
            raise FeelgoodError(
                f"{name} has the payoff {payoffs[row, arm]} in row {row}, arm {arm}: "
                "payoffs must be finite, so drop such rows or fill them in."
            )
        return cls(
            table=table,
            payoffs=jnp.asarray(payoffs, jnp.float32),
            likelihood=likelihood,
            horizon=horizon,
        )

    @property
    def spec(self) -> Spec:
        return Spec(arms=self.payoffs.shape[1], dim=self.table.dim, rewards=self.likelihood)

    @property
    def rounds(self) -> int:
        return self.horizon

    def mean_rewards(
        self, state: UInt32[Array, " words"], context: Float[Array, " dim"], t: Int[Array, ""]
    ) -> Float[Array, " arms"]:
        del context
        return self.payoffs[self.row(state, t)]


class Declared(NamedTuple):
    """What is known of a stored dataset's testbed without reading it: a study needs no more."""

    dataset: str
    paper: Spec
    standard: Spec


def register_dataset(
    name: str,
    doc: str,
    make: Callable[[Mapping[str, Any]], Testbed],
    horizon: int = 10_000,
    declared: Declared | None = None,
    **more: Setting,
) -> None:
    """Register a dataset by name. `make` reads it, when a testbed is built and not before.

    `declared` says what shape it has, at the defaults of all settings but preprocess and horizon.
    """
    rounds = Setting(horizon, "usual number of rounds", low=1, high=1_000_000_000, static=True)
    rules = {"preprocess": PREPROCESS, "horizon": rounds, **more}

    def outline(values: Mapping[str, Any]) -> tuple[Spec, int] | None:
        usual = all(values[k] == rule.default for k, rule in more.items())
        if declared is None or not usual:
            return None
        located(declared.dataset)  # or a sentence, before anything runs
        spec = declared.paper if values["preprocess"] == "paper" else declared.standard
        return spec, values["horizon"]

    entry: Entry[Testbed] = Entry(name, doc, rules, make, outline)
    TESTBEDS.add(Family(name, doc, lambda n: entry if n == name else None, (name,), (), make))
