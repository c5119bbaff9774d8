"""Classification turned into a bandit: one arm per class, reward 1 for the right one."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from feelgood.core.notices import print_notice
from feelgood.core.settings import setting
from feelgood.core.spec import Spec
from feelgood.numerics import lanes
from feelgood.testbeds.checks import (
    MAX_HORIZON,
    as_array,
    check_arm_names,
    check_labels,
    tell_arms_without_rows,
)
from feelgood.testbeds.dataset_bandit import DatasetBandit, own_table


class Classification(DatasetBandit):
    """A labelled table: round t shows a row, and the arm of its label pays 1, any other 0.

    Make one with `Classification.from_arrays`.

    **Example:**

    >>> import numpy as np
    >>> import feelgood
    >>> from feelgood.testbeds import Classification
    >>> rng = np.random.default_rng(0)
    >>> features = rng.normal(size=(100, 2))
    >>> testbed = Classification.from_arrays(features, (features[:, 0] > 0).astype(int))
    >>> testbed.spec.arms, feelgood.run(testbed, "linucb", rounds=50, seeds=2)[0].status
    (2, 'ok')
    """

    labels: Int[Array, " rows"]
    arms: int = eqx.field(static=True)
    horizon: int = setting(10_000, "usual number of rounds", low=1, high=MAX_HORIZON)

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
        - `preprocess`: `"standard"` or `"paper"`; see `feelgood.testbeds.contexts.encode`.
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
        own = own_table(features, kinds, preprocess, intercept, horizon, name, notify)
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
