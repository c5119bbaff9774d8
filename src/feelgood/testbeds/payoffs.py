"""A bandit from a table of payoffs: what every arm pays for each row."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from feelgood.core.notices import print_notice
from feelgood.core.settings import setting
from feelgood.core.spec import Likelihood, Spec
from feelgood.testbeds.checks import MAX_HORIZON, check_arm_names, check_payoffs
from feelgood.testbeds.dataset_bandit import DatasetBandit, own_table


class Payoffs(DatasetBandit):
    """A table of contexts and beside it what every arm pays for each row.

    Make one with `Payoffs.from_arrays`.

    **Example:**

    >>> import numpy as np
    >>> import feelgood
    >>> from feelgood.testbeds import Payoffs
    >>> rng = np.random.default_rng(0)
    >>> testbed = Payoffs.from_arrays(rng.normal(size=(100, 2)), rng.normal(size=(100, 3)))
    >>> testbed.spec.arms, feelgood.run(testbed, "linucb", rounds=50, seeds=2)[0].status
    (3, 'ok')
    """

    payoffs: Float[Array, "rows arms"]
    likelihood: Likelihood = eqx.field(static=True, default="squared")
    horizon: int = setting(10_000, "usual number of rounds", low=1, high=MAX_HORIZON)

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
        own = own_table(features, kinds, preprocess, intercept, horizon, name, notify)
        paid = check_payoffs(own.name, payoffs, own.table.rows, likelihood)
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
