"""The datasets as their publishers give them: where, and how to make our arrays of them.

Every converter reads the published files as they are. What it makes is compared with the digest
in `feelgood.data.datasets` before it is kept, so a file that is not the expected one is never used.
"""

import csv
import dataclasses
import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped, UInt8

from feelgood.data.datasets import Arrays

#: Published files by name, to where they are on this machine.
Files = Mapping[str, Path]

MEBIBYTE = 2**20
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


@dataclasses.dataclass(frozen=True)
class Original:
    """A published file: its homes, the first one tried first, and its SHA-256.

    None: no sum of the whole file is known to us, and the digest of the arrays is the check.
    A file of more than `mebibytes` is not the published one, which has half as much or less.
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
class Recipe:
    """How to make a dataset of published files. A recipe with `by_hand` cannot download them."""

    originals: tuple[Original, ...]
    convert: Callable[[Files], Arrays]
    by_hand: str = ""


# ---- formats --------------------------------------------------------------------------------


def _whole(stream: Any, mebibytes: int) -> bytes:
    """All that a stream gives, which must not be more than the published file holds."""
    data = stream.read(mebibytes * MEBIBYTE + 1)
    if len(data) > mebibytes * MEBIBYTE:
        raise ValueError(f"unpacked it has more than {mebibytes} MiB")
    return data


def uncompress(data: bytes, mebibytes: int = 64) -> bytes:
    """The contents of a `.Z` file, as Unix `compress` writes them (LZW, codes of 9 to 16 bits)."""
    if data[:2] != b"\x1f\x9d":
        raise ValueError("not a .Z file")
    most_bits, clears = data[2] & 0x1F, bool(data[2] & 0x80)
    first_free = 257 if clears else 256
    table = [bytes([i]) for i in range(256)] + [b""] * (first_free - 256)
    bits, total = 9, 8 * (len(data) - 3)
    position = group = 0  # in bits; codes come in groups of eight of the same width
    previous, out = b"", bytearray()

    def next_group() -> int:
        width = 8 * bits
        return group + -(-(position - group) // width) * width

    while position + bits <= total:
        if len(table) >= 1 << bits and bits < most_bits:
            position = group = next_group()
            bits += 1
            continue
        byte, shift = divmod(position, 8)
        code = (int.from_bytes(data[3 + byte : 6 + byte], "little") >> shift) & ((1 << bits) - 1)
        position += bits
        if code == 256 and clears:
            del table[first_free:]
            position = group = next_group()
            bits, previous = 9, b""
            continue
        if code > len(table) or (code == len(table) and not previous):
            raise ValueError("a damaged .Z file")
        entry = table[code] if code < len(table) else previous + previous[:1]
        out += entry
        if len(out) > mebibytes * MEBIBYTE:
            raise ValueError(f"unpacked it has more than {mebibytes} MiB")
        if previous and len(table) < 1 << most_bits:
            table.append(previous + entry[:1])
        previous = entry
    return bytes(out)


def _idx(path: Path) -> UInt8[np.ndarray, "..."]:
    """A gzipped file in the IDX format of unsigned bytes."""
    with gzip.open(path) as stream:
        data = _whole(stream, 64)
    if data[:3] != b"\x00\x00\x08":
        raise ValueError("not an IDX file of bytes")
    start = 4 + 4 * data[3]
    shape = np.frombuffer(data[4:start], ">u4")
    return np.frombuffer(data[start:], np.uint8).reshape(shape)


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if line.strip()]


def _in_zip(path: Path, file: str) -> bytes:
    """The file of that name in a zip archive, whatever folder it is in."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if member.rpartition("/")[2] == file:
                with archive.open(member) as stream:
                    return _whole(stream, 4)
    raise ValueError(f"{file} is not in it")


def _text(values: Sequence[object]) -> Shaped[np.ndarray, "..."]:
    return np.asarray(values, dtype=np.str_)


# ---- converters -----------------------------------------------------------------------------

ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country",
)  # fmt: skip


