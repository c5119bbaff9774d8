"""Formats in which datasets are published."""

import gzip
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int, Shaped, UInt8

from feelgood.data.catalogue import MEBIBYTE


def read_at_most(stream: Any, mebibytes: int) -> bytes:
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


def read_idx(path: Path) -> UInt8[np.ndarray, "..."]:
    """A gzipped file in the IDX format of unsigned bytes."""
    with gzip.open(path) as stream:
        data = read_at_most(stream, 64)
    if data[:3] != b"\x00\x00\x08":
        raise ValueError("not an IDX file of bytes")
    start = 4 + 4 * data[3]
    shape = np.frombuffer(data[4:start], ">u4")
    return np.frombuffer(data[start:], np.uint8).reshape(shape)


def lines_of(path: Path) -> list[str]:
    r"""The lines of a text that are not empty.

    **Example:**

    >>> import pathlib, tempfile
    >>> from feelgood.data.formats import lines_of
    >>> file = pathlib.Path(tempfile.mkdtemp(), "tiles.csv")
    >>> _ = file.write_text("1,2,a\n\n3,4,b\n")
    >>> lines_of(file)
    ['1,2,a', '3,4,b']
    """
    return [line for line in path.read_text("utf-8").splitlines() if line.strip()]


def read_in_zip(path: Path, file: str) -> bytes:
    """The file of that name in a zip archive, whatever folder it is in."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if member.rpartition("/")[2] == file:
                with archive.open(member) as stream:
                    return read_at_most(stream, 4)
    raise ValueError(f"{file} is not in it")


def as_text(values: Sequence[object]) -> Shaped[np.ndarray, "..."]:
    """Words as an array."""
    return np.asarray(values, dtype=np.str_)


def ordinal(values: Shaped[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
    """Categories as codes 0, 1, … in alphabetical order."""
    return np.unique(values, return_inverse=True)[1].reshape(values.shape)
