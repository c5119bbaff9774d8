"""Formats of published files, against tools and the tests' own writers."""

import gzip
import shutil
import subprocess

import numpy as np
import pytest
from real_data import compress

from feelgood.data.formats import ordinal, uncompress

LINES = b"1.5,2,3,4,5,6,7,8,9,10,g\n0,0,0,0,0,0,0,0,0,-0.25,h\n9,8,7,6,5,4,3,2,1,0,g\n"
SAMPLES = {
    "empty": b"",
    "one": b"a",
    "run": b"a" * 5000,
    "text": LINES * 50,
    "noise": np.random.RandomState(0).bytes(30_000),
    "numbers": " ".join(map(str, range(30_000))).encode(),
}


@pytest.mark.parametrize("clear_at", [None, 700])
@pytest.mark.parametrize("most_bits", [10, 12, 16])
@pytest.mark.parametrize("sample", SAMPLES)
def test_z_files_are_read(sample: str, most_bits: int, clear_at: int | None) -> None:
    data = SAMPLES[sample]
    packed = compress(data, most_bits, clear_at)
    if (tool := shutil.which("gzip")) and data:
        by_tool = subprocess.run([tool, "-dc"], input=packed, capture_output=True, check=True)
        assert by_tool.stdout == data, "the test's own writer is wrong"
    assert uncompress(packed) == data


def test_what_is_no_z_file_is_refused() -> None:
    with pytest.raises(ValueError, match=r"not a .Z file"):
        uncompress(gzip.compress(b"a"))
    with pytest.raises(ValueError, match="damaged"):
        uncompress(b"\x1f\x9d\x90\xff\xff\xff")


def test_ordinal_codes_are_alphabetical() -> None:
    np.testing.assert_array_equal(ordinal(np.array(["b", "?", "a", "b"])), [2, 0, 1, 2])
