"""Real datasets as the tests use them: from the folder that `FEELGOOD_DATA` names, or skipped."""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import registered

from feelgood import TESTBEDS
from feelgood.data.catalogue import DATASETS
from feelgood.data.datasets import data_folder, load_dataset
from feelgood.data.fetching import fetch

REAL = data_folder()
#: Their tests of the files are slow.
LARGE = ("covertype", "mnist", "cifar10", "jester")

Arrays = dict[str, np.ndarray]


def real_arrays(name: str, monkeypatch: pytest.MonkeyPatch) -> Arrays:
    """A real dataset, checked against its hash; one that is not here skips the test."""
    if REAL is None or not (REAL / DATASETS[name].file).is_file():
        pytest.skip(f"{DATASETS[name].file} is not here: set FEELGOOD_DATA to its folder")
    monkeypatch.setenv("FEELGOOD_DATA", str(REAL.absolute()))
    return load_dataset(name)


def check_converter(
    name: str,
    published: Callable[[Arrays], dict[str, bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    same_bytes: Iterable[str] = (),
) -> None:
    """Published files made from the arrays, and arrays made from those: bit for bit the same.

    `same_bytes` are the files that come out of the arrays byte for byte.
    """
    data = real_arrays(name, monkeypatch)
    monkeypatch.delenv("FEELGOOD_DATA")
    monkeypatch.setenv("FEELGOOD_CACHE", str(tmp_path / "cache"))
    files, originals = published(data), DATASETS[name].originals
    assert files.keys() == {original.file for original in originals}
    for original in originals:
        (tmp_path / original.file).write_bytes(files[original.file])
        if original.file in same_bytes:
            assert hashlib.sha256(files[original.file]).hexdigest() == original.sha256
    fetch(name, given=tmp_path)
    made = load_dataset(name)
    assert set(DATASETS[name].arrays) <= made.keys()
    for array, values in made.items():
        np.testing.assert_array_equal(values, data[array], strict=values.dtype.kind != "U")


def check_classes(name: str, counts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """How many rows each class has."""
    labels = real_arrays(name, monkeypatch)["y"]
    np.testing.assert_array_equal(np.bincount(labels), counts)
    assert len(labels) == DATASETS[name].rows


def check_testbed(name: str, *, arms: int, paper: int, standard: int, rounds: int) -> None:
    """The shape of the testbed with both encodings; known datasets have no intercept."""
    testbed = built(name)
    assert (testbed.spec.arms, testbed.spec.dim, testbed.rounds) == (arms, paper, rounds)
    assert (testbed.name, testbed.table.intercept) == (name, False)
    assert built(name, preprocess="standard").spec.dim == standard


def built(name: str, **values: Any) -> Any:
    """A registered testbed with these settings."""
    return registered.built(TESTBEDS[name], values)


# ---- contexts by numpy ----------------------------------------------------------------------


def unit(x: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(length > 0, length, 1)


def standardised(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def first_contexts(testbed: Any, count: int = 200) -> np.ndarray:
    """The contexts of the first rows."""
    return np.asarray(jax.vmap(testbed.table.context)(jnp.arange(count)), np.float64)


# ---- published formats ----------------------------------------------------------------------


def as_lines(rows: Iterable[Iterable[object]], separator: str) -> str:
    return "".join(separator.join(map(str, row)) + "\n" for row in rows)


def compress(data: bytes, most_bits: int = 16, clear_at: int | None = None) -> bytes:
    """As Unix `compress` does; with `clear_at`, the table is forgotten after that many codes."""
    bits, buffer, count = 9, 0, 0
    out = bytearray([0x1F, 0x9D, 0x80 | most_bits])
    group = bytearray()

    def put(code: int) -> None:
        nonlocal buffer, count
        buffer |= code << count
        count += bits
        while count >= 8:
            group.append(buffer & 0xFF)
            buffer, count = buffer >> 8, count - 8

    def end_group() -> None:
        """Codes of one width fill whole groups of eight."""
        nonlocal buffer, count
        if count:
            group.append(buffer & 0xFF)
            buffer = count = 0
        group.extend(bytes(-len(group) % bits))
        out.extend(group)
        group.clear()

    table = {bytes([i]): i for i in range(256)}
    free, written, word = 257, 0, b""
    for byte in data:
        longer = word + bytes([byte])
        if longer in table:
            word = longer
            continue
        put(table[word])
        written += 1
        if free < 1 << most_bits:
            if free >= 1 << bits and bits < most_bits:
                end_group()
                bits += 1
            table[longer] = free
            free += 1
        if clear_at is not None and written % clear_at == 0:
            put(256)
            end_group()
            table = {bytes([i]): i for i in range(256)}
            free, bits = 257, 9
        word = bytes([byte])
    if word:
        put(table[word])
    if count:
        group.append(buffer & 0xFF)
    out.extend(group)
    return bytes(out)
