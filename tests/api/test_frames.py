"""Data frames and files as bandits: what becomes of every column, and what is said about it."""

import datetime
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import feelgood
from feelgood import FeelgoodError, Spec, from_frame
from feelgood.testbeds import Classification, Payoffs

ROWS = 40
RANDOM = np.random.RandomState(0)
#: What people have: text, numbers with gaps, truth values, a day, a name per row.
TABLE: dict[str, list[Any]] = {
    "customer": [f"c{i:03}" for i in range(ROWS)],
    "age": [None if i == 7 else int(age) for i, age in enumerate(RANDOM.randint(18, 80, ROWS))],
    "city": [
        None if i == 9 else str(c) for i, c in enumerate(RANDOM.choice(["Bonn", "Rom"], ROWS))
    ],
    "member": (RANDOM.uniform(size=ROWS) < 0.5).tolist(),
    "score": RANDOM.normal(size=ROWS).tolist(),
    "offer": [
        None if i == 3 else str(o) for i, o in enumerate(RANDOM.choice(["a", "b", "c"], ROWS))
    ],
}
EXPECTED = [
    "The value of 'offer' is missing in 1 row: left out.",
    "Column 'customer' has 39 different strings in 39 rows: left out (name it in features to keep "
    "it).",
    "Column 'age' has 1 missing value: filled with the median {median:g}, and another column says "
    "where.",
    "Column 'city' has 3 different strings: one-hot; missing (1 row) is one of them.",
    "Column 'member' has 2 different truth values: one-hot.",
    "Label 'offer' has 3 values, one arm each: {a}.",
    "mine has 39 rows, 3 arms and contexts of 9 numbers, the last one a constant; a run has 39 "
    "rounds unless told otherwise.",
]


def write(kind: str, folder: Path) -> Any:
    """The table in one of the forms in which people have it."""
    path = folder / f"mine.{kind}"
    if kind == "pandas":
        return pd.DataFrame(TABLE)
    if kind == "polars":
        return pl.DataFrame(TABLE)
    if kind == "pyarrow":
        return pa.table(TABLE)
    if kind == "batch":
        return pa.RecordBatch.from_pydict(TABLE)
    if kind == "csv":
        pd.DataFrame(TABLE).to_csv(path, index=False)
    elif kind == "tsv":
        pd.DataFrame(TABLE).to_csv(path, index=False, sep="\t")
    elif kind == "parquet":
        pq.write_table(pa.table(TABLE), path)
    return path if kind == "csv" else str(path)


def contexts(testbed: Any) -> np.ndarray:
    rows = jnp.arange(testbed.table.rows)
    return np.asarray(jax.vmap(testbed.table.context)(rows), np.float64)


def expected_contexts() -> np.ndarray:
    """The same in plain numpy."""
    rows = [i for i in range(ROWS) if TABLE["offer"][i] is not None]
    age = np.array([np.nan if TABLE["age"][i] is None else TABLE["age"][i] for i in rows])
    gap = np.isnan(age)
    age[gap] = np.nanmedian(age)
    score = np.array([TABLE["score"][i] for i in rows])
    city = np.array([TABLE["city"][i] or "missing" for i in rows])
    member = np.array([TABLE["member"][i] for i in rows])
    x = np.stack(
        [
            (age - age.mean()) / age.std(),
            gap,
            *(city == level for level in ("Bonn", "Rom", "missing")),
            ~member,
            member,
            (score - score.mean()) / score.std(),
        ],
        axis=1,
    )
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return np.hstack([x, np.ones((len(x), 1))]) * np.sqrt(0.5)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "batch", "csv", "tsv", "parquet"])
def test_what_people_have_becomes_the_same_bandit(kind: str, tmp_path: Path) -> None:
    told: list[str] = []
    name = None if kind in ("csv", "tsv", "parquet") else "mine"
    testbed = from_frame(write(kind, tmp_path), label="offer", name=name, notify=told.append)
    assert isinstance(testbed, Classification)
    assert testbed.name == "mine"
    assert testbed.arm_names == ("a", "b", "c")
    assert testbed.spec == Spec(arms=3, dim=9, rewards="bernoulli")
    np.testing.assert_allclose(contexts(testbed), expected_contexts(), atol=1e-6)
    offers = [offer for offer in TABLE["offer"] if offer is not None]
    np.testing.assert_array_equal(testbed.labels, ["abc".index(offer) for offer in offers])
    known = [age for i, age in enumerate(TABLE["age"]) if age is not None and i != 3]
    shares = ", ".join(f"{arm} ({offers.count(arm)} rows)" for arm in "abc")
    assert told == [text.format(median=np.median(known), a=shares) for text in EXPECTED]