def _adult(files: Files) -> Arrays:
    train, test = _lines(files["adult.data"]), _lines(files["adult.test"])[1:]
    rows = [line.rstrip(".").split(", ") for line in (*train, *test)]
    columns = dict(zip((*ADULT_COLUMNS, "income"), zip(*rows, strict=True), strict=True))
    texts = [name for name in ADULT_COLUMNS if name not in ADULT_NUMBERS]
    coded = {name: np.unique(_text(columns[name]), return_inverse=True) for name in texts}
    incomes, labels = np.unique(_text(columns["income"]), return_inverse=True)
    return {
        "X_num": np.stack([np.asarray(columns[n], np.int32) for n in ADULT_NUMBERS], axis=1),
        "num_names": _text(ADULT_NUMBERS),
        "X_cat": np.stack([codes for _, codes in coded.values()], axis=1).astype(np.uint8),
        "cat_names": _text(texts),
        "column_order": _text(ADULT_COLUMNS),
        **{f"categories_{name}": names for name, (names, _) in coded.items()},
        "y": labels.astype(np.uint8),
        "y_names": incomes,
        "is_test": np.repeat(np.array([0, 1], np.uint8), [len(train), len(test)]),
    }


def _covertype(files: Files) -> Arrays:
    with gzip.open(files["covtype.data.gz"]) as stream:
        table = np.loadtxt(io.BytesIO(_whole(stream, 128)), np.int16, delimiter=",")
    return {"X": np.ascontiguousarray(table[:, :-1]), "y": (table[:, -1] - 1).astype(np.uint8)}


def _magic(files: Files) -> Arrays:
    rows = [line.split(",") for line in _lines(files["magic04.data"])]
    return {
        "X": np.asarray([row[:-1] for row in rows], np.float64),
        "y": np.asarray(["gh".index(row[-1]) for row in rows], np.uint8),
        "y_names": _text(("g", "h")),
    }


def _mushroom(files: Files) -> Arrays:
    rows = [line.split(",") for line in _lines(files["agaricus-lepiota.data"])]
    return {
        "X": _text([row[1:] for row in rows]),
        "y": np.asarray(["ep".index(row[0]) for row in rows], np.uint8),
        "y_names": _text(("e", "p")),
    }


def _shuttle(files: Files) -> Arrays:
    train = io.BytesIO(uncompress(files["shuttle.trn.Z"].read_bytes()))
    parts = [np.loadtxt(part, np.int16, ndmin=2) for part in (train, files["shuttle.tst"])]
    table = np.concatenate(parts)
    return {
        "X": np.ascontiguousarray(table[:, :-1]),
        "y": (table[:, -1] - 1).astype(np.uint8),
        "is_test": np.repeat(np.array([0, 1], np.uint8), [len(part) for part in parts]),
    }


def _mnist(files: Files) -> Arrays:
    images = [_idx(files[f"{part}-images-idx3-ubyte.gz"]) for part in ("train", "t10k")]
    labels = [_idx(files[f"{part}-labels-idx1-ubyte.gz"]) for part in ("train", "t10k")]
    pixels = np.concatenate(images)
    return {"X": pixels.reshape(len(pixels), -1), "y": np.concatenate(labels)}


def _cifar10(files: Files) -> Arrays:
    """From the binary version: the Python version holds pickles, which may run any code."""
    wanted = "data_batch_1.bin"
    with tarfile.open(files["cifar-10-binary.tar.gz"]) as archive:
        for member in archive:
            if member.size > 64 * MEBIBYTE:  # before it is unpacked, if only to come past it
                raise ValueError(f"{member.name} in it has more than 64 MiB")
            if member.isfile() and member.name.rpartition("/")[2] == wanted:
                stream = archive.extractfile(member)
                assert stream is not None
                batch = np.frombuffer(stream.read(), np.uint8).reshape(-1, 3073)
                return {"X": np.ascontiguousarray(batch[:, 1:]), "y": batch[:, 0].copy()}
    raise ValueError(f"{wanted} is not in it")


def _jester(files: Files) -> Arrays:
    rows = [line.replace(";", ",").split(",") for line in _lines(files["jester-data-1.csv"])]
    table = np.asarray(rows, np.float64)
    ratings = np.rint(100 * table[:, 1:]).astype(np.int16)
    rated = ratings != 9900
    most_rated = np.sort(np.argsort(-rated.sum(axis=0), kind="stable")[:40])
    users = np.flatnonzero(rated[:, most_rated].all(axis=1))
    return {
        "ratings_all": ratings,
        "n_rated": table[:, 0].astype(np.int16),
        "X40": np.ascontiguousarray(ratings[np.ix_(users, most_rated)]),
        "joke_ids40": (most_rated + 1).astype(np.int16),
        "user_rows40": users.astype(np.int32),
    }


