"""Classification turned into a bandit: one arm per class, reward 1 for the right one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, Num, UInt32

from feelgood.core.notices import print_notice
from feelgood.core.settings import setting
from feelgood.core.spec import Likelihood, Spec
from feelgood.core.testbed import Testbed
from feelgood.data.datasets import DIGITS, DataAbsent, load
from feelgood.numerics import lanes
from feelgood.testbeds.rows import Declared, Rows, as_registered, own_table, register_dataset
from feelgood.testbeds.tables import (
    MAX_ROUNDS,
    Kind,
    as_array,
    check_arm_names,
    check_labels,
    ordinal,
    tell_arms_without_rows,
)


class Classification(Rows):
    """A labelled table: round t shows a row, and the arm of its label pays 1, any other 0.

    Make one with `Classification.from_arrays`.
    """

    labels: Int[Array, " rows"]
    arms: int = eqx.field(static=True)
    horizon: int = setting(10_000, "usual number of rounds", low=1, high=MAX_ROUNDS)

    @classmethod
    def from_arrays(
        cls,
        features: Any,
        labels: Any,
        *,
        arms: Any = None,
        kinds: Any = "number",
        preprocess: Any = "standard",
        intercept: Any = True,
        horizon: Any = 10_000,
        name: Any = None,
        arm_names: Any = None,
        notify: Any = print_notice,
    ) -> "Classification":
        """A testbed from arrays.

        **Arguments:**

        - `features`: rows × columns of numbers; each value of a category is a number of its own.
        - `labels`: whole numbers from 0; `arms` is one more than the largest unless given.
        - `kinds`: what the columns hold, one for all or a list: `"number"`, `"category"`,
          `"pixel"` (numbers that share one mean and spread) or `"flag"` (0 or 1).
        - `preprocess`: `"standard"` or `"paper"`; see `feelgood.testbeds.tables.encode`.
        - `intercept`: whether every context ends with a constant, so that a linear agent can learn
          how good an arm is on the whole.
        - `horizon`: the usual number of rounds.
        - `name`: what results call the testbed.
        - `arm_names`: one text per arm.
        - `notify`: called with a sentence about columns or labels that look like a mistake; by
          default it goes to the standard error, and None is silent.

        **Example:**

        >>> import numpy as np
        >>> from feelgood.testbeds import Classification
        >>> testbed = Classification.from_arrays(np.eye(3), [0, 1, 1], name="clicks")
        >>> testbed.name, testbed.spec.arms, testbed.spec.dim
        ('clicks', 2, 4)
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
        given = as_array(own.name, "labels", labels)
        checked, count = check_labels(own.name, given, own.table.rows, arms)
        names = check_arm_names(own.name, arm_names, count)
        tell_arms_without_rows(own.name, checked, count, notify)
        return cls(
            table=own.table,
            labels=jnp.asarray(checked),
            arms=count,
            horizon=own.horizon,
            called=own.called,
            arm_names=names,
        )

    @property
    def spec(self) -> Spec:
        return Spec(arms=self.arms, dim=self.table.dim, rewards="bernoulli")

    @property
    def rounds(self) -> int:
        return self.horizon

    def mean_rewards(
        self, state: UInt32[Array, " words"], context: Float[Array, " dim"], t: Int[Array, ""]
    ) -> Float[Array, " arms"]:
        del context
        return lanes.one_hot(self.labels[self.row(state, t)], self.arms)


class RiskyMushrooms(Classification):
    """Eat a mushroom (arm 0) or leave it (arm 1, reward 0).

    An edible one pays 5; a poisonous one 5 or −35 with probability 1/2 each, −15 on average.
    Regret is against the better expected reward: 5 for an edible one, 0 for a poisonous one.
    """

    @property
    def spec(self) -> Spec:
        return Spec(arms=2, dim=self.table.dim)

    def mean_rewards(
        self, state: UInt32[Array, " words"], context: Float[Array, " dim"], t: Int[Array, ""]
    ) -> Float[Array, " arms"]:
        edible = super().mean_rewards(state, context, t)[0] > 0
        return jnp.stack([jnp.where(edible, 5.0, -15.0), jnp.zeros(())])

    def rewards(
        self, key: Key[Array, ""], state: UInt32[Array, " words"], means: Float[Array, " arms"]
    ) -> Float[Array, " arms"]:
        del state
        luck = jnp.where(jax.random.bernoulli(key), 20.0, -20.0)
        return means + jnp.where(means < 0, luck, 0.0)


