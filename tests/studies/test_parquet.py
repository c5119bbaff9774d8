"""Tables are read without threads that could abort the interpreter's end."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from feelgood.core.parquet import read_parquet

TABLE = pa.table({"seed": [1, 2, 3], "curve": [[0.5], [1.5, 2.5], []]})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "table.parquet"
    pq.write_table(TABLE, path, compression="zstd", write_page_checksum=True)
    return path


def test_the_table_comes_back(file: Path) -> None:
    assert read_parquet(file.read_bytes()).equals(TABLE)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_reading_starts_no_thread(file: Path) -> None:
    program = f"""
import os, pathlib
from feelgood.core.parquet import read_parquet
before = set(os.listdir("/proc/self/task"))
for _ in range(4):
    read_parquet(pathlib.Path({str(file)!r}).read_bytes())
print(len(set(os.listdir("/proc/self/task")) - before))
"""
    counted = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert counted.stdout.strip() == "0"