def _financial(files: Files) -> Arrays:
    header, *rows = (line.replace(",", " ").split() for line in _lines(files["raw_stock_contexts"]))
    return {
        "X": np.asarray(rows, np.float64),
        "header_as_published": _text([name.strip('"') for name in header]),
    }


def _restaurant(files: Files) -> Arrays:
    out: dict[str, np.ndarray] = {}
    for table in ("rating_final", "userprofile"):
        text = _in_zip(files["RCdata.zip"], f"{table}.csv").decode("utf-8-sig")
        header, *rows = (row for row in csv.reader(io.StringIO(text)) if row)
        out |= {table: _text(rows), f"{table}_columns": _text(header)}
    return out


# ---- where they are -------------------------------------------------------------------------


def _mnist_file(file: str, sha256: str) -> Original:
    homes = (
        "https://storage.googleapis.com/cvdf-datasets/mnist",
        "https://ossci-datasets.s3.amazonaws.com/mnist",
    )
    return Original(file, tuple(f"{home}/{file}" for home in homes), sha256, 20)


RECIPES: dict[str, Recipe] = {
    "adult": Recipe(
        (
            Original(
                "adult.data",
                (f"{UCI}/adult/adult.data",),
                "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
                8,
            ),
            Original(
                "adult.test",
                (f"{UCI}/adult/adult.test",),
                "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
            ),
        ),
        _adult,
    ),
    "covertype": Recipe(
        (
            Original(
                "covtype.data.gz",
                (
                    f"{UCI}/covtype/covtype.data.gz",
                    "https://ndownloader.figshare.com/files/5976039",
                ),
                "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
                32,
            ),
        ),
        _covertype,
    ),
    "magic": Recipe(
        (
            Original(
                "magic04.data",
                (f"{UCI}/magic/magic04.data",),
                "e9314b7ebd4b4b59a3b3d65f7316663963777b16a46786877651dbbaa640b36a",
            ),
        ),
        _magic,
    ),
    "mushroom": Recipe(
        (
            Original(
                "agaricus-lepiota.data",
                (f"{UCI}/mushroom/agaricus-lepiota.data",),
                "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e",
            ),
        ),
        _mushroom,
    ),
    "shuttle": Recipe(
        (
            Original("shuttle.trn.Z", (f"{UCI}/statlog/shuttle/shuttle.trn.Z",)),
            Original(
                "shuttle.tst",
                (f"{UCI}/statlog/shuttle/shuttle.tst",),
                "f776934a628d9b94c482cb058a76ddaa63823e0f74aec065813c9dff3b89d661",
            ),
        ),
        _shuttle,
    ),
    "mnist": Recipe(
        (
            _mnist_file(
                "train-images-idx3-ubyte.gz",
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            _mnist_file(
                "train-labels-idx1-ubyte.gz",
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            ),
            _mnist_file(
                "t10k-images-idx3-ubyte.gz",
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            _mnist_file(
                "t10k-labels-idx1-ubyte.gz",
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
        ),
        _mnist,
    ),
    "cifar10": Recipe(
        (
            Original(
                "cifar-10-binary.tar.gz",
                ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                400,
            ),
        ),
        _cifar10,
    ),
    "jester": Recipe(
        (Original("jester-data-1.csv", (), None, 64),),
        _jester,
        by_hand="download https://eigentaste.berkeley.edu/dataset/jester_dataset_1_1.zip, "
        "save the workbook in it as jester-data-1.csv",
    ),
    "financial": Recipe(
        (
            Original(
                "raw_stock_contexts",
                ("https://storage.googleapis.com/bandits_datasets/raw_stock_contexts",),
            ),
        ),
        _financial,
    ),
    "restaurant": Recipe((Original("RCdata.zip", (f"{UCI}/00232/RCdata.zip",)),), _restaurant),
}