# ---- the datasets ---------------------------------------------------------------------------


class Labelled(NamedTuple):
    """A classification dataset before encoding."""

    features: Num[np.ndarray, "rows columns"]
    labels: Int[np.ndarray, " rows"]
    kinds: Sequence[Kind] | Kind


def _adult() -> Labelled:
    data = load("adult")
    numbers = dict(zip(data["num_names"].tolist(), data["X_num"].T, strict=True))
    codes = dict(zip(data["cat_names"].tolist(), data["X_cat"].T, strict=True))
    order = data["column_order"].tolist()
    columns = np.stack([(numbers | codes)[name] for name in order], axis=1)
    kinds: dict[str, Kind] = dict.fromkeys(numbers, "number") | dict.fromkeys(codes, "category")
    return Labelled(columns, data["y"], [kinds[name] for name in order])


def _mushroom() -> Labelled:
    data = load("mushroom")
    columns = np.stack([ordinal(column) for column in data["X"].T], axis=1).astype(np.uint8)
    return Labelled(columns, data["y"], "category")


def _covertype() -> Labelled:
    data = load("covertype")
    kinds: list[Kind] = ["number" if i < 10 else "flag" for i in range(54)]
    return Labelled(data["X"], data["y"], kinds)


def _plain(name: str, kind: Kind) -> Callable[[], Labelled]:
    """A dataset whose columns are all of one kind."""

    def read() -> Labelled:
        data = load(name)
        return Labelled(data["X"], data["y"], kind)

    return read


def _digits() -> Labelled:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DataAbsent(DIGITS) from None
    images = load_digits()
    return Labelled(images.data.astype(np.uint8), images.target.astype(np.int32), "pixel")


def _register(
    name: str,
    doc: str,
    read: Callable[[], Labelled],
    arms: int,
    horizon: int = 10_000,
    cls: type[Classification] = Classification,
    *,
    dims: tuple[int, int] | None = None,
    dataset: str | None = None,
    likelihood: Likelihood = "bernoulli",
) -> None:
    """Register a classification dataset by name; `dims` are its paper and standard dimensions."""

    def make(values: Mapping[str, Any]) -> Testbed:
        data = read()
        return cls.from_arrays(
            data.features,
            data.labels,
            arms=arms,
            kinds=data.kinds,
            **as_registered(name),
            **values,
        )

    declared = None
    if dims is not None:
        specs = (Spec(arms=arms, dim=dim, rewards=likelihood) for dim in dims)
        declared = Declared(dataset or name, *specs)
    register_dataset(name, doc, make, horizon, declared)


_register("digits", "Handwritten digits of 8 × 8 pixels; needs scikit-learn.", _digits, 10, 2_000)
_register(
    "shuttle", "States of a space shuttle's radiator.", _plain("shuttle", "number"), 7,
    dims=(9, 9),
)  # fmt: skip
_register(
    "magic", "Gamma rays or hadrons in a telescope.", _plain("magic", "number"), 2, dims=(10, 10)
)
_register("mushroom", "Edible or poisonous mushrooms.", _mushroom, 2, dims=(22, 117))
_register(
    "mushroom-risky", "Eat a mushroom (+5, or −35 if unlucky) or not.", _mushroom, 2,
    cls=RiskyMushrooms, dims=(22, 117), dataset="mushroom", likelihood="squared",
)  # fmt: skip
_register("adult", "Census income above 50,000 dollars or not.", _adult, 2, dims=(14, 108))
_register("covertype", "Kinds of forest from maps.", _covertype, 7, 15_000, dims=(54, 54))
_register(
    "mnist", "Handwritten digits of 28 × 28 pixels.", _plain("mnist", "pixel"), 10,
    dims=(784, 784),
)  # fmt: skip
_register(
    "cifar10", "Photographs of ten kinds of things.", _plain("cifar10", "pixel"), 10, 25_000,
    dims=(3072, 3072),
)  # fmt: skip
