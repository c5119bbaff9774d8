"""Real datasets: which there are, where they lie, whether they are what they should be.

They never enter the repository or the package, and nothing is read or downloaded at import.
A dataset is one numpy archive. It is looked for in the folder that `FEELGOOD_DATA` names, then in
the user's cache folder, where `feelgood.data.fetching` puts what it downloads.
"""

import dataclasses
import hashlib
import math
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from feelgood.core.errors import FeelgoodError, did_you_mean
from feelgood.engine.compiling import cache_folder

#: The largest dataset has a quarter of it when it is unpacked.
MOST_BYTES = 2**28

Arrays = Mapping[str, Shaped[np.ndarray, "..."]]


class DataAbsent(FeelgoodError):
    """A dataset is not on this machine. The message says how to get it."""


@dataclasses.dataclass(frozen=True)
class Dataset:
    """One dataset and what proves that a file holds it.

    An archive is right if its bytes have `sha256`, or else if its `arrays` have `digest`: archives
    that are made here from the original files may be compressed in another way.
    """

    name: str
    file: str
    sha256: str
    digest: str
    arrays: tuple[str, ...]
    rows: int
    doc: str


def _catalogue(*datasets: Dataset) -> dict[str, Dataset]:
    return {dataset.name: dataset for dataset in datasets}


DATASETS = _catalogue(
    Dataset(
        name="adult",
        file="adult.npz",
        sha256="d01a8f50b42a758fe94c5623f4b638eeec3995959ca186ea59608cb61a83960b",
        digest="0b6acc7d1c7187d2ed79331337e79bc1526b63ed1a3ac976da179d0c9fcd3696",
        arrays=("X_num", "X_cat", "num_names", "cat_names", "column_order", "y", "is_test"),
        rows=48_842,
        doc="census income (Becker and Kohavi, UCI, 1996; CC BY 4.0)",
    ),
    Dataset(
        name="covertype",
        file="covertype.npz",
        sha256="9b29aad8caab8b29f3179a7b533f7d443520bfe3460695122b369a81bd39b2ba",
        digest="08a5ac16a05fdd1683e3982b7f6b1b156ec4848159406ac22cfba783dfa41128",
        arrays=("X", "y"),
        rows=581_012,
        doc="forest cover (Blackard, UCI, 1998; CC BY 4.0)",
    ),
    Dataset(
        name="magic",
        file="magic.npz",
        sha256="4638d5cf19c8b17d0e7aa09dbcbbef8cc4522eedef221c779bfd628ce546765c",
        digest="981a6100302459badaa2ef58ea043e754ff0917e35bd13384194f6f2d771f30c",
        arrays=("X", "y"),
        rows=19_020,
        doc="gamma telescope (Bock, UCI, 2007; CC BY 4.0)",
    ),
    Dataset(
        name="mushroom",
        file="mushroom.npz",
        sha256="613d76c82bb2845c68e71a6886ee3de7ae77273130994397177a4b90207caec1",
        digest="2b687d7af72d4e3665feef5d93489a2edc2ef4f6b77c1f6285264e4503cde59d",
        arrays=("X", "y"),
        rows=8_124,
        doc="agaricus-lepiota (UCI, 1981; CC BY 4.0)",
    ),
    Dataset(
        name="shuttle",
        file="shuttle.npz",
        sha256="b4ebcb217718e42b5f044d94841f4fb7bca57a0263992d5ceb9c02d6931f59fe",
        digest="354ae41cba4ec59bb6d5a5d0a93ab523b0d8557680534a02f59002463c39e5bf",
        arrays=("X", "y", "is_test"),
        rows=58_000,
        doc="Statlog shuttle (UCI; CC BY 4.0)",
    ),
    Dataset(
        name="mnist",
        file="mnist_784.npz",
        sha256="54ddfe01bb1284d50e5473a31c590ba0e723949b611ce6e7604f2e9473754d8a",
        digest="96e7a305950b896bfc1dc9ae9d85fbfc49250af6d562fe9f01eb234cfcf74726",
        arrays=("X", "y"),
        rows=70_000,
        doc="handwritten digits (LeCun et al., 1998; CC BY-SA 3.0)",
    ),
    Dataset(
        name="cifar10",
        file="cifar10.npz",
        sha256="12bf910765bf1eb757d2718fbe833254e535e4a510782545a566c2b6546b9bff",
        digest="a0b5b37bf9725455617e413e7421c0ab2d4d2c4a604b4a6e914eb2de1baa5732",
        arrays=("X", "y"),
        rows=10_000,
        doc="small photographs, the first training batch (Krizhevsky, 2009)",
    ),
    Dataset(
        name="jester",
        file="jester.npz",
        sha256="ef8573dfab31f8d4dcbd5b4fee9f224d9b2f8a7ef1fd50afae1bd7a7eed67f5c",
        digest="fe52588ee1ce48dc3e8e3ac44e9a57e62edd02277eb235d218d854e99eab5768",
        arrays=("X40", "joke_ids40", "user_rows40", "ratings_all", "n_rated"),
        rows=19_181,
        doc="ratings of jokes (Goldberg et al., 2001; for research, with citation)",
    ),
    Dataset(
        name="financial",
        file="financial.npz",
        sha256="f26dd9d59dcf69e01b165c90961a6e8f1455c1b71c29dad2944e30f900b1060f",
        digest="849448f9bf238d9aff56f712b4f1dc18805c843db6fbd1a8a6e149cb4f1d1559",
        arrays=("X", "header_as_published"),
        rows=3_713,
        doc="daily price changes of 21 stocks (Riquelme et al., ICLR 2018)",
    ),
    Dataset(
        name="restaurant",
        file="restaurant.npz",
        sha256="559cff6b1e1bcbcc8e664a950d9c7b108d0faf6601069b7789a5052d9dd276a6",
        digest="f0f15235872dd72320a0afad93127f4ca3389724a546c21afcf8baae425cf6b6",
        arrays=("rating_final", "rating_final_columns", "userprofile", "userprofile_columns"),
        rows=1_161,
        doc="ratings of restaurants (Vargas-Govea et al., UCI, 2012; CC BY 4.0)",
    ),
)