def say(**columns: Any) -> tuple[Any, str]:
    """A testbed with these columns, and what was said about them; the label is `y`."""
    options = {key: columns.pop(key) for key in ("features", "preprocess") if key in columns}
    rows = len(next(iter(columns.values())))
    frame = {**columns, "y": ["a", "b"] * (rows // 2), "free": np.arange(rows) ** 2}
    told: list[str] = []
    if "features" in options:
        options["features"] = [*options["features"], "free"]
    testbed = from_frame(
        frame if hasattr(frame, "columns") else pd.DataFrame(frame),
        label="y",
        notify=told.append,
        **options,
    )
    return testbed, " ".join(told[:-2])


NUMBERED = "Column 'x' numbers the rows: left out (name it in features to keep it)."
DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(int(d)) for d in np.arange(30) ** 2]


@pytest.mark.parametrize(
    ("column", "dim", "sentence"),
    [
        (range(30), 1, NUMBERED),
        (range(1, 31), 1, NUMBERED),
        ([5] * 30, 1, "Column 'x' has the same value in all rows: left out."),
        (["u"] * 30, 1, "Column 'x' has the same value in all rows: left out."),
        ([None] * 30, 1, "Column 'x' is empty: left out."),
        ([[1, 2]] * 30, 1, "Column 'x' holds values of the kind list<item: int64>: left out."),
        (DAYS, 2, "Column 'x' holds dates or times: used as a number of days."),
        (pd.to_datetime(DAYS), 2, "Column 'x' holds dates or times: used as a number of days."),
        (
            [datetime.timedelta(hours=i**2) for i in range(30)],
            2,
            "Column 'x' holds dates or times: used as a number of days.",
        ),
        (
            [datetime.time(i % 24, 30) for i in range(30)],
            2,
            "Column 'x' holds dates or times: used as a number of days.",
        ),
        (
            [0, 1, 2, 0, 1, 2] * 5,
            2,
            "Column 'x' has 3 different whole numbers: used as a number (make it text for "
            "one-hot).",
        ),
        ([0, 1] * 15, 2, ""),
        (pd.Categorical([3, 1, 2] * 10), 4, "Column 'x' has 3 different categories: one-hot."),
        (
            [1.0, None, 1.0] * 10,
            2,
            "Column 'x' has 10 missing values: filled with the median 1, and another column says "
            "where. Column 'x' has the same value in all rows but for the missing ones: left out.",
        ),
        ([True, None, None] * 10, 3, "Column 'x' has 2 different truth values: one-hot; missing "
         "(20 rows) is one of them."),
    ],
)  # fmt: skip
def test_every_guess_is_told(column: Any, dim: int, sentence: str) -> None:
    testbed, told = say(x=column)
    assert told == sentence
    assert testbed.spec.dim == dim + 1
    assert np.isfinite(contexts(testbed)).all()


def test_columns_that_are_named_are_kept() -> None:
    names = [f"n{i}" for i in range(30)]
    assert say(x=names)[0].spec.dim == 2
    assert say(x=names, features=["x"])[0].spec.dim == 32
    assert say(x=range(30), features=["x"])[0].spec.dim == 3
    testbed, told = say(x=["b", "a", "c"] * 10, preprocess="paper")
    assert told == "Column 'x' has 3 different strings: as codes in alphabetical order."
    assert testbed.spec.dim == 3


def test_rewards_are_columns() -> None:
    frame = pd.DataFrame({"x": RANDOM.normal(size=30), "low": 30.0, "high": np.arange(30) * 50.0})
    frame.loc[2, "low"] = np.nan
    told: list[str] = []
    testbed = from_frame(frame, rewards=["low", "high"], notify=told.append, horizon=7)
    assert isinstance(testbed, Payoffs)
    assert testbed.arm_names == ("low", "high")
    assert testbed.spec == Spec(arms=2, dim=2) and testbed.rounds == 7
    keep = np.arange(30) != 2
    np.testing.assert_array_equal(testbed.payoffs, frame[["low", "high"]].to_numpy()[keep])
    assert told[0] == "The value of 'low' is missing in 1 row: left out."
    assert told[1].startswith("The rewards have a standard deviation of ")

    clicks = pd.DataFrame({"x": range(5, 35), "p": [True, False] * 15, "q": [0, 1] * 15})
    testbed = from_frame(clicks, rewards=["q", "p"], intercept=False, notify=told.append)
    assert testbed.spec == Spec(arms=2, dim=1, rewards="bernoulli")
    np.testing.assert_array_equal(testbed.payoffs, [[0, 1], [1, 0]] * 15)


def test_labels_of_every_kind_are_arms_in_order() -> None:
    x = np.arange(12.0) ** 2
    for values, names in (
        ([10, 9, 10] * 4, ("9", "10")),
        ([2.0, 1.5, 2.0] * 4, ("1.5", "2")),
        ([True, False, True] * 4, ("False", "True")),
        (pd.Categorical(["z", "a", "z"] * 4), ("a", "z")),
        ([datetime.date(2024, 1, 2), datetime.date(2024, 1, 1)] * 6, ("2024-01-01", "2024-01-02")),
    ):
        frame = pd.DataFrame({"x": x, "y": values})
        assert from_frame(frame, label="y", notify=None).arm_names == names


def test_a_long_table_is_not_run_whole_unless_told() -> None:
    frame = pa.table({"x": np.arange(20_000) % 977, "y": np.arange(20_000) % 2})
    assert from_frame(frame, label="y", notify=None).rounds == 10_000
    assert from_frame(frame, label="y", horizon=20_000, notify=None).rounds == 20_000


def test_files_of_many_countries(tmp_path: Path) -> None:
    path = tmp_path / "preise.csv"
    told: list[str] = []
    rows = "\n".join(f"{i},{i % 7};{'ja' if i % 3 else 'nein'};Köln" for i in range(12))
    path.write_text(f"größe;kauf;ort\n{rows}\n", encoding="utf-8-sig")
    testbed = from_frame(path, label="kauf", features=["größe"], notify=told.append)
    assert testbed.arm_names == ("ja", "nein") and testbed.spec.dim == 2
    assert told[:2] == [
        "The values are separated by semicolons.",
        "Numbers are written with a decimal comma.",
    ]
    # A column whose first number with a point comes late: 1 MB of whole numbers before it.
    late = "x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(200_000)) + "0.5,1\n"
    (tmp_path / "late.csv").write_text(late)
    assert from_frame(tmp_path / "late.csv", label="y", notify=None).table.rows == 200_001


def test_an_index_is_not_lost_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame({0: range(5, 17), 1: [0, 1] * 6}, index=list("abcdefghijkl"))
    assert from_frame(frame, label=1).spec.dim == 2
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "The index is left out: reset_index() makes it a column."
    assert len(said) == 3, "print is the default"


FRAME = pd.DataFrame(
    {"age": range(20, 60), "bought": ["no", "yes"] * 20, "one": 1, "price": np.arange(40) / 7}
)


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (FRAME, {"label": "bougt"}, "frame has no column 'bougt': did you mean 'bought'?"),
        (FRAME, {"label": "q"}, "frame has no column 'q': known: age, bought, one, price."),
        (FRAME, {"label": ["bought"]}, "frame has no column ['bought']"),
        (FRAME, {"label": 3}, "frame has no column 3"),
        (FRAME, {}, "neither label nor rewards is given: name the column"),
        (FRAME, {"label": "bought", "rewards": ["age", "price"]}, "both label and rewards"),
        (FRAME.iloc[:0], {"label": "bought"}, "frame has no rows"),
        (FRAME[[]], {"label": "bought"}, "frame has no rows"),
        (FRAME, {"label": "one"}, "the label 'one' is 1 in all rows of frame"),
        (FRAME, {"label": "age"}, "the label 'age' has 40 different values in 40 rows"),
        (FRAME, {"label": "price", "name": "mine"}, "the label 'price' has 40 different values"),
        (FRAME, {"rewards": ["age", "bought"]}, "the rewards 'bought' of frame are strings"),
        (FRAME, {"rewards": ["age"]}, "rewards names 1 column: a bandit needs at least 2 arms"),
        (FRAME, {"rewards": "age"}, "rewards names 1 column"),
        (FRAME, {"rewards": []}, "rewards names 0 column"),
        (FRAME, {"rewards": 7}, "frame has no column 7"),
        (FRAME, {"rewards": ["age", "age"]}, "rewards name the column 'age' twice"),
        (FRAME, {"rewards": ["age", "prize"]}, "no column 'prize': did you mean 'price'?"),
        (FRAME, {"label": "bought", "features": ["agee"]}, "did you mean 'age'?"),
        (FRAME, {"label": "bought", "features": ["bought"]}, "leave it out of features"),
        (FRAME, {"label": "bought", "features": ["one"]}, "no column that an agent can learn from"),
        (FRAME, {"label": "bought", "features": []}, "no column that an agent can learn from"),
        (FRAME, {"label": "bought", "preprocess": "Paper"}, "did you mean 'paper'?"),
        (FRAME, {"label": "bought", "intercept": "no"}, "intercept = 'no': use True or False"),
        (FRAME, {"label": "bought", "horizon": -5}, "horizon = -5: use a whole number"),
        (FRAME, {"label": "bought", "name": 3}, "name = 3 is not allowed"),
        (FRAME, {"label": "bought", "notify": 3}, "notify = 3 is not allowed"),
        (FRAME.assign(age=np.inf), {"label": "bought"}, "the value inf in row 0 of column 'age'"),
        (FRAME.assign(age=1e39), {"label": "bought"}, "the value 1e+39 in row 0 of column 'age'"),
        (FRAME.assign(bought=None), {"label": "bought"}, "no row in which 'bought' is known"),
        (FRAME.assign(bought=[[1]] * 40), {"label": "bought"}, "use text or numbers"),
        (
            FRAME.assign(age=[1, "a"] * 20),
            {"label": "bought"},
            "give each column values of one kind",
        ),
        (FRAME.rename(columns={"one": "age"}), {"label": "bought"}, "two columns 'age'"),
        (FRAME["age"], {"label": "bought"}, "a frame of type Series is not known"),
        (pl.Series([1, 2]), {"label": "bought"}, "a frame of type Series is not known"),
        ({"a": [1]}, {"label": "a"}, "a frame of type dict is not known"),
        (np.eye(3), {"label": "a"}, "a frame of type ndarray is not known"),
        (None, {"label": "a"}, "a frame of type NoneType is not known"),
        (pd.DataFrame, {"label": "a"}, "a frame of type type is not known"),
    ],
)
def test_mistakes_are_one_sentence(frame: Any, options: dict[str, Any], message: str) -> None:
    refused(frame, message, **{"notify": None, **options})


