"""What a dataset is, and which there are. Every dataset's own file registers it here.

Nothing is read or downloaded at import: an entry says where the data come from, what proves that
they are right, and which bandit problem they make.
"""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Int, Num, Shaped

from feelgood.core.errors import FeelgoodError, did_you_mean
from feelgood.core.settings import Setting
from feelgood.core.sources import place_of
from feelgood.core.spec import Likelihood

Arrays = Mapping[str, Shaped[np.ndarray, "..."]]
#: Published files by name, to where they are on this machine.
Files = Mapping[str, Path]
#: What a column holds. Pixels are numbers that share one mean and one spread; a flag is 0 or 1.
Kind = Literal["number", "pixel", "category", "flag"]

MEBIBYTE = 2**20
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


@dataclasses.dataclass(frozen=True)
class Original:
    """A published file: its homes, the first one tried first, and its SHA-256.

    None: no sum of the whole file is known to us, and the digest of the arrays is the check.
    A file of more than `mebibytes` is not the published one, which has half as much or less.

    **Example:**

    >>> from feelgood.data.catalogue import Original
    >>> Original("tiles.csv", ("https://example.org/tiles.csv",)).most
    4194304
    """

    file: str
    urls: tuple[str, ...]
    sha256: str | None = None
    mebibytes: int = 4

    @property
    def most(self) -> int:
        """The most bytes that are taken."""
        return self.mebibytes * MEBIBYTE


@dataclasses.dataclass(frozen=True)
class Dataset:
    """One dataset: what proves that a file holds it, and how to make it of published files.

    An archive is right if its bytes have `sha256`, or else if its `arrays` have `digest`. Archives
    that are made here from the original files may be compressed in another way. What `convert`
    makes is kept only if it has that digest. Originals with `by_hand` cannot be downloaded.

    **Example:**

    >>> from feelgood.data.catalogue import DATASETS
    >>> from feelgood.data import datasets  # it registers all that the package has
    >>> DATASETS["shuttle"].arrays, DATASETS["shuttle"].rows
    (('X', 'y', 'is_test'), 58000)
    """

    name: str
    file: str
    digest: str
    arrays: tuple[str, ...]
    rows: int
    doc: str
    originals: tuple[Original, ...]
    convert: Callable[[Files], Arrays]
    sha256: str = ""
    by_hand: str = ""


class Labelled(NamedTuple):
    """Rows whose right arm is a label.

    **Example:**

    >>> import numpy as np
    >>> from feelgood.data.catalogue import Labelled
    >>> Labelled(np.array([[0.5, 1.0], [0.1, 2.0]]), np.array([0, 1]), "number").features.shape
    (2, 2)
    """

    features: Num[np.ndarray, "rows columns"]
    labels: Int[np.ndarray, " rows"]
    kinds: list[Kind] | Kind


class Paid(NamedTuple):
    """Rows for which every arm has a payoff."""

    features: Num[np.ndarray, "rows columns"]
    payoffs: Num[np.ndarray, "rows arms"]
    kinds: list[Kind] | Kind


@dataclasses.dataclass(frozen=True)
class Problem:
    """The bandit problem that a dataset makes: the testbed of this name shows these rows.

    `rows` gets the dataset's arrays and the values of `settings` by name. `dims` are the dimensions
    of a context with preprocess "paper" and "standard", so that a study need not read the data.

    **Example:**

    >>> from feelgood.data.catalogue import Labelled, Problem
    >>> def rows(data):
    ...     return Labelled(data["X"], data["y"], "number")
    >>> Problem("tiles", "Tiles of two kinds.", rows, arms=2, dims=(2, 2)).horizon
    10000
    """

    name: str
    doc: str
    rows: Callable[..., Labelled | Paid]
    arms: int
    dims: tuple[int, int] | None = None
    rewards: Likelihood = "bernoulli"
    horizon: int = 10_000
    settings: Mapping[str, Setting] = dataclasses.field(default_factory=dict)
    #: The dataset whose arrays are read; empty where a library brings the data.
    dataset: str = ""
    #: What `feelgood data` says of data that a library brings.
    elsewhere: str = ""


DATASETS: dict[str, Dataset] = {}
BANDIT_PROBLEMS: dict[str, Problem] = {}
_FOLLOWERS: list[Callable[[Problem], None]] = []


def register_dataset(dataset: Dataset, problem: Problem) -> None:
    """Add a dataset and its bandit problem. The same file again replaces what it registered.

    **Example:**

    >>> import numpy as np
    >>> from feelgood import TESTBEDS
    >>> from feelgood.data.catalogue import Dataset, Labelled, Original, Problem, register_dataset
    >>> def convert(files):
    ...     table = np.loadtxt(files["tiles.csv"], delimiter=",")
    ...     return {"X": table[:, :-1], "y": table[:, -1].astype(int)}
    >>> register_dataset(
    ...     Dataset(
    ...         name="tiles",
    ...         file="tiles.npz",
    ...         digest="0" * 64,  # of the right arrays; `feelgood data verify tiles` compares
    ...         arrays=("X", "y"),
    ...         rows=4,
    ...         doc="four tiles",
    ...         originals=(Original("tiles.csv", ("https://example.org/tiles.csv",)),),
    ...         convert=convert,
    ...     ),
    ...     Problem("tiles", "Tiles.", lambda d: Labelled(d["X"], d["y"], "number"), arms=2),
    ... )
    >>> "tiles" in TESTBEDS
    True
    """
    before = DATASETS.get(dataset.name)
    _refuse_taken(dataset.name, dataset.convert, before and before.convert)
    register_problem(dataclasses.replace(problem, dataset=dataset.name))
    DATASETS[dataset.name] = dataset


def register_problem(problem: Problem) -> None:
    """Add a bandit problem, and tell those who follow."""
    before = BANDIT_PROBLEMS.get(problem.name)
    _refuse_taken(problem.name, problem.rows, before and before.rows)
    BANDIT_PROBLEMS[problem.name] = problem
    for follower in _FOLLOWERS:
        follower(problem)


def _refuse_taken(name: str, function: Any, before: Any) -> None:
    """Refuse a name that another piece of code has registered."""
    if before is not None and place_of(before) != place_of(function):
        raise FeelgoodError(f"the dataset name '{name}' is taken: register under another name.")


def follow_problems(follower: Callable[[Problem], None]) -> None:
    """Call `follower` with every problem there is, and with every one that comes later."""
    for problem in BANDIT_PROBLEMS.values():
        follower(problem)
    _FOLLOWERS.append(follower)


def dataset(name: str) -> Dataset:
    """The entry of a dataset, or a sentence that names the nearest one."""
    if name in BANDIT_PROBLEMS and BANDIT_PROBLEMS[name].elsewhere:
        raise FeelgoodError(
            f"{name} has no file of its own, as it is {BANDIT_PROBLEMS[name].elsewhere}."
        )
    if name not in DATASETS:
        raise FeelgoodError(f"unknown dataset '{name}': {did_you_mean(name, DATASETS)}")
    return DATASETS[name]
