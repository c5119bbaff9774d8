"""The data sets are those that the released scripts read, as far as our files tell."""

import jax.numpy as jnp
import numpy as np
import pytest
from registered import built

from feelgood.core.testbed import TESTBEDS
from feelgood.data.datasets import load_dataset
from feelgood.released.data_adapters import ranks


def test_ranks_are_places_among_the_values_of_a_column() -> None:
    columns = np.array([[3.5, 7], [-1.0, 7], [3.5, 2], [100.0, 9]])
    np.testing.assert_array_equal(ranks(columns), [[1, 1], [0, 1], [1, 0], [2, 2]])


def contexts(testbed: object, rows: int) -> np.ndarray:
    table = testbed.table  # type: ignore[attr-defined]
    return np.stack([np.asarray(table.context(jnp.asarray(i))) for i in range(rows)])


def test_adult() -> None:
    """All 14 columns as ranks over the whole rows, those of the test file first; 20,000 of them."""
    testbed = built(TESTBEDS["released-adult"])
    data = load_dataset("adult")
    place = {name: i for i, name in enumerate(data["cat_names"].tolist())}
    known = np.ones(len(data["y"]), bool)
    for name in ("workclass", "occupation", "native-country"):
        known &= data[f"categories_{name}"][data["X_cat"][:, place[name]]] != "?"
    assert known.sum() == 45_222
    assert testbed.table.rows == 20_000
    first = np.flatnonzero(known & (data["is_test"] == 1))
    np.testing.assert_array_equal(testbed.labels[: len(first)], data["y"][first])
    ages = data["X_num"][known, data["num_names"].tolist().index("age")]
    weights = data["X_num"][known, data["num_names"].tolist().index("fnlwgt")]
    row = contexts(testbed, 1)[0]
    age, weight = data["X_num"][first[0], [0, 1]]
    want = np.searchsorted(np.unique(ages), age) / np.searchsorted(np.unique(weights), weight)
    assert row[0] / row[2] == pytest.approx(want, rel=1e-5)


def test_mushroom() -> None:
    testbed = built(TESTBEDS["released-mushroom"])
    assert testbed.table.rows == 8124 - 2480
    np.testing.assert_allclose(np.linalg.norm(contexts(testbed, 5), axis=1), 1.0, rtol=1e-6)


def test_covertype_is_balanced() -> None:
    """A fixed arm errs in 15,000 − 2,160 rounds of one pass: published for FG-NeuralTS 12,816."""
    testbed = built(TESTBEDS["released-covertype"])
    counts = np.bincount(np.asarray(testbed.labels))
    assert counts.sum() == testbed.rounds == 15_000
    assert counts.min() >= 2082 and counts.max() == 2160
    assert abs((15_000 - counts.max()) - 12_816) < 30


@pytest.mark.parametrize(("name", "rows"), [("magic", 19_000), ("mnist", 50_000)])
def test_first_rows(name: str, rows: int) -> None:
    testbed = built(TESTBEDS[f"released-{name}"])
    assert testbed.table.rows == rows
    np.testing.assert_array_equal(testbed.labels, load_dataset(name)["y"][:rows])


def test_jester_has_one_right_arm_and_long_contexts() -> None:
    testbed = built(TESTBEDS["released-jester"])
    assert testbed.table.rows == 14_936 and testbed.spec.dim == 32
    assert not np.asarray(testbed.labels).any()
    some = contexts(testbed, 20)
    assert some.min() >= 0.0 and some.max() <= 1.0
    assert (np.linalg.norm(some, axis=1) > 1.1).all()
