"""What docs/xarray.md, docs/loaders.md and docs/joined.md show is what happens."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("page", "fewest", "needs"),
    [
        ("xarray.md", 10, ("xarray", "h5netcdf", "dask.array")),
        ("loaders.md", 5, ()),
        ("joined.md", 5, ()),
    ],
)
def test_the_examples_run(
    page: str,
    fewest: int,
    needs: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in needs:
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    flags = doctest.NORMALIZE_WHITESPACE
    outcome = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=flags)
    assert outcome.attempted > fewest
    assert outcome.failed == 0


def test_whoever_installs_xarray_s_extra_is_told_of_dask() -> None:
    for page in (DOCS.parent / "README.md", DOCS / "index.md", DOCS / "xarray.md"):
        text = page.read_text("utf-8")
        # `open_mfdataset` needs it.
        assert "'.[xarray,dask]'" in text
        assert "[xarray]'" not in text
