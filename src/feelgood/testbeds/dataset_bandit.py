"""Testbeds whose rounds show the rows of a dataset."""

from typing import Any, NamedTuple, get_args

import equinox as eqx
from jaxtyping import Array, Float, Int, Key, UInt32

from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.testbed import Testbed
from feelgood.testbeds.checks import (
    MAX_HORIZON,
    as_array,
    check_bool,
    check_choice,
    check_testbed_name,
    check_whole,
    tell_constant_columns,
)
from feelgood.testbeds.contexts import ContextTable, Preprocess, encode
from feelgood.testbeds.shuffling import shuffle_key, shuffled_row


class DatasetBandit(Testbed):
    """Round t shows a row of `table`; the rewards of a row are the same whenever it is shown.

    Every seed meets the rows in a random order of its own, the same for every agent; after the
    last row comes another pass in another order.
    """

    table: ContextTable
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
    table: ContextTable
    horizon: int


def own_table(
    features: Any,
    kinds: Any,
    preprocess: Any,
    intercept: Any,
    horizon: Any,
    name: Any,
    notify: Any,
) -> OwnTable:
    """The contexts of one's own data. Nothing is trusted: every argument may be anything."""
    called = check_testbed_name(name)
    owner = called or "this dataset"
    check_choice(owner, "preprocess", preprocess, get_args(Preprocess))
    check_bool(owner, "intercept", intercept)
    rounds = check_whole(owner, "horizon", horizon, 1, MAX_HORIZON)
    if notify is not None and not callable(notify):
        raise FeelgoodError(f"{owner} has notify = {shown(notify)}: give a function, or None.")
    if not isinstance(kinds, str) and hasattr(kinds, "__iter__"):
        kinds = list(kinds)
    columns = as_array(owner, "features", features)
    table = encode(owner, columns, kinds, preprocess, bool(intercept))
    tell_constant_columns(owner, columns, kinds, bool(intercept), notify)
    return OwnTable(owner, called, table, rounds)
