"""What one chain cost."""

import dataclasses

import numpy as np
import pytest
from made_results import result

from feelgood.core.errors import FeelgoodError
from feelgood.report.chain_costs import chain_cost, gradient_curve


def test_regret_against_compute() -> None:
    run = result("lmcts", [1.0, 2.0, np.nan], gradients=25.0)
    assert gradient_curve(run).tolist() == [25.0, 50.0, 100.0]
    cost = chain_cost(run)
    assert (cost.gradients, cost.seconds) == (100.0, pytest.approx(2.0 / 3))
    shared = dataclasses.replace(run, provenance={"batch_chains": 8})
    assert chain_cost(shared).seconds == cost.seconds, "run_s is the cell's own share"
    closed = result("lints", [1.0, 2.0], gradients=None)
    assert chain_cost(closed).gradients is None
    with pytest.raises(FeelgoodError, match="records no gradient"):
        gradient_curve(closed)
