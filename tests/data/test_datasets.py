"""Datasets as files: found, checked, downloaded and converted.

Downloads are tried against a server on this machine that behaves well and badly.
"""

import contextlib
import dataclasses
import gzip
import hashlib
import io
import pickle
import re
import shutil
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from real_data import LARGE, compress, real_arrays
from typer.testing import CliRunner

from feelgood import FeelgoodError
from feelgood.cli.commands import app
from feelgood.data import datasets, fetching
from feelgood.data.catalogue import BANDIT_PROBLEMS, DATASETS, Original
from feelgood.data.datasets import DataAbsent, arrays_digest
from feelgood.data.fetching import download, fetch
from feelgood.data.formats import uncompress

#: Three telescope events, and what becomes of them.
MAGIC = b"1.5,2,3,4,5,6,7,8,9,10,g\n0,0,0,0,0,0,0,0,0,-0.25,h\n9,8,7,6,5,4,3,2,1,0,g\n"
ARRAYS = {
    "X": np.array([[1.5, *range(2, 11)], [0.0] * 9 + [-0.25], [*range(9, -1, -1)]], np.float64),
    "y": np.array([0, 1, 0], np.uint8),
}
LONG = bytes(range(256)) * 1000
#: What a server may say instead of a length.
LENGTHS = {"word": "many", "minus": "-5", "digits": "9" * 5000, "float": "1e3", "huge": "9" * 12}
MEBIBYTE = 2**20


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Server(ThreadingHTTPServer):
    """Answers by path, and remembers what was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str | None]] = []
        self.release = threading.Event()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{path}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        name = self.path.strip("/")
        wanted = self.headers.get("Range")
        self.server.asked.append((name, wanted))
        times = sum(path == name for path, _ in self.server.asked)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        data = MAGIC if "magic" in name else LONG
        if "missing" in name:
            self.send_error(404)
            return
        if "silent" in name:
            self.server.release.wait(30)
            return
        if "endless" in name:
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                while not self.server.release.is_set():
                    self.wfile.write(LONG)
            return
        if "length" in name:
            self.send_response(200)
            self.send_header("Content-Length", LENGTHS[name.partition("-")[0]])
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(data)
            return
        if "lost" in name:
            self.send_response(302)
            self.send_header("Location", "http://[nowhere")
            self.end_headers()
            return
        if "other" in name:
            data = data[::-1]
        if "deaf" in name:
            start = 0
        if start >= len(data):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        body = data[start:]
        if "truncated" in name or ("once" in name and times == 1):
            body = body[: len(data) // 5]
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.release.set()
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: object) -> Path:
    """An empty cache; the user's data folder only for the tests that ask for it."""
    monkeypatch.setenv("FEELGOOD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FEELGOOD_DATA", raising=False)
    return tmp_path


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, server: Server) -> Callable[..., None]:
    """Makes `magic` a dataset of three rows whose homes are paths of the server."""

    def set_homes(*paths: str, sha: str | None = sha256(MAGIC)) -> None:
        original = Original("magic04.data", tuple(map(server.url, paths)), sha)
        digest = arrays_digest(ARRAYS, ("X", "y"))
        entry = dataclasses.replace(DATASETS["magic"], digest=digest, originals=(original,))
        monkeypatch.setitem(DATASETS, "magic", entry)

    return set_homes


# ---- downloads ------------------------------------------------------------------------------


def test_a_dataset_is_fetched_checked_converted_and_found(
    server: Server, tiny: Callable[..., None], tmp_path: Path
) -> None:
    tiny("magic")
    path = fetch("magic")
    assert path == tmp_path / "cache" / "data" / "magic.npz" == datasets.find("magic")
    assert [p.name for p in path.parent.iterdir()] == ["magic.npz"], "nothing is left behind"
    for name, array in datasets.load_dataset("magic").items():
        if name in ARRAYS:
            np.testing.assert_array_equal(array, ARRAYS[name])
            assert array.dtype == ARRAYS[name].dtype
    assert fetch("magic") == path
    assert len(server.asked) == 1, "what is there is not downloaded again"
    fetch("magic", force=True)
    assert len(server.asked) == 2


