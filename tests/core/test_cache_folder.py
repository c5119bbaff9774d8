"""The user's folders."""

import sys
from pathlib import Path

import pytest

from feelgood.core.cache_folder import cache_folder


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEELGOOD_CACHE", "/some/where")
    assert cache_folder() == Path("/some/where")
    monkeypatch.delenv("FEELGOOD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/the/cache")
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder() == Path("/the/cache/feelgood")
