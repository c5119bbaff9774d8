"""Testbeds from data: rows, labels, payoffs and encodings against plain numpy.

False-alarm rates of the statistical tests are stated where they are; all seeds are fixed.
"""

import builtins
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from real_data import built, standardised, unit
from scipy import stats

from feelgood import TESTBEDS, FeelgoodError, Spec, Testbed
from feelgood.agents import LinTS, Uniform
from feelgood.core.registry import Registry
from feelgood.data.datasets import DataAbsent
from feelgood.engine.environment import environment
from feelgood.engine.simulation import simulate
from feelgood.testbeds import Classification, Payoffs
from feelgood.testbeds.contexts import encode
from feelgood.testbeds.shuffling import shuffle_key, shuffled_row

LEVEL = 1e-6


def order(seed: int, rounds: int, rows: int, first: int = 0) -> np.ndarray:
    key = shuffle_key(jax.random.key(seed))
    turns = first + jnp.arange(rounds)
    return np.asarray(jax.jit(jax.vmap(lambda t: shuffled_row(key, t, rows)))(turns))


# ---- shuffles -------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 2, 5, 49, 50, 20_000])
def test_every_pass_meets_every_row_once(rows: int) -> None:
    two = order(7, 2 * rows, rows).reshape(2, rows)
    np.testing.assert_array_equal(np.sort(two, axis=1), np.tile(np.arange(rows), (2, 1)))
    if rows > 10:
        assert not np.array_equal(*two), "a pass has an order of its own"
    np.testing.assert_array_equal(order(7, 1, rows, first=rows), two[1, :1])


def test_the_largest_dataset_is_shuffled_without_storing_an_order() -> None:
    rows = 581_012
    drawn = order(0, 15_000, rows)
    assert len(set(drawn.tolist())) == 15_000
    assert drawn.min() >= 0 and drawn.max() < rows
    assert stats.kstest(drawn / rows, "uniform").pvalue > LEVEL


@pytest.mark.slow
def test_shuffles_are_uniform() -> None:
    """All 120 orders of 5 rows over 24,000 seeds, and every row in every place of 30."""
    seeds = jnp.arange(24_000)

    def whole(rows: int) -> np.ndarray:
        def one(seed: jax.Array) -> jax.Array:
            key = shuffle_key(jax.random.key(seed))
            return jax.vmap(lambda t: shuffled_row(key, t, rows))(jnp.arange(rows))

        return np.asarray(jax.jit(jax.vmap(one))(seeds))

    _, counts = np.unique(whole(5), axis=0, return_counts=True)
    assert len(counts) == 120
    assert stats.chisquare(counts).pvalue > LEVEL
    places = whole(30)
    table = np.stack([np.bincount(places[:, place], minlength=30) for place in range(30)])
    # Rows and columns of this table have fixed sums: 29² degrees of freedom.
    statistic = ((table - 800) ** 2 / 800).sum() * 29 / 30
    assert stats.chi2(29**2).sf(statistic) > LEVEL
    # Neighbours in time are independent: the difference of two places in a row is uniform too.
    steps = np.bincount((places[:, 1] - places[:, 0]) % 30, minlength=30)[1:]
    assert stats.chisquare(steps).pvalue > LEVEL


# ---- encodings ------------------------------------------------------------------------------


def contexts_of(table: Any) -> np.ndarray:
    return np.asarray(jax.vmap(table.context)(jnp.arange(table.rows)), np.float64)


COLUMNS = np.array(
    [[1, 0, 2, 5.0], [2, 1, 0, 0.5], [4, 1, 1, -3], [8, 0, 2, 0], [-1, 1, 7, 2.5]], np.float64
)


def test_paper_encoding_is_the_numbers_scaled_to_length_one() -> None:
    table = encode("a", COLUMNS, ["number", "flag", "category", "number"], "paper")
    np.testing.assert_allclose(contexts_of(table), unit(COLUMNS), atol=1e-6)


def test_standard_encoding_against_numpy() -> None:
    table = encode("a", COLUMNS, ["number", "flag", "category", "number"], "standard")
    hot = COLUMNS[:, [2]] == np.array([[0.0, 1.0, 2.0, 7.0]])
    expected = np.hstack(
        [standardised(COLUMNS[:, [0]]), COLUMNS[:, [1]], hot, standardised(COLUMNS[:, [3]])]
    )
    np.testing.assert_allclose(contexts_of(table), unit(expected), atol=1e-6)


