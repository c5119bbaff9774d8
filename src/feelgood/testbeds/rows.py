"""Testbeds whose rounds show the rows of a dataset."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, get_args

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt32

from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.notices import print_notice
from feelgood.core.registry import Entry, Family
from feelgood.core.settings import Setting, setting
from feelgood.core.spec import Likelihood, Spec
from feelgood.core.testbed import TESTBEDS, Testbed
from feelgood.data.datasets import located
from feelgood.testbeds.shuffling import shuffle_key, shuffled_row
from feelgood.testbeds.tables import (
    MAX_ARMS,
    MAX_ROUNDS,
    PREPROCESS,
    Preprocess,
    Table,
    as_array,
    check_arm_names,
    check_bool,
    check_choice,
    check_finite,
    check_name,
    check_whole,
    encode,
    tell_constant_columns,
)


class Rows(Testbed):
    """Round t shows a row of `table`; the rewards of a row are the same whenever it is shown.

    Every seed meets the rows in a random order of its own, the same for every agent; after the
    last row comes another pass in another order.
    """

    table: Table
    #: What results call it; empty: by its class.
    called: str = eqx.field(static=True, default="", kw_only=True)
    #: What the arms are called; empty: by their numbers.
    arm_names: tuple[str, ...] = eqx.field(static=True, default=(), kw_only=True)

    @property
    def name(self) -> str:
        return self.called or super().name

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


class OwnTable(NamedTuple):
    """What every testbed of one's own data has, checked."""

    name: str
    called: str
    columns: np.ndarray
    table: Table
    horizon: int


def own_table(
    features: Any,
    *,
    kinds: Any,
    preprocess: Any,
    intercept: Any,
    horizon: Any,
    name: Any,
    notify: Any,
) -> OwnTable:
    """The contexts of one's own data. Nothing is trusted: every argument may be anything."""
    called = check_name(name)
    owner = called or "this dataset"
    check_choice(owner, "preprocess", preprocess, get_args(Preprocess))
    check_bool(owner, "intercept", intercept)
    rounds = check_whole(owner, "horizon", horizon, 1, MAX_ROUNDS)
    if notify is not None and not callable(notify):
        raise FeelgoodError(f"{owner} has notify = {shown(notify)}: give a function, or None.")
    if not isinstance(kinds, str) and hasattr(kinds, "__iter__"):
        kinds = list(kinds)
    columns = as_array(owner, "features", features)
    table = encode(owner, columns, kinds, preprocess, bool(intercept))
    tell_constant_columns(owner, columns, kinds, bool(intercept), notify)
    return OwnTable(owner, called, columns, table, rounds)


class Payoffs(Rows):
    """A table of contexts and beside it what every arm pays for each row.

    Make one with `Payoffs.from_arrays`.
    """

    payoffs: Float[Array, "rows arms"]
    likelihood: Likelihood = eqx.field(static=True, default="squared")
    horizon: int = setting(10_000, "usual number of rounds", low=1, high=MAX_ROUNDS)

    @classmethod
    def from_arrays(
        cls,
        features: Any,
        payoffs: Any,
        *,
        kinds: Any = "number",
        preprocess: Any = "standard",
        likelihood: Any = "squared",
        intercept: Any = True,
        horizon: Any = 10_000,
        name: Any = None,
        arm_names: Any = None,
        notify: Any = print_notice,
    ) -> "Payoffs":
        """A testbed from arrays: what each arm pays for each row.

        **Arguments:** as those of `Classification.from_arrays`, and

        - `payoffs`: rows × arms of numbers.
        - `likelihood`: what agents take the rewards for, `"squared"` (any numbers) or
          `"bernoulli"` (0 … 1).

        **Example:**

        >>> import numpy as np
        >>> from feelgood.testbeds import Payoffs
        >>> testbed = Payoffs.from_arrays(np.eye(3), [[0.5, 2.0], [1.0, 0.0], [0.0, 3.0]])
        >>> testbed.spec.arms, testbed.spec.dim
        (2, 4)
        """
        own = own_table(
            features,
            kinds=kinds,
            preprocess=preprocess,
            intercept=intercept,
            horizon=horizon,
            name=name,
            notify=notify,
        )
        check_choice(own.name, "likelihood", likelihood, get_args(Likelihood))
        paid = as_array(own.name, "payoffs", payoffs)
        rows = own.table.rows
        if paid.ndim != 2 or len(paid) != rows:
            raise FeelgoodError(
                f"{own.name} has {rows} rows and payoffs of shape {paid.shape}: "
                "give one per row and arm."
            )
        if not 2 <= paid.shape[1] <= MAX_ARMS:
            raise FeelgoodError(
                f"{own.name} has payoffs of {paid.shape[1]:,} arms: a bandit needs at least 2 arms "
                f"and can have at most {MAX_ARMS:,}."
            )
        check_finite(own.name, "payoff", "arm", paid)
        if likelihood == "bernoulli" and (paid.min() < 0 or paid.max() > 1):
            row, arm = np.argwhere((paid < 0) | (paid > 1))[0]
            raise FeelgoodError(
                f"{own.name} has the payoff {paid[row, arm]} in row {row}, arm {arm}: Bernoulli "
                "payoffs lie between 0 and 1, so use likelihood='squared'."
            )
        return cls(
            table=own.table,
            payoffs=jnp.asarray(paid, jnp.float32),
            likelihood=likelihood,
            horizon=own.horizon,
            called=own.called,
            arm_names=check_arm_names(own.name, arm_names, paid.shape[1]),
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


def as_registered(name: str) -> dict[str, Any]:
    """Options of `from_arrays` for a known dataset: as the paper has it, and nothing to tell."""
    return {"name": name, "intercept": False, "notify": None}


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
