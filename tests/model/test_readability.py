"""Is who can read a file told from the table, and are readers that are asked for kept?"""

import importlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import UsageError
from chunkwise.fixing.choose import choose
from chunkwise.inspection import inspect
from chunkwise.model.readability import (
    FORMATS,
    PROGRAM_NAMES,
    PROGRAMS,
    Needs,
    losses,
    program,
    require,
    sentences,
)
from tests.inspect.test_findings_file import make_days
from tests.support.commands import run

readers: Any = importlib.import_module("readers")


def test_the_page_is_made_of_the_table() -> None:
    assert readers.PAGE.read_text("utf-8") == readers.page()


def test_each_program_has_its_sources() -> None:
    assert len(set(PROGRAM_NAMES)) == len(PROGRAMS) > 10
    for one in PROGRAMS:
        assert one.sources
        assert not one.filters & one.unknown


def test_filters() -> None:
    for name in ("deflate", "shuffle", "fletcher32"):
        assert {one.name for one in PROGRAMS if one.reads_filter(name) != "yes"} <= {
            "virtualizarr"
        }
    assert program("netcdf-java").reads_filter("zstd") == "no"
    assert program("kerchunk").reads_filter("zstd") == "yes"
    assert program("kerchunk").reads_filter("lzf") == "no"
    assert program("h5py").reads_filter("lzf") == "yes"
    assert program("libhdf5-1.10").reads_filter("lzf") == "with a plugin"
    assert program("matlab").reads_filter("szip") == "not known"


@pytest.mark.parametrize("series", ["1.8", "1.10", "1.12", "2.0"])
def test_formats_of_libhdf5(series: str) -> None:
    one = program(f"libhdf5-{series.removesuffix('.0')}")
    for known in FORMATS:
        expected = "yes" if FORMATS.index(known) <= FORMATS.index(series) else "no"
        assert one.reads_format(known) == expected


def test_what_is_lost() -> None:
    plain = Needs(frozenset({"deflate"}))
    zstd = Needs(frozenset({"deflate", "zstd"}))
    found = {loss.program.name: loss.can for loss in losses(plain, zstd)}
    assert found["netcdf-java"] == found["jhdf"] == "no"
    assert found["libhdf5-2"] == found["matlab"] == "with a plugin"
    assert found["idl"] == "not known"
    assert "kerchunk" not in found
    # What was so before is nobody's loss.
    assert losses(zstd, zstd) == losses(zstd, plain) == ()
    newer = Needs(frozenset({"deflate"}), "1.10", virtual=True, paged=True)
    (loss,) = [one for one in losses(plain, newer) if one.program.name == "libhdf5-1.8"]
    assert loss.can == "no"
    assert loss.why == ("the format of HDF5 1.10", "virtual datasets")
    said = " ".join(sentences(losses(plain, zstd)))
    assert "cannot be read any more by netCDF-Java" in said
    assert "is read only with a plugin by libhdf5 1.8" in said
    assert "(not known) IDL" in said


def test_readers_that_are_asked_for() -> None:
    plain, zstd = Needs(), Needs(frozenset({"zstd"}))
    require(("kerchunk", "virtualizarr"), plain, zstd, "a.h5")
    with pytest.raises(UsageError, match=r"a\.h5: jHDF .* cannot read the filter zstd"):
        require(("kerchunk", "jhdf"), plain, zstd, "a.h5")
    with pytest.raises(UsageError, match="is not known to read the filter zstd"):
        require(("idl",), plain, zstd, "a.h5")
    with pytest.raises(UsageError, match="no reader is called 'excel'"):
        require(("excel",), plain, zstd, "a.h5")


# --- repack and fix ---------------------------------------------------------------------


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        data = np.arange(512 * 512, dtype="<i4").reshape(512, 512)
        file.create_dataset("t", data=data, chunks=(8, 8), compression=1)
    return path


def test_repack_says_who_loses_access(source: Path) -> None:
    target = source.with_name("b.h5")
    for more in (["--dry-run"], []):
        words = ("repack", source, target, "--filter", "shuffle+zstd:3", *more)
        ended = run(*words)
        assert ended.code == 0
        said = " ".join((ended.out + ended.err).split())
        assert "readers: it cannot be read any more by netCDF-Java" in said
        assert "the filter zstd" in said
    done = chunkwise.repack(source, target, filters="deflate:1", force=True)
    assert done.readers == ()
    done = chunkwise.repack(source, target, page_size="1MiB", force=True)
    assert any("paged file space" in sentence for sentence in done.readers)
    done = chunkwise.repack(source, target, low="v110", force=True)
    assert any("cannot be read any more by libhdf5 1.8" in one for one in done.readers)


def test_repack_refuses_what_a_reader_cannot_read(source: Path) -> None:
    target = source.with_name("b.h5")
    words = ("repack", source, target, "--filter", "shuffle+zstd:3", "--for", "netcdf-java")
    ended = run(*words)
    assert ended.code == 2
    said = " ".join(ended.err.split())
    assert "netCDF-Java (Panoply, THREDDS, ToolsUI) cannot read the filter zstd" in said
    assert not target.exists()
    words = ("repack", source, target, "--filter", "shuffle+deflate:1", "--for", "netcdf-java")
    assert run(*words).code == 0
    assert target.exists()


def test_fix_leaves_out_what_a_reader_cannot_read(tmp_path: Path) -> None:
    make_days(tmp_path / "a.h5", 90, 256 << 10)
    facts = inspect(tmp_path / "a.h5")
    assert "cloud-unready" in {one.code for one in facts.findings}
    everyone = choose(facts).layout
    assert everyone is not None
    assert everyone.page_nbytes is not None
    choice = choose(facts, readers=("libhdf5-1.8",))
    assert choice.layout is None or choice.layout.page_nbytes is None
    assert "cloud-unready" in {one.code for one in choice.left}
    done = chunkwise.fix(tmp_path / "a.h5", tmp_path / "b.h5", readers=["libhdf5-1.8"], seconds=0)
    assert "cloud-unready" in {one.code for one in done.left}
    assert done.repacked is None or done.repacked.readers == ()
