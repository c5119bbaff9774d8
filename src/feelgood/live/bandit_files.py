"""Saved bandits: one file, whole or not there, that runs nothing when it is read.

The file is one line of text (a name, the version of the schema, SHA-256 of the rest) and a ZIP with
`manifest.json` and one NumPy array per part. Anything that was changed on the way is noticed.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from feelgood.core import atomic
from feelgood.core.errors import FeelgoodError

_NAME = b"feelgood-bandit"
SCHEMA = 2
_LONGEST_LINE = 200


class SavedBandit(NamedTuple):
    """What a file holds."""

    manifest: dict[str, Any]
    arrays: dict[str, np.ndarray]


def saved_bytes(bandit: SavedBandit) -> bytes:
    """The content of a file; equal bandits have equal files."""
    shapes = {
        name: {"shape": list(array.shape), "dtype": array.dtype.str}
        for name, array in bandit.arrays.items()
    }
    text = json.dumps({**bandit.manifest, "arrays": shapes}, indent=1, sort_keys=True)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _put(archive, "manifest.json", text.encode())
        for name, array in sorted(bandit.arrays.items()):
            part = io.BytesIO()
            np.lib.format.write_array(part, np.asarray(array, order="C"), allow_pickle=False)
            _put(archive, f"{name}.npy", part.getvalue())
    content = file.getvalue()
    digest = hashlib.sha256(content).hexdigest().encode()
    return b" ".join((_NAME, str(SCHEMA).encode(), digest)) + b"\n" + content


def _put(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)


def write_bandit(path: Path, bandit: SavedBandit) -> None:
    """Write the file: at every instant it is the old one or the new one."""
    content = saved_bytes(bandit)
    atomic.write(path, lambda file: file.write(content))


def read_bandit(path: Path) -> SavedBandit:
    """Read a file of this or an older version; a sentence about any other."""
    with atomic.reading(path):
        content = path.read_bytes()
    first, _, rest = content[:_LONGEST_LINE].partition(b"\n")
    words = first.split(b" ")
    if len(words) != 3 or words[0] != _NAME or not words[1].isdigit():
        raise FeelgoodError(f"{path} is no saved bandit: give a file that Bandit.save wrote.")
    schema = int(words[1])
    if schema > SCHEMA:
        raise FeelgoodError(
            f"{path} was written by a newer version (schema {schema}, known: {SCHEMA}): update "
            "feelgood."
        )
    rest = content[len(first) + 1 :]
    if hashlib.sha256(rest).hexdigest().encode() != words[2] or schema not in (*_OLDER, SCHEMA):
        raise FeelgoodError(f"{path} is damaged: its content is not what was written; use a copy.")
    with zipfile.ZipFile(io.BytesIO(rest)) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        arrays = {
            name: np.lib.format.read_array(
                io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False
            )
            for name in manifest.pop("arrays")
        }
    saved = SavedBandit(manifest, arrays)
    while schema < SCHEMA:
        saved, schema = _OLDER[schema](saved), schema + 1
    return saved


def _from_1(saved: SavedBandit) -> SavedBandit:
    """Schema 1 knew no removed arms, no forgetting and no limit of waiting decisions."""
    manifest = {"removed": [], "forget": 1.0, "pending": 100_000, **saved.manifest}
    return SavedBandit(manifest, saved.arrays)


#: From each older version to the next one.
_OLDER: dict[int, Callable[[SavedBandit], SavedBandit]] = {1: _from_1}
