"""The last word on the false-alarm rate of the proofs."""

import os
from collections.abc import Iterator

import pytest
from proofs.levels import COMPARISONS, FAMILY, LEDGER


@pytest.fixture(scope="session", autouse=True)
def no_more_comparisons_than_stated() -> Iterator[None]:
    """The level of each comparison was chosen for at most `COMPARISONS` of them in all workers."""
    yield
    allowed = COMPARISONS // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    assert LEDGER.made <= allowed, (
        f"{LEDGER.made} comparisons, {allowed} allowed: raise COMPARISONS"
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many comparisons there were and how near the nearest one came."""
    if LEDGER.made:
        terminalreporter.write_line(
            f"proofs: {LEDGER.made} random comparisons, smallest p-value {LEDGER.smallest:.2g}, "
            f"false-alarm rate of the suite at most {FAMILY:g}; largest other error "
            f"{LEDGER.largest:.2g} of its tolerance"
        )