def refused(frame: Any, message: str, **options: Any) -> None:
    with pytest.raises(FeelgoodError) as caught:
        from_frame(frame, **options)
    text = str(caught.value)
    assert message in text
    assert text.endswith((".", "?")) and "\n" not in text and len(text) < 600


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("absent.csv", None, "absent.csv' does not exist: check the path."),
        ("a" * 300 + ".csv", None, "does not exist: check the path."),
        ("a.xlsx", b"PK", "a.xlsx' is no .csv, .tsv or .parquet file"),
        ("mushroom", None, "mushroom' is no .csv, .tsv or .parquet file"),
        ("a.csv", b"", "a.csv' is empty"),
        ("a.csv", b" \n\n", "a.csv' is empty"),
        ("a.csv", b"x,y\n", "a has no rows"),
        ("a.csv", b"x,y\n1,2\n1,2,3\n", "cannot be read as CSV (CSV parse error: "),
        ("a.csv", b"x,y\n1,caf\xe9\n", "is no UTF-8 text (at byte 9): save it as CSV in UTF-8"),
        ("a.csv", b"x,y\n1\0,2\n", "holds binary data"),
        ("a.csv", b"x,x\n1,2\n", "a has two columns 'x'"),
        ("a.parquet", b"x,y\n1,2\n", "cannot be read as Parquet ("),
        ("a.parquet", b"", "cannot be read as Parquet ("),
    ],
)
def test_bad_files_are_one_sentence(
    file: str, content: bytes | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / file
    if content is not None:
        path.write_bytes(content)
    refused(path, message, label="y", notify=None)
    folder = tmp_path / "b.csv"
    folder.mkdir()
    refused(folder, "b.csv' is a folder: check the path.", label="y")


def test_from_a_file_to_the_best_agent(tmp_path: Path) -> None:
    """A CSV of offers, a run, and which agent to use: one that looks at the customer."""
    age = RANDOM.randint(20, 60, 400)
    city = RANDOM.choice(["Bonn", "Rom", "Oslo"], 400)
    offer = np.where(city == "Oslo", "boat", np.where(age < 40, "bike", "car"))
    path = tmp_path / "offers.csv"
    pd.DataFrame({"age": age, "city": city, "offer": offer}).to_csv(path, index=False)
    told: list[str] = []
    testbed = from_frame(path, label="offer", notify=told.append)
    result = feelgood.run(testbed, ["linucb", "uniform"], seeds=2)
    best = min(result, key=lambda one: one.final_regret.mean())
    assert best.agent == "linucb"
    assert best.final_regret.max() < 0.5 * result["uniform"].final_regret.min()
    assert testbed.arm_names == ("bike", "boat", "car")
    assert "Column 'city' has 3 different strings: one-hot." in told
