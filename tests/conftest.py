"""What every test runs with."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_program_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compiled programs of the tests, and of the commands they start, stay out of the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEELGOOD_CACHE", str(tmp_path_factory.mktemp("cache")))
        assert os.environ["FEELGOOD_CACHE"]
        yield