def test_nothing_is_downloaded_without_being_asked(
    server: Server, tiny: Callable[..., None]
) -> None:
    tiny("magic")
    with pytest.raises(DataAbsent) as caught:
        datasets.load_dataset("magic")
    assert str(caught.value) == (
        "the dataset magic is not on this machine: run 'feelgood data fetch magic', "
        "or set FEELGOOD_DATA to a folder that holds magic.npz."
    )
    assert server.asked == []


def test_another_home_is_tried_when_one_fails(server: Server, tiny: Callable[..., None]) -> None:
    tiny("missing-magic", "other-magic", "magic")
    fetch("magic")
    assert [path for path, _ in server.asked] == ["missing-magic", "other-magic", "magic"]


@pytest.mark.parametrize(
    ("home", "reason"),
    [
        ("missing-magic", "HTTP 404"),
        ("other-magic", "another file than expected: its SHA-256 is wrong"),
        ("silent-magic", "no answer in time"),
        ("endless-magic", "more than 4 MiB, so another file"),
        ("huge-length-magic", "more than 4 MiB, so another file"),
        ("word-length-magic", "the server gives 'many' as the length"),
        ("minus-length-magic", "the server gives '-5' as the length"),
        ("float-length-magic", "the server gives '1e3' as the length"),
        ("digits-length-magic", "the server gives '99999999999999999999' as the length"),
        ("lost-magic", "Invalid IPv6 URL"),
    ],
)
def test_a_failed_download_is_one_sentence_and_leaves_nothing(
    server: Server, tiny: Callable[..., None], home: str, reason: str, tmp_path: Path
) -> None:
    tiny(home)
    began = time.monotonic()
    with pytest.raises(FeelgoodError) as caught:
        fetch("magic", timeout=0.3)
    assert time.monotonic() - began < 10
    assert str(caught.value) == (
        f"magic04.data could not be downloaded ({server.url(home)}: {reason}): check the network "
        "and try again, or give a folder that holds the file with --from."
    )
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_nobody_listens(tiny: Callable[..., None], server: Server) -> None:
    tiny()
    refused = Original("a", ("http://127.0.0.1:9/a",), None)
    with pytest.raises(FeelgoodError, match=r"a could not be downloaded .*refused"):
        download(refused, datasets.fetched_folder())


def test_a_broken_connection_is_taken_up_where_it_stopped(server: Server, tmp_path: Path) -> None:
    original = Original("long", (server.url("once"),), sha256(LONG))
    path = download(original, tmp_path)
    assert path.read_bytes() == LONG
    assert server.asked == [("once", None), ("once", f"bytes={len(LONG) // 5}-")]