#: The one testbed of real data that is no file.
DIGITS = "digits needs scikit-learn: install it with pip install 'feelgood[digits]'."


def dataset(name: str) -> Dataset:
    """The entry of a dataset, or a sentence that names the nearest one."""
    if name == "digits":
        raise FeelgoodError(
            "digits has no file of its own, as it is part of scikit-learn: "
            "pip install 'feelgood[digits]' brings it along."
        )
    if name not in DATASETS:
        raise FeelgoodError(f"unknown dataset '{name}': {did_you_mean(name, DATASETS)}")
    return DATASETS[name]


def data_folder() -> Path | None:
    """The folder named by `FEELGOOD_DATA`, if it is set."""
    chosen = os.environ.get("FEELGOOD_DATA")
    return Path(chosen) if chosen else None


def use_data(folder: Path | None) -> None:
    """Look for datasets in `folder`, in this process and those it starts; None changes nothing."""
    if folder is not None:
        if not folder.is_dir():
            raise FeelgoodError(f"the data folder {folder} does not exist: check the path.")
        os.environ["FEELGOOD_DATA"] = str(folder.absolute())


def fetched_folder() -> Path:
    """Where downloaded datasets are kept."""
    return cache_folder() / "data"


def find(name: str) -> Path | None:
    """The archive of a dataset, if there is one: the user's own, or the one that was fetched."""
    file = dataset(name).file
    for folder in (data_folder(), fetched_folder()):
        if folder is not None and (folder / file).is_file():
            return folder / file
    return None


