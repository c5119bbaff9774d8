"""Datasets on this machine: where they lie, whether they are what they should be.

They never enter the repository or the package. A dataset is one numpy archive. It is looked for in
the folder that `FEELGOOD_DATA` names, then in the user's cache folder, where
`feelgood.data.fetching` puts what it downloads.
"""

import hashlib
import math
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from feelgood.core.cache_folder import cache_folder
from feelgood.core.errors import FeelgoodError
from feelgood.data.catalogue import DATASETS, Arrays, dataset

#: The largest dataset has a quarter of it when it is unpacked.
MOST_BYTES = 2**28


class DataAbsent(FeelgoodError):
    """A dataset is not on this machine. The message says how to get it."""


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


def load_dataset(name: str) -> dict[str, Shaped[np.ndarray, "..."]]:
    """The arrays of a dataset, wherever it lies.

    **Example:**

    >>> import feelgood
    >>> from feelgood.data.datasets import load_dataset
    >>> try:
    ...     load_dataset("shuttles")
    ... except feelgood.FeelgoodError as error:
    ...     print(error)
    unknown dataset 'shuttles': did you mean 'shuttle'?
    """
    return read_archive(name, located(name))