def test_an_interrupted_download_goes_on_in_the_next_run(server: Server, tmp_path: Path) -> None:
    """Three attempts per run, a fifth of the file each; the second run needs only the rest."""
    original = Original("long", (server.url("truncated"),), sha256(LONG))
    fifth = len(LONG) // 5
    with pytest.raises(FeelgoodError) as caught:
        download(original, tmp_path)
    assert f"stopped after {3 * fifth:,} of {len(LONG):,} bytes" in str(caught.value)
    assert download(original, tmp_path).read_bytes() == LONG
    assert [wanted for _, wanted in server.asked] == [
        None,
        *(f"bytes={i * fifth}-" for i in range(1, 5)),
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["long"]


def test_a_server_that_knows_no_ranges_sends_everything_again(
    server: Server, tmp_path: Path
) -> None:
    original = Original("long", (server.url("deaf-once"),), sha256(LONG))
    assert download(original, tmp_path).read_bytes() == LONG
    assert len(server.asked) == 2


@pytest.mark.parametrize("rest", [b"other bytes", LONG[::-1]], ids=["part", "whole"])
def test_a_wrong_part_is_thrown_away(server: Server, tmp_path: Path, rest: bytes) -> None:
    original = Original("long", (server.url("good"),), sha256(LONG))
    mark = sha256(original.urls[0].encode())[:8]
    (tmp_path / f"long.{mark}.part").write_bytes(rest)
    assert download(original, tmp_path).read_bytes() == LONG
    assert server.asked == [("good", f"bytes={len(rest)}-"), ("good", None)]


def test_files_without_a_known_sum_are_checked_by_their_arrays(
    server: Server, tiny: Callable[..., None], tmp_path: Path
) -> None:
    tiny("other-magic", sha=None)
    with pytest.raises(FeelgoodError, match=r"magic cannot be made of magic04.data \(\w+Error:"):
        fetch("magic")
    tiny("magic", sha=None)
    entry = dataclasses.replace(DATASETS["magic"], digest="0" * 64)
    DATASETS["magic"] = entry
    with pytest.raises(FeelgoodError, match="the arrays have another hash"):
        fetch("magic")
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_a_part_that_has_grown_too_large_is_thrown_away(server: Server, tmp_path: Path) -> None:
    """Not even a server that goes on where the part ended fills the disk."""
    original = Original("long", (server.url("good"),), sha256(LONG), mebibytes=1)
    mark = sha256(original.urls[0].encode())[:8]
    (tmp_path / f"long.{mark}.part").write_bytes(bytes(MEBIBYTE + 1))
    assert download(original, tmp_path).read_bytes() == LONG


def bombs(folder: Path) -> dict[str, str]:
    """Published files that are small and unpack to far too much: the dataset of each."""
    much = bytes(5 * MEBIBYTE)
    packed = gzip.compress(b"1," * (65 * MEBIBYTE), 1)
    for file in ("covtype.data.gz", *(o.file for o in DATASETS["mnist"].originals)):
        # Parts of a gzip file are read one after the other.
        (folder / file).write_bytes(packed)
    with zipfile.ZipFile(folder / "RCdata.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("RCdata/rating_final.csv", much)
    with tarfile.open(folder / "cifar-10-binary.tar.gz", "w:gz", compresslevel=1) as tar:
        info = tarfile.TarInfo("cifar-10-batches-bin/batches.meta.txt")
        info.size = 65 * MEBIBYTE
        tar.addfile(info, io.BytesIO(bytes(info.size)))
    return {
        "covertype": "unpacked it has more than 128 MiB",
        "mnist": "unpacked it has more than 64 MiB",
        "restaurant": "unpacked it has more than 4 MiB",
        "cifar10": "cifar-10-batches-bin/batches.meta.txt in it has more than 64 MiB",
    }


def test_files_that_unpack_to_too_much_are_refused(tmp_path: Path) -> None:
    reasons = bombs(tmp_path)
    for name, reason in reasons.items():
        with pytest.raises(FeelgoodError, match=f"{name} cannot be made of .*: {reason}"):
            fetch(name, given=tmp_path)
    with pytest.raises(ValueError, match="more than 0 MiB"):
        uncompress(compress(b"a" * 5000), mebibytes=0)
    (tmp_path / "magic04.data").write_bytes(bytes(4 * MEBIBYTE + 1))
    with pytest.raises(FeelgoodError, match="has more than 4 MiB, so it is not the published fil"):
        fetch("magic", given=tmp_path)


def test_an_archive_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.npz"
    fetching.write_archive(path, ARRAYS)
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="disk full"):
        fetching.write_archive(path, ARRAYS)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


def test_homes_are_public_and_encrypted() -> None:
    for name, entry in DATASETS.items():
        for original in entry.originals:
            assert original.urls or entry.by_hand, name
            assert all(url.startswith("https://") for url in original.urls)
            assert original.sha256 is None or re.fullmatch("[0-9a-f]{64}", original.sha256)
    with pytest.raises(FeelgoodError, match="jester cannot be downloaded as it is: download https"):
        fetch("jester")


# ---- files that are there -------------------------------------------------------------------


def test_the_users_folder_comes_before_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = datasets.fetched_folder() / "magic.npz"
    fetching.write_archive(fetched, ARRAYS)
    assert datasets.find("magic") == fetched
    monkeypatch.setenv("FEELGOOD_DATA", str(tmp_path))
    assert datasets.find("magic") == fetched
    fetching.write_archive(tmp_path / "magic.npz", ARRAYS)
    assert datasets.find("magic") == tmp_path / "magic.npz"
    assert datasets.availability() == (
        tmp_path,
        ["magic"],
        [name for name in DATASETS if name != "magic"],
    )
    with pytest.raises(FeelgoodError, match=f"the dataset adult is not in {tmp_path}"):
        datasets.load_dataset("adult")


def test_a_wrong_file_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEELGOOD_DATA", str(tmp_path))
    path = tmp_path / "magic.npz"
    remedy = "replace the file, or unset FEELGOOD_DATA."
    fetching.write_archive(path, ARRAYS)
    with pytest.raises(FeelgoodError) as caught:
        datasets.load_dataset("magic")
    assert str(caught.value) == (f"{path} is not the dataset magic (its hash is another): {remedy}")
    fetching.write_archive(path, {"X": ARRAYS["X"]})
    with pytest.raises(FeelgoodError) as caught:
        datasets.load_dataset("magic")
    assert str(caught.value) == f"{path} holds no array y: {remedy}"
    path.write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(FeelgoodError, match=f"{re.escape(str(path))} cannot be read"):
        datasets.load_dataset("magic")
    path.rename(datasets.fetched_folder().parent.parent / "magic.npz")
    fetching.write_archive(datasets.fetched_folder() / "magic.npz", ARRAYS)
    (tmp_path / "magic.npz").unlink()
    with pytest.raises(FeelgoodError, match="fetch it again with 'feelgood data fetch magic --fo"):
        datasets.load_dataset("magic")


def packed(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in members.items():
            archive.writestr(file, content)
    return out.getvalue()


def array_file(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


#: One array file, its header claiming a terabyte.
LIAR = array_file(ARRAYS["y"]).replace(b"(3,), }" + b" " * 12, b"(1000000000000,), }")
X_AND_Y = {"X.npy": array_file(ARRAYS["X"]), "y.npy": array_file(ARRAYS["y"])}
ARCHIVE = packed(X_AND_Y)
NO_ARCHIVE = "it is damaged, or no numpy archive"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", NO_ARCHIVE),
        (b"1,2,3\n", NO_ARCHIVE),
        (pickle.dumps([1, 2]), NO_ARCHIVE),
        (array_file(ARRAYS["X"]), NO_ARCHIVE),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), NO_ARCHIVE),
        (ARCHIVE[:-30], NO_ARCHIVE),
        (b"prefix" + ARCHIVE, NO_ARCHIVE),
        (ARCHIVE[:60] + b"\xff" * 20 + ARCHIVE[80:], "X.npy in it is no array|" + NO_ARCHIVE),
        (packed(X_AND_Y | {"a.txt": b"text"}), "a.txt in it is no array"),
        (packed(X_AND_Y | {"y.npy": pickle.dumps(3)}), "y.npy in it is no array"),
        (packed(X_AND_Y | {"y.npy": LIAR}), "y.npy in it is damaged"),
        (packed(X_AND_Y | {"y.npy": X_AND_Y["y.npy"] + b"more"}), "y.npy in it is damaged"),
        (
            packed(X_AND_Y | {"X.npy": array_file(np.array([None]))}),
            "X.npy in it holds Python objects, which may run any code",
        ),
        (packed(X_AND_Y | {"z.npy": bytes(MEBIBYTE)}), "unpacked it has more than 1 MiB"),
    ],
    ids=lambda value: value if isinstance(value, str) else len(value),
)
def test_files_that_are_something_else_are_one_sentence(
    content: bytes, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEELGOOD_DATA", str(tmp_path))
    monkeypatch.setattr(datasets, "MOST_BYTES", MEBIBYTE)
    path = tmp_path / "magic.npz"
    path.write_bytes(content)
    with pytest.raises(FeelgoodError) as caught:
        datasets.load_dataset("magic")
    remedy = "replace the file, or unset FEELGOOD_DATA."
    allowed = [f"{path} cannot be read ({one}): {remedy}" for one in reason.split("|")]
    assert str(caught.value) in allowed


def test_what_a_dataset_is_can_be_seen_without_unpacking_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "magic.npz"
    path.write_bytes(ARCHIVE)
    monkeypatch.setattr(np, "load", None)
    datasets.check_archive("magic", path)
    path.write_bytes(packed({"X.npy": X_AND_Y["X.npy"]}))
    with pytest.raises(FeelgoodError, match="holds no array y"):
        datasets.check_archive("magic", path)


def test_the_digest_sees_values_kinds_and_shapes_but_not_widths() -> None:
    def digest(array: np.ndarray) -> str:
        return arrays_digest({"a": array}, ("a",))

    text = np.array(["a", "bc"])
    assert digest(text) == digest(text.astype("<U9"))
    plain = np.arange(4, dtype=np.int16)
    assert digest(plain) == digest(plain.astype(">i2"))
    others = [plain[::-1], plain.reshape(2, 2), plain.astype(np.int32), plain.astype(np.uint16)]
    assert len({digest(x) for x in (plain, *others)}) == 5


def test_unknown_names_get_the_nearest_one() -> None:
    with pytest.raises(FeelgoodError, match="unknown dataset 'mushrom': did you mean 'mushroom'"):
        datasets.find("mushrom")


# ---- the command line -----------------------------------------------------------------------


def call(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["data", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def test_commands(
    server: Server, tiny: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEELGOOD_DATA", "")  # restored after --data has set it
    tiny("magic")
    path = tmp_path / "cache" / "data" / "magic.npz"
    assert call("path").strip() == str(path.parent)
    assert re.search(r"^magic .* rows  absent$", call("list"), re.MULTILINE)
    assert re.search(r"^digits .* 1,797 rows  in scikit-learn$", call("list"), re.MULTILINE)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "sklearn", None)
        needs = r"^digits .* rows  absent: pip install 'feelgood\[digits\]'$"
        assert re.search(needs, call("list"), re.MULTILINE)
    with pytest.raises(FeelgoodError, match=r"part of scikit-learn: pip install 'feelgood\[digit"):
        call("fetch", "digits")
    assert call("fetch", "magic").strip() == f"magic: {path}"
    assert re.search(rf"^magic .* rows  {path}$", call("list"), re.MULTILINE)
    assert call("path", "magic").strip() == str(path)
    assert f"magic: right: {path}" in call("verify").splitlines()
    assert "adult: absent" in call("verify").splitlines()
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(FeelgoodError, match=r"^magic cannot be used"):
        call("verify")
    with pytest.raises(FeelgoodError, match="adult is not on this machine"):
        call("verify", "adult")
    (tmp_path / "magic04.data").write_bytes(MAGIC)
    call("fetch", "magic", "--force", "--from", tmp_path)
    assert call("verify", "magic").strip() == f"magic: right: {path}"
    assert len(server.asked) == 1
    with pytest.raises(FeelgoodError, match=r"holds no adult.data: adult is made of adult"):
        call("fetch", "adult", "--from", tmp_path)
    with pytest.raises(FeelgoodError, match="is no folder"):
        call("fetch", "magic", "--from", tmp_path / "nowhere")
    with pytest.raises(FeelgoodError, match="nowhere does not exist"):
        call("list", "--data", tmp_path / "nowhere")
    shutil.copy(path, tmp_path)
    assert call("path", "magic", "--data", tmp_path).strip() == str(tmp_path / "magic.npz")


# ---- every dataset --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LARGE)) for n in DATASETS]
)
def test_hashes_of_bytes_and_of_arrays_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has the registered SHA-256, and its arrays have the registered digest."""
    arrays, entry = real_arrays(name, monkeypatch), DATASETS[name]
    assert datasets.file_sha256(datasets.located(name)) == entry.sha256
    assert arrays_digest(arrays, entry.arrays) == entry.digest


def test_every_dataset_has_a_test_of_its_own() -> None:
    here = {file.stem.removeprefix("test_") for file in Path(__file__).parent.glob("test_*.py")}
    assert {*DATASETS, *BANDIT_PROBLEMS} <= here


def test_damaged_originals_are_refused(tmp_path: Path) -> None:
    for name, entry in DATASETS.items():
        for original in entry.originals:
            (tmp_path / original.file).write_bytes(b"nonsense\n")
        with pytest.raises(FeelgoodError, match=f"{name} cannot be made of|are not the files"):
            fetch(name, given=tmp_path)