def located(name: str) -> Path:
    """As `find`, or a sentence that says what to do."""
    path = find(name)
    if path is None:
        chosen = data_folder()
        where = f"is not in {chosen}" if chosen else "is not on this machine"
        raise DataAbsent(
            f"the dataset {name} {where}: run 'feelgood data fetch {name}', "
            f"or set FEELGOOD_DATA to a folder that holds {dataset(name).file}."
        )
    return path


def availability() -> tuple[Path | None, list[str], list[str]]:
    """The user's data folder, the datasets found there or fetched, and those that are not."""
    found = [name for name in DATASETS if find(name) is not None]
    return data_folder(), found, [name for name in DATASETS if name not in found]


def file_sha256(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def arrays_digest(arrays: Arrays, names: tuple[str, ...]) -> str:
    """SHA-256 of the contents of some arrays: names, kinds, shapes and values.

    Text counts by its letters, whatever width it is stored in.
    """
    out = hashlib.sha256()
    for name in sorted(names):
        array = arrays[name]
        text = array.dtype.kind == "U"
        kind = "text" if text else array.dtype.newbyteorder("<").str
        out.update(f"{name} {kind} {array.shape}\n".encode())
        if text:
            out.update("\n".join(array.ravel().tolist()).encode())
        else:
            out.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
    return out.hexdigest()


def _remedy(name: str, path: Path) -> str:
    if path.parent == fetched_folder():
        return f"fetch it again with 'feelgood data fetch {name} --force'"
    return "replace the file, or unset FEELGOOD_DATA"


class _Unreadable(Exception):
    """Why a file is no archive of arrays, in our words: numpy's advise to load pickles."""


def _check_member(stream: Any, file: str, size: int) -> None:
    """Whether one file of an archive is an array, by its first bytes and its size."""
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        shape, _, dtype = readers[np.lib.format.read_magic(stream)](stream)
    except (ValueError, KeyError):
        raise _Unreadable(f"{file} in it is no array") from None
    if dtype.hasobject:
        raise _Unreadable(f"{file} in it holds Python objects, which may run any code")
    if stream.tell() + math.prod(shape) * dtype.itemsize != size:
        raise _Unreadable(f"{file} in it is damaged")


def check_archive(name: str, path: Path) -> None:
    """Refuse what is no archive of this dataset's arrays, without unpacking any of them."""
    wanted = [f"{array}.npy" for array in dataset(name).arrays]
    remedy = _remedy(name, path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            missing = set(wanted) - {member.filename for member in members}
            for file in wanted:
                if file in missing:
                    array = file.removesuffix(".npy")
                    raise FeelgoodError(f"{path} holds no array {array}: {remedy}.")
            if sum(member.file_size for member in members) > MOST_BYTES:
                raise _Unreadable(f"unpacked it has more than {MOST_BYTES // 2**20} MiB")
            for member in members:
                with archive.open(member) as stream:
                    _check_member(stream, member.filename, member.file_size)
    except FeelgoodError:
        raise
    except Exception as error:
        raise FeelgoodError(f"{path} cannot be read ({_reason(error)}): {remedy}.") from error


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) if isinstance(error, _Unreadable) else "it is damaged, or no numpy archive"


def read_archive(name: str, path: Path) -> dict[str, Shaped[np.ndarray, "..."]]:
    """The arrays of a dataset from one file, checked against what is pinned."""
    entry = dataset(name)
    check_archive(name, path)
    remedy = _remedy(name, path)
    try:
        pinned = file_sha256(path) == entry.sha256
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {array: archive[array] for array in archive.files}
    except Exception as error:
        raise FeelgoodError(f"{path} cannot be read ({_reason(error)}): {remedy}.") from error
    if not pinned and arrays_digest(arrays, entry.arrays) != entry.digest:
        raise FeelgoodError(f"{path} is not the dataset {name} (its hash is another): {remedy}.")
    return arrays


def load(name: str) -> dict[str, Shaped[np.ndarray, "..."]]:
    """The arrays of a dataset, wherever it lies."""
    return read_archive(name, located(name))
