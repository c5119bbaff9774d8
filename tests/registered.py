"""Registered testbeds and agents as the tests use them."""

from collections.abc import Mapping
from typing import Any

import pytest

from feelgood.core.registry import Entry
from feelgood.data.datasets import DataAbsent


def built(entry: Entry[Any], values: Mapping[str, Any] | None = None) -> Any:
    """The thing with these settings; a dataset that is not on this machine skips the test."""
    try:
        return entry.build(values or {})
    except DataAbsent as absent:
        pytest.skip(str(absent))