def test_pixels_share_one_mean_and_spread() -> None:
    pixels = np.random.RandomState(0).randint(0, 256, (20, 6)).astype(np.uint8)
    table = encode("a", pixels, "pixel", "standard")
    assert table.values.dtype == jnp.uint8, "stored in few bytes"
    expected = (pixels - pixels.mean()) / pixels.std()
    np.testing.assert_allclose(contexts_of(table), unit(expected), atol=1e-5)


def test_rows_of_zeros_constant_columns_and_huge_numbers_stay_finite() -> None:
    zeros = np.array([[0.0, 3.0], [0.0, 3.0], [0.0, 3.0]])
    np.testing.assert_array_equal(contexts_of(encode("a", zeros, "number", "standard")), 0 * zeros)
    huge = np.array([[3e37, 4e37], [0.0, 0.0]])
    np.testing.assert_allclose(
        contexts_of(encode("a", huge, "number", "paper")), [[0.6, 0.8], [0, 0]], rtol=1e-6
    )


# ---- users' own data ------------------------------------------------------------------------

X, Y = np.arange(12.0).reshape(4, 3), np.array([0, 2, 1, 2])
PAID = np.array([[0.0, 1.0], [2.0, -1.0], [0.5, 0.5], [3.0, 0.0]])


def test_a_testbed_from_arrays() -> None:
    testbed = Classification.from_arrays(X, Y, preprocess="paper", intercept=False, horizon=8)
    assert testbed.spec == Spec(arms=3, dim=3, rewards="bernoulli")
    assert testbed.rounds == 8
    contexts, rewards, means = environment(testbed, [0, 1, 2], 8)
    np.testing.assert_array_equal(rewards, means)
    for seed in range(3):
        for half in (slice(0, 4), slice(4, 8)):
            seen = np.asarray(contexts[half, :, seed])
            rows = [int(np.argmin(np.abs(unit(X) - x).sum(axis=1))) for x in seen]
            assert sorted(rows) == [0, 1, 2, 3]
            np.testing.assert_allclose(seen, unit(X)[rows], atol=1e-6)
            np.testing.assert_array_equal(means[half, :, seed], np.eye(3)[Y[rows]])


def refused(make: Any, *arguments: Any, **options: Any) -> str:
    """The one sentence of a call that must not work."""
    with pytest.raises(FeelgoodError) as caught:
        make(*arguments, **options)
    text = str(caught.value)
    assert text.endswith((".", "?")) and "\n" not in text and len(text) < 250
    return text


class Unwilling:
    """Nothing that numpy knows."""

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise RuntimeError("no")


