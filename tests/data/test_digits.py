"""Digits, which scikit-learn has."""

import builtins
from typing import Any

import numpy as np
import pytest
from real_data import built, check_testbed, unit

from feelgood import TESTBEDS, FeelgoodError, Spec
from feelgood.engine.environment import environment


def test_the_testbed() -> None:
    check_testbed("digits", arms=10, paper=64, standard=64, rounds=2_000)


def test_digits() -> None:
    testbed = built("digits")
    assert testbed.spec == Spec(arms=10, dim=64, rewards="bernoulli")
    contexts, _, means = environment(testbed, [3], 1797)
    from sklearn.datasets import load_digits

    images = load_digits()
    np.testing.assert_array_equal(means[:, :, 0].sum(axis=0), np.bincount(images.target))
    np.testing.assert_allclose(
        np.sort(np.asarray(contexts[:, 20, 0])), np.sort(unit(images.data)[:, 20]), atol=1e-6
    )


def test_digits_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real_import(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(FeelgoodError) as caught:
        TESTBEDS["digits"].build()
    assert str(caught.value) == (
        "digits needs scikit-learn: install it with pip install 'feelgood[digits]'."
    )
