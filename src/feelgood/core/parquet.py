"""Reading Parquet files in this thread alone."""

from feelgood.core.arrow import pa, pq


def read_parquet(content: bytes) -> pa.Table:
    """The table of a Parquet file, its page checksums verified.

    Arrow's own threads can outlive the interpreter and abort it at the end (`terminate called
    without an active exception`, about one exit in 200 on busy cores). `pyarrow.parquet.read_table`
    starts one whatever it is told; a `ParquetFile` over memory starts none.
    """
    file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
    return file.read(use_threads=False)