#: Features that are none.
WRONG_FEATURES = [
    (np.where(X == 5, np.nan, X), "the feature nan in row 1, column 2"),
    (np.where(X == 5, np.inf, X), "the feature inf in row 1, column 2"),
    (np.where(X == 5, 1e39, X), "the feature 1e+39 in row 1, column 2"),
    (X[:0], "features of shape (0, 3)"),
    (X[:, :0], "features of shape (4, 0)"),
    (X[0], "features of shape (3,)"),
    (X[None], "features of shape (1, 4, 3)"),
    (3.0, "features of shape ()"),
    ("data.csv", "features of type <U8: give numbers"),
    ([["a"], ["b"], ["c"], ["d"]], "features of type <U1: give numbers"),
    (X.astype(complex), "features of type complex128: give numbers"),
    (X.astype(object), "features of type object: give numbers"),
    (X.astype("M8[s]"), "features of type datetime64[s]: give numbers"),
    (np.ma.masked_greater(X, 5), "features in a masked array"),
    ([[1.0], [1.0, 2.0], [3.0], [4.0]], "features of type list that make no array"),
    (None, "features of type object"),
    ({"a": 1}, "features of type object"),
    (Unwilling(), "features of type Unwilling that make no array"),
]
#: Options that every testbed of one's own data has.
WRONG_OPTIONS = [
    ({"kinds": ["number"]}, "3 columns and 1 kinds"),
    ({"kinds": "numbers"}, "kinds = 'numbers': did you mean 'number'?"),
    ({"kinds": ["number", "number", "Flag"]}, "kinds = 'Flag': did you mean 'flag'?"),
    ({"kinds": None}, "kinds = None: use one of number, pixel, category, flag"),
    ({"kinds": [1, 2, 3]}, "kinds = 1: use one of"),
    ({"kinds": "flag"}, "the flag 3.0 in row 1, column 0"),
    ({"preprocess": "Paper"}, "preprocess = 'Paper': did you mean 'paper'?"),
    ({"preprocess": None}, "preprocess = None: use one of paper, standard"),
    ({"preprocess": np.eye(30)}, "preprocess = array("),
    ({"intercept": "yes"}, "intercept = 'yes': use True or False"),
    ({"intercept": 1}, "intercept = 1: use True or False"),
    ({"horizon": -5}, "horizon = -5: use a whole number from 1 to"),
    ({"horizon": 0}, "horizon = 0: use a whole number"),
    ({"horizon": 2.5}, "horizon = 2.5: use a whole number"),
    ({"horizon": None}, "horizon = None: use a whole number"),
    ({"horizon": 10**30}, "use a whole number from 1 to"),
    ({"horizon": True}, "horizon = True: use a whole number"),
    ({"arm_names": ["a"]}, "arms and arm_names = ['a']: give one text per arm"),
    ({"arm_names": "abc"}, "arms and arm_names = 'abc': give one text per arm"),
    ({"arm_names": 3}, "arms and arm_names = 3: give one text per arm"),
    ({"notify": 3}, "notify = 3: give a function, or None"),
]


@pytest.mark.parametrize(("make", "beside"), [(Classification, Y), (Payoffs, PAID)])
def test_bad_features_and_options_are_one_sentence(make: Any, beside: np.ndarray) -> None:
    for features, message in WRONG_FEATURES:
        text = refused(make.from_arrays, features, beside, name="mine")
        assert text.startswith("mine has ") and message in text
    for options, message in WRONG_OPTIONS:
        text = refused(make.from_arrays, X, beside, name="mine", **options)
        assert text.startswith("mine has ") and message in text
    assert refused(make.from_arrays, X[:0], beside).startswith("this dataset has features")
    for name in (3, "", " ", "two\nlines"):
        assert "use a text of one line" in refused(make.from_arrays, X, beside, name=name)


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ([0, 3, 1, 2], {"arms": 3}, "the label 3 in row 1, outside its 3 arms"),
        ([0, 1, -1, 2], {}, "the label -1 in row 2, outside its 3 arms"),
        (Y + 2**40, {}, "the label 1099511627776 in row 0, outside its 100,000 arms"),
        (Y.astype(np.uint64) + np.uint64(2**63), {}, "the label 9223372036854775808 in row 0"),
        (Y[:3], {}, "4 rows and labels of shape (3,)"),
        (Y[:, None], {}, "4 rows and labels of shape (4, 1)"),
        (Y + 0.5, {}, "labels of type float64: use whole numbers"),
        (["a", "b", "a", "b"], {}, "labels of type <U1"),
        ([0, 1, None, 1], {}, "labels of type object"),
        (None, {}, "labels of type object"),
        (np.ma.masked_equal(Y, 2), {}, "labels in a masked array"),
        (0 * Y, {}, "at least 2 arms"),
        (Y, {"arms": 2.5}, "arms = 2.5: use a whole number from 2 to 100,000"),
        (Y, {"arms": "3"}, "arms = '3': use a whole number"),
        (Y, {"arms": 1}, "arms = 1: use a whole number"),
        (Y, {"arms": True}, "arms = True: use a whole number"),
        (Y, {"arms": 10**9}, "use a whole number from 2 to 100,000"),
        (Y, {"arm_names": ["a", "b", "a"]}, "3 arms and arm_names = ['a', 'b', 'a']"),
        (Y, {"arm_names": [0, 1, 2]}, "3 arms and arm_names = [0, 1, 2]"),
    ],
)
def test_bad_labels_are_one_sentence(labels: Any, options: dict[str, Any], message: str) -> None:
    text = refused(Classification.from_arrays, X, labels, name="mine", **options)
    assert text.startswith("mine has ") and message in text


