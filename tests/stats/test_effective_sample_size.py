"""Effective sample sizes and split-R̂ against ArviZ."""

import numpy as np
import pytest

from feelgood.stats.effective_sample_size import effective_draws, effective_sample_size
from feelgood.stats.split_rhat import split_rhat


def test_diagnostics_are_those_of_arviz() -> None:
    arviz = pytest.importorskip("arviz", exc_type=ImportError)
    generator = np.random.default_rng(8)
    draws = generator.standard_normal((4, 200, 3))
    for i in range(1, 200):
        draws[:, i] += np.array([0.0, 0.5, 0.9]) * draws[:, i - 1]
    draws[0, :, 1] += 0.5
    for k in range(3):
        own = draws[..., k]
        assert split_rhat(draws)[k] == pytest.approx(arviz.rhat(own, method="split"), rel=1e-6)
        # ArviZ's rule for where to cut the autocorrelations differs in the last term.
        assert effective_draws(draws)[k] == pytest.approx(arviz.ess(own, method="mean"), rel=0.05)


def test_one_chain_is_worth_what_its_autocorrelation_says() -> None:
    """An autoregression of 0.5 is worth a third of its draws; what never moves is worth one."""
    generator = np.random.default_rng(0)
    draws = generator.standard_normal((20_000, 2))
    for i in range(1, len(draws)):
        draws[i, 0] += 0.5 * draws[i - 1, 0]
    draws[:, 1] = 3.0
    autoregression, frozen = effective_sample_size(draws)
    assert autoregression == pytest.approx(20_000 / 3, rel=0.2)
    assert frozen == 1.0
