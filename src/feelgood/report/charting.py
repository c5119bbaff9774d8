"""Altair, or one sentence on how to get it: charts and pages are an extra of the package."""

import importlib.util

from feelgood.core.errors import missing_package

for _package in ("altair", "vl_convert"):
    if importlib.util.find_spec(_package) is None:
        raise missing_package("charts and pages need", _package, "charts")

import altair as alt  # noqa: E402
from altair.utils.schemapi import debug_mode  # noqa: E402

__all__ = ["alt", "debug_mode"]