@pytest.mark.parametrize(
    ("payoffs", "options", "message"),
    [
        (np.where(PAID == 2, np.nan, PAID), {}, "the payoff nan in row 1, arm 0"),
        (PAID * 1e39, {}, "the payoff 1e+39 in row 0, arm 1"),
        (PAID[:3], {}, "4 rows and payoffs of shape (3, 2)"),
        (PAID[:, 0], {}, "4 rows and payoffs of shape (4,)"),
        (PAID[:, :0], {}, "payoffs of 0 arms: a bandit needs at least 2 arms"),
        (PAID[:, :1], {}, "payoffs of 1 arms: a bandit needs at least 2 arms"),
        (PAID.astype(str), {}, "payoffs of type <U32"),
        (PAID * 1j, {}, "payoffs of type complex128"),
        (
            PAID,
            {"likelihood": "bernoulli"},
            "the payoff 2.0 in row 1, arm 0: Bernoulli payoffs lie",
        ),
        (PAID * 0 - 1, {"likelihood": "bernoulli"}, "the payoff -1.0 in row 0, arm 0"),
        (PAID * 0 + 7, {"likelihood": "bernoulli"}, "the payoff 7.0 in row 0, arm 0"),
        (PAID, {"likelihood": "gauss"}, "likelihood = 'gauss': use one of squared, bernoulli"),
        (PAID, {"likelihood": None}, "likelihood = None: use one of squared, bernoulli"),
    ],
)
def test_bad_payoffs_are_one_sentence(payoffs: Any, options: dict[str, Any], message: str) -> None:
    text = refused(Payoffs.from_arrays, X, payoffs, name="mine", **options)
    assert text.startswith("mine has ") and message in text


def test_payoffs_from_arrays() -> None:
    testbed = Payoffs.from_arrays(X, PAID)
    assert testbed.spec == Spec(arms=2, dim=4)
    _, rewards, means = environment(testbed, [0], 4)
    np.testing.assert_array_equal(rewards, means)
    seen = np.asarray(means[:, :, 0])
    np.testing.assert_array_equal(seen[np.lexsort(seen.T)], PAID[np.lexsort(PAID.T)])
    bernoulli = Payoffs.from_arrays(X, PAID > 0, likelihood="bernoulli")
    assert bernoulli.spec.rewards == "bernoulli"


@pytest.mark.parametrize(
    "features",
    [X.tolist(), jnp.asarray(X), X.astype(np.float16), X.astype(np.int8), X.astype(np.longdouble)],
)
def test_lists_and_all_kinds_of_numbers_are_features(features: Any) -> None:
    expected = contexts_of(Classification.from_arrays(X, Y).table)
    testbed = Classification.from_arrays(features, Y.tolist())
    np.testing.assert_allclose(contexts_of(testbed.table), expected, atol=1e-6)
    truths = Classification.from_arrays(X > 5, Y > 0)
    np.testing.assert_array_equal(truths.labels, Y > 0)


def test_contexts_keep_what_float32_would_lose() -> None:
    """Large means with small spreads, tiny and huge numbers: as in float64."""
    spread = np.random.RandomState(0).normal(size=(50, 2))
    offset = np.hstack([1e9 + spread[:, [0]], spread[:, [1]]])
    for features in (offset, spread * [1e-40, 1.0], spread * [1e37, 1e-300]):
        if features[0, 1] == spread[0, 1]:
            expected = unit(standardised(features))
            np.testing.assert_allclose(
                contexts_of(encode("a", features, "number", "standard")), expected, atol=1e-5
            )
        paper = contexts_of(encode("a", features * 1e-20, "number", "paper"))
        np.testing.assert_allclose(paper, unit(features), atol=1e-5)


# ---- the intercept --------------------------------------------------------------------------


def test_one_constant_ends_every_context_of_length_one() -> None:
    with_one = contexts_of(encode("a", COLUMNS, "number", "standard", intercept=True))
    without = contexts_of(encode("a", COLUMNS, "number", "standard"))
    np.testing.assert_array_equal(with_one[:, -1], np.float32(np.sqrt(0.5)))
    np.testing.assert_allclose(with_one[:, :-1], without * np.sqrt(0.5), atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(with_one, axis=1), 1, atol=1e-6)
    zeros = encode("a", 0 * COLUMNS, "number", "paper", intercept=True)
    np.testing.assert_array_equal(contexts_of(zeros)[:, :-1], 0)


