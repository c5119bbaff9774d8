"""Downloads: resumed where they stopped, checked, converted, kept whole or not at all."""

import contextlib
import hashlib
import http.client
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from email.message import Message
from pathlib import Path

import numpy as np

from feelgood.core import atomic
from feelgood.core.errors import FeelgoodError
from feelgood.data.catalogue import Arrays, Dataset, Original, dataset
from feelgood.data.datasets import arrays_digest, fetched_folder, file_sha256, find, read_archive

#: Called with (file, bytes so far, bytes in all or None).
DownloadReport = Callable[[str, int, int | None], None]

TIMEOUT = 30.0
#: A connection that breaks is taken up again this many times before the next home is tried.
ATTEMPTS = 3
_CHUNK = 2**16


class _Broken(Exception):
    """A download that did not come through; the message says why."""


class _TooLarge(Exception):
    """More than the published file has."""


def _reason(error: Exception) -> str:
    """A network error in a few words."""
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}"
    if isinstance(error, TimeoutError) or isinstance(getattr(error, "reason", None), TimeoutError):
        return "no answer in time"
    return str(getattr(error, "reason", error)) or type(error).__name__


def _length(headers: Message) -> int | None:
    """The bytes that a server promises; None if it does not say."""
    text = headers.get("Content-Length")
    if text is None:
        return None
    if not re.fullmatch("[0-9]{1,18}", text.strip()):
        raise _Broken(f"the server gives {text[:20]!r} as the length")
    return int(text)


def _transfer(
    url: str, part: Path, original: Original, timeout: float, report: DownloadReport | None
) -> None:
    """Fill `part` from where it ends; what has come stays there, unless it is too much."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "feelgood"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            if response.status != http.HTTPStatus.PARTIAL_CONTENT:
                have = 0  # the server sends everything again
            length = _length(response.headers)
            total = None if length is None else have + length
            if total is not None and total > original.most:
                raise _TooLarge
            with part.open("ab" if have else "wb") as out:
                while chunk := response.read(_CHUNK):
                    have += len(chunk)
                    if have > original.most:
                        raise _TooLarge
                    out.write(chunk)
                    if report is not None:
                        report(original.file, have, total)
    except _TooLarge:
        part.unlink(missing_ok=True)
        raise _Broken(f"more than {original.mebibytes} MiB, so another file") from None
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # nothing is missing, or the hash will tell
        raise _Broken(_reason(error)) from error
    except (OSError, http.client.HTTPException, ValueError) as error:  # the last: a strange address
        raise _Broken(_reason(error)) from error
    if total is not None and have != total:
        raise _Broken(f"stopped after {have:,} of {total:,} bytes")


def _from_home(
    original: Original, url: str, folder: Path, timeout: float, report: DownloadReport | None
) -> Path:
    """One published file from one of its homes."""
    # A part belongs to one address: parts of different files are never joined.
    mark = hashlib.sha256(url.encode()).hexdigest()[:8]
    part = folder / f"{original.file}.{mark}.part"
    for attempt in range(1, ATTEMPTS + 1):
        resumed = part.exists()
        try:
            _transfer(url, part, original, timeout, report)
        except _Broken:
            if attempt == ATTEMPTS or not part.exists():
                raise
            continue
        if original.sha256 is None or file_sha256(part) == original.sha256:
            break
        part.unlink()
        if not resumed:
            raise _Broken("another file than expected: its SHA-256 is wrong")
    else:
        raise _Broken("another file than expected: its SHA-256 is wrong")
    whole = folder / original.file
    os.replace(part, whole)
    return whole


def download(
    original: Original,
    folder: Path,
    *,
    timeout: float = TIMEOUT,
    report: DownloadReport | None = None,
) -> Path:
    """One published file, from the first home that gives it."""
    folder.mkdir(parents=True, exist_ok=True)
    reasons = []
    for url in original.urls:
        try:
            return _from_home(original, url, folder, timeout, report)
        except _Broken as broken:
            reasons.append(f"{url}: {broken}")
    raise FeelgoodError(
        f"{original.file} could not be downloaded ({'; '.join(reasons)}): check the network and "
        "try again, or give a folder that holds the file with --from."
    )


def write_archive(path: Path, arrays: Arrays) -> None:
    """Write a numpy archive whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic.replacing(path) as temporary, temporary.open("wb") as out:
        np.savez_compressed(out, allow_pickle=False, **arrays)
        out.flush()
        os.fsync(out.fileno())


def _given(entry: Dataset, folder: Path) -> dict[str, Path]:
    """The published files in a folder of the user's."""
    files = {original.file: folder / original.file for original in entry.originals}
    for original in entry.originals:
        file, path = original.file, files[original.file]
        if not path.is_file():
            raise FeelgoodError(
                f"{folder} holds no {file}: {entry.name} is made of {', '.join(files)}."
            )
        if path.stat().st_size > original.most:
            raise FeelgoodError(
                f"{path} has more than {original.mebibytes} MiB, so it is not the published file: "
                "get it again, as its publisher gives it."
            )
    return files


def fetch(
    name: str,
    *,
    given: Path | None = None,
    force: bool = False,
    timeout: float = TIMEOUT,
    report: DownloadReport | None = None,
) -> Path:
    """Get a dataset into the cache folder and return its archive; one that is there is kept.

    **Arguments:**

    - `given`: a folder with the published files, for machines without a network.
    - `force`: get it again although it is there.
    - `timeout`: seconds without a byte after which a connection is given up.

    **Example:**

    >>> import feelgood, pathlib, tempfile
    >>> from feelgood.data.fetching import fetch
    >>> try:  # from a folder that should have the published files, and is empty
    ...     fetch("shuttle", given=pathlib.Path(tempfile.mkdtemp()), force=True)
    ... except feelgood.FeelgoodError as error:
    ...     print(error)
    /... holds no shuttle.trn.Z: shuttle is made of shuttle.trn.Z, shuttle.tst.
    """
    entry = dataset(name)
    have = find(name)
    if have is not None and not force:
        read_archive(name, have)
        return have
    if given is None and entry.by_hand:
        raise FeelgoodError(
            f"{name} cannot be downloaded as it is: {entry.by_hand}, and run "
            f"'feelgood data fetch {name} --from FOLDER' with the folder of that file."
        )
    downloads = fetched_folder() / "downloads"
    if given is not None:
        files = _given(entry, given)
    else:
        files = {
            original.file: download(original, downloads, timeout=timeout, report=report)
            for original in entry.originals
        }
    try:
        arrays = _converted(entry, files)
    finally:
        if given is None:
            for path in files.values():
                path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                downloads.rmdir()
    path = fetched_folder() / entry.file
    write_archive(path, arrays)
    return path


def _converted(entry: Dataset, files: Mapping[str, Path]) -> Arrays:
    """The arrays of published files; refuses what they should not hold."""
    where = ", ".join(files)
    try:
        arrays = entry.convert(files)
        right = arrays_digest(arrays, entry.arrays) == entry.digest
    except Exception as error:
        raise FeelgoodError(
            f"{entry.name} cannot be made of {where} ({type(error).__name__}: {error}): "
            "get the files again, as their publisher gives them."
        ) from error
    if not right:
        raise FeelgoodError(
            f"{where} are not the files that {entry.name} is made of (the arrays have another "
            "hash): get the files again, as their publisher gives them."
        )
    return arrays
