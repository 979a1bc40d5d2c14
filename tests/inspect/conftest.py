"""A file with datasets of all kinds."""

from pathlib import Path

import pytest

from tests.support.inspect_files import make_file


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = tmp_path_factory.mktemp("inspect") / "all.h5"
    make_file(result)
    return result