@pytest.mark.slow
def test_a_linear_agent_learns_which_arm_is_the_best_on_the_whole() -> None:
    """Nine labels in ten are 1 and the features are of no use: chance has regret 1,000."""
    random = np.random.RandomState(0)
    labels = (random.uniform(size=2_000) < 0.9).astype(int)
    features = np.hstack([np.ones((2_000, 1)), random.normal(size=(2_000, 2))])
    told: list[str] = []
    testbed = Classification.from_arrays(features, labels, horizon=2_000, notify=told.append)
    assert told == [
        "this dataset has the same value in all rows of column 0: nothing can be learned from it "
        "(for a constant, an intercept is there already)."
    ]
    outcome = simulate(testbed, LinTS(), rounds=2_000, seeds=range(3))
    assert outcome.final_regret.max() < 400


def test_columns_and_labels_that_look_like_a_mistake_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    same = np.hstack([X, X[:1].repeat(4, axis=0)])
    Classification.from_arrays(same, Y + 1, intercept=False, name="mine")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "feelgood: mine has the same value in all rows of columns 3, 4, 5: nothing can be learned "
        "from it (for a constant, use intercept=True).",
        "feelgood: mine has no row with the label 0: this arm never pays.",
    ]
    Classification.from_arrays(same, Y + 1, notify=None)
    Classification.from_arrays(same.astype(np.uint8), Y, kinds="pixel")
    assert capsys.readouterr().err == ""


def test_a_testbed_has_a_name() -> None:
    assert Classification.from_arrays(X, Y, name="clicks").name == "clicks"
    assert Classification.from_arrays(X, Y).name == "Classification"
    assert Payoffs.from_arrays(X, PAID, name="prices", arm_names=("low", "high")).name == "prices"
    assert Payoffs.from_arrays(X, PAID, arm_names=["low", "high"]).arm_names == ("low", "high")
    assert TESTBEDS["linear-20"].build().name == "Linear"


# ---- rounds --------------------------------------------------------------------------------


def test_a_uniform_agent_regrets_one_minus_one_over_the_arms() -> None:
    """Expected regret per round is 1 − 1/K, whatever the classes' shares; 5 deviations (6e-7)."""
    rounds, seeds = 2_000, 20
    outcome = simulate(built("digits"), Uniform(), rounds=rounds, seeds=range(seeds))
    plays = rounds * seeds
    deviation = np.sqrt(0.9 * 0.1 / plays)
    assert abs(outcome.final_regret.sum() / plays - 0.9) < 5 * deviation


def test_rows_do_not_depend_on_the_agent_or_on_other_seeds() -> None:
    testbed = built("digits")
    alone = environment(testbed, [4], 30)
    among = environment(testbed, [9, 4], 30)
    np.testing.assert_array_equal(alone.contexts[..., 0], among.contexts[..., 1])
    np.testing.assert_array_equal(alone.means[..., 0], among.means[..., 1])
    assert not np.array_equal(among.means[..., 0], among.means[..., 1])


# ---- the registry ---------------------------------------------------------------------------

DATA_TESTBEDS = (
    "adult", "cifar10", "covertype", "digits", "financial", "jester", "magic", "mnist",
    "mushroom", "mushroom-risky", "restaurant", "shuttle",
)  # fmt: skip


def test_listing_does_not_touch_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the disk was read")

    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr(np, "load", refuse)
    monkeypatch.setattr("pathlib.Path.is_file", refuse)
    registry: Registry[Testbed] = TESTBEDS
    assert set(DATA_TESTBEDS) <= set(registry.names())
    for name in DATA_TESTBEDS:
        assert registry[name].settings["preprocess"].choices == ("paper", "standard")


def test_absent_data_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("FEELGOOD_DATA", str(tmp_path))
    monkeypatch.setenv("FEELGOOD_CACHE", str(tmp_path / "cache"))
    for name in DATA_TESTBEDS:
        if name != "digits":
            with pytest.raises(
                DataAbsent, match=r"run 'feelgood data fetch \w+', or set FEELGOOD_"
            ):
                TESTBEDS[name].build()
