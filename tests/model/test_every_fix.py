"""Does every fix that is printed work as pasted, lose nothing, and cure its finding?

For each finding that has fixes there is a file that shows it.  Each fix runs in a copy of that
file's folder: commands in a shell, lines of Python as they are, lines of a writer in a program
that has what they name.  What cannot run here has a test of its own, named in `RUN_BY`.
"""

import ast
import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import getsource as source_of
from pathlib import Path
from typing import Any, get_args

import h5py
import netCDF4
import numpy as np
import pytest

import chunkwise
from chunkwise.inspection import Finding, inspect
from chunkwise.inspection.facts import FileFacts
from chunkwise.inspection.finding import CODES, SEVERITIES
from chunkwise.inspection.patterns import survival
from chunkwise.model.readers import this_process
from chunkwise.model.traffic import Pattern
from chunkwise.remedy import spelling
from chunkwise.remedy.fix import Fix
from chunkwise.remedy.records import Remedy
from tests.inspect.test_findings_file import make_days, make_lost, many_groups
from tests.inspect.test_findings_filters import NOISE, RNG, WALK
from tests.inspect.test_findings_placement import write_chunks
from tests.inspect.test_format import crash
from tests.support.checksums import state_end
from tests.support.tools import paste
from tests.support.versions import HDF5, needs_sizes

ROOT = Path(__file__).parents[2]
MIB = 1 << 20
NAME = "a.nc"


def dataset(
    shape: tuple[int, ...], chunks: tuple[int, ...] | None, dtype: str = "<f4", **options: Any
) -> Callable[[Path], None]:
    """Make a file of two such datasets, and more that must not be lost."""

    def make(path: Path) -> None:
        values = np.arange(int(np.prod(shape)), dtype="u4") % 251
        with h5py.File(path, "w") as file:
            for i, name in enumerate(("x", "y y")):
                data = (values + i).astype(dtype).reshape(shape)
                made = file.create_dataset(name, data=data, chunks=chunks, **options)
                made.attrs["units"] = "K"
            others(file)

    return make


def values(data: Any, **options: Any) -> Callable[[Path], None]:
    """Make a file of one dataset of these values, and more."""

    def make(path: Path) -> None:
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=data, **({"chunks": (50, 1000)} | options))
            others(file)

    return make


def others(file: h5py.File) -> None:
    file.attrs["title"] = "kept"
    file.create_dataset("group/small", data=np.arange(10), chunks=(4,), compression=1)
    file["group"].attrs["numbers"] = [1, 2, 3]


def scattered(path: Path) -> None:
    with h5py.File(path, "w") as file:
        write_chunks(file, "xy", range(1000))
        others(file)


def dangling(path: Path) -> None:
    with h5py.File(path, "w") as file:
        others(file)
        file["lost link"] = h5py.SoftLink("/nowhere")


def early(path: Path) -> None:
    with h5py.File(path, "w") as file:
        others(file)
    state_end(path, 100)


def without_shuffle(path: Path) -> None:
    with h5py.File(path, "w") as file:
        made = file.create_dataset("x", (4, 100), "<i4", chunks=(1, 100), shuffle=True)
        # First: of a chunk that is there libhdf5 would keep the mask.
        made.id.write_direct_chunk((2, 0), np.arange(200, 300, dtype="<i4").tobytes(), 1)
        made[:2] = np.arange(200).reshape(2, 100)
        others(file)


GZIP: dict[str, Any] = {"compression": "gzip", "compression_opts": 1}
GROWING: dict[str, Any] = {"maxshape": (None, 100, 100)}
# All four bytes of a value are alike, which shuffle tears apart.
REPEATED = np.repeat(RNG.integers(0, 16, NOISE.size, "u1"), 4).view("<u4").reshape(NOISE.shape)
LARGE = np.resize(WALK, (-(-(16 * MIB) // WALK[:1].nbytes), 1000))

# Files that show the findings that have fixes.
CASES: dict[str, tuple[Callable[[Path], None], ...]] = {
    "chunk-exceeds-cache": (dataset((8, 30, 9, 717), (4, 30, 9, 717), ">f4", **GZIP),),
    "reads-exceed-cache": (
        dataset((120, 150, 150), (1, 150, 150), **GZIP),
        dataset((120, 150, 150), (1, 150, 150), compression="lzf"),
    ),
    "slot-collision": (dataset((1024, 1024), (1, 1024), "u1", **GZIP),),
    "single-chunk": (dataset((2, MIB), (2, MIB), **GZIP),),
    "unlimited-chunk-1": (
        dataset((200, 100, 100), (1, 100, 100), **GROWING),
        dataset((200, 100, 100), (1, 100, 100), **GROWING, **GZIP),
    ),
    "floor-chunk": (
        dataset((3162, 1000), (790, 1000), "<i4"),
        dataset((1001, 1001), (500, 500), "<i4", shuffle=True, **GZIP),
    ),
    "edge-waste": (
        dataset((1200, 1200), (800, 800), "<i4", fletcher32=True),
        dataset((1,), (MIB,), "<i4", maxshape=(None,)),
    ),
    "small-chunks": (
        dataset((512, 512), (8, 8), "<i4"),
        dataset((320, 320), (8, 8), "u1", **GZIP),
    ),
    "weak-compression": (values(NOISE, **GZIP), values(NOISE, shuffle=True, **GZIP)),
    "shuffle-missing": (values(WALK, **GZIP), values(WALK, fletcher32=True, **GZIP)),
    "shuffle-useless": (values(REPEATED, shuffle=True, **GZIP),),
    "filters-left-out": (
        values(NOISE, compression="lzf"),
        values(NOISE, shuffle=True, compression="lzf"),
        without_shuffle,
    ),
    "uncompressed": (values(LARGE), values(LARGE, chunks=None), values(LARGE, fletcher32=True)),
    "strided-contiguous": (
        dataset((16384, 512), None, "<i4"),
        values(np.resize(NOISE, (16384, 512)), chunks=None),
    ),
    "scattered-chunks": (scattered,),
    "scattered-metadata": (lambda path: make_days(path, 105),),
    "cloud-unready": (lambda path: make_days(path, 90, 256 << 10),),
    "lost-space": (lambda path: make_lost(path, 2 * MIB),),
    "old-groups": (many_groups,),
    "not-closed": (lambda path: crash(path), lambda path: crash(path, "swmr")),
    "early-end": (early,),
    "dangling-link": (dangling,),
}
# Their fixes need what no test can have, or a process of their own.
ELSEWHERE = {
    "filter-unavailable": "inspect/test_findings_filters.py::"
    "test_what_another_installed_reader_reads_is_a_note",
    "data-elsewhere": "inspect/test_findings_objects.py::"
    "test_where_the_data_of_a_virtual_dataset_lies",
    "access-mismatch": "inspect/test_access.py::test_chunks_are_offered_for_what_is_stated",
    "refused-here": "read/test_wide_lengths.py::test_they_are_sound_and_a_copy_opens_everywhere",
    "sources-missing": "inspect/test_findings_objects.py::test_the_line_that_finds_a_source",
}
WITHOUT_FIXES = {
    *("unreadable-object", "unreadable-chunks", "unreadable-attribute", "cannot-open")
}


def test_every_finding_has_its_case() -> None:
    assert {*CASES, *ELSEWHERE, *WITHOUT_FIXES} == set(CODES)


# Which test runs what each function, or each case of one, prints that makes a fix.
HERE = "model/test_every_fix.py::test_fixes"
RUN_BY = {
    "remedy/commands.py:commands": (
        HERE,
        "model/test_combined.py::test_one_command_mends_all_findings",
        "bench/test_layouts.py::test_each_line_gives_its_layout_as_pasted",
    ),
    "remedy/commands.py:_by": (HERE, "model/test_combined.py::test_what_other_tools_make_of_it"),
    "remedy/writers.py:writers": (
        HERE,
        "model/test_advice_writing.py::test_each_chunk_is_encoded_once",
        "model/test_remedies.py::test_the_lines_for_c_compile",
    ),
    "remedy/writers.py:by_xarray": (
        "advising/test_advise.py::test_the_line_of_xarray_gives_the_layout",
    ),
    "remedy/spelling.py:_for_reading": (
        HERE,
        "model/test_remedies.py::test_the_lines_for_c_compile",
    ),
    "remedy/spelling.py:_for_writing": ("model/test_remedies.py::test_the_lines_for_c_compile",),
    "remedy/spelling.py:ReadOnce": (HERE,),
    "remedy/spelling.py:OpenNatively": (HERE,),
    "remedy/spelling.py:ReadPaged": ("inspect/test_findings_file.py::test_cloud_unready",),
    "remedy/spelling.py:GatherMetadata": (
        "inspect/test_findings_file.py::test_a_writer_brings_metadata_together",
    ),
    "remedy/spelling.py:FollowWriter": (HERE,),
    "remedy/spelling.py:ClearCopy": (HERE, "files/test_unclosed.py"),
    "remedy/spelling.py:Examine": (
        "verify/test_salvage.py::test_the_line_for_a_damaged_file_works_as_pasted",
    ),
    "remedy/spelling.py:InspectOthers": (
        "inspect/test_findings_objects.py::test_where_the_data_of_a_virtual_dataset_lies",
    ),
    "remedy/spelling.py:RemoveLink": (
        HERE,
        "inspect/test_findings_objects.py::test_the_line_that_removes_a_link_of_any_name",
    ),
    "remedy/spelling.py:PutBeside": (
        "verify/test_salvage.py::test_the_line_for_a_missing_file_names_where_it_belongs",
    ),
    "remedy/spelling.py:LookFor": (
        "inspect/test_findings_objects.py::test_raw_file_that_is_missing",
    ),
    "remedy/spelling.py:_look_for": (
        "inspect/test_findings_objects.py::test_the_line_that_finds_a_source",
    ),
    "remedy/spelling.py:BringFilter": ("inspect/test_doctor.py",),
}


def makers() -> Iterator[str]:
    """Name the functions of the package that make a fix, or the records that they make it of."""
    package = ROOT / "python" / "chunkwise"
    for path in sorted(package.rglob("*.py")):
        for statement in ast.parse(path.read_text()).body:
            cases = [(of_record(one), one) for one in ast.walk(statement) if is_case(one)]
            named = [(name, case) for name, case in cases if name]
            for name, part in named or [(getattr(statement, "name", ""), statement)]:
                calls = (node for node in ast.walk(part) if isinstance(node, ast.Call))
                if any(getattr(call.func, "id", "") in ("Fix", "OfCopy") for call in calls):
                    yield f"{path.relative_to(package)}:{name}"


def is_case(node: ast.AST) -> bool:
    return isinstance(node, ast.match_case)


def of_record(case: ast.AST) -> str:
    """Name the record that a case is about; nothing if it is about none."""
    kinds = (one.cls for one in ast.walk(case) if isinstance(one, ast.MatchClass))
    kind = next(kinds, None)
    return kind.attr if isinstance(kind, ast.Attribute) else getattr(kind, "id", "")


def test_each_remedy_can_be_said() -> None:
    tree = ast.parse(source_of(spelling.lines))
    said = {of_record(one) for one in ast.walk(tree) if is_case(one)}
    assert said == {kind.__name__ for kind in get_args(Remedy)}


@pytest.mark.slow
def test_each_line_that_is_printed_has_a_test_that_runs_it() -> None:
    assert set(makers()) == set(RUN_BY)
    for test in {*ELSEWHERE.values(), *(test for tests in RUN_BY.values() for test in tests)}:
        file, _, name = test.partition("::")
        assert f"def {name or 'test_'}" in (ROOT / "tests" / file).read_text(), test


# --- each fix ---------------------------------------------------------------------------


def each_case(*without: str) -> pytest.MarkDecorator:
    """Run a test for each file of `CASES`, but for those of some codes."""
    cases = [
        pytest.param(code, i, marks=needs_sizes if code == "lost-space" else ())
        for code, makes in CASES.items()
        for i in range(len(makes))
        if code not in without
    ]
    return pytest.mark.parametrize(("code", "number"), cases, ids=str)


@each_case()
@pytest.mark.slow
def test_fixes(code: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "before"
    folder.mkdir()
    CASES[code][number](folder / NAME)
    monkeypatch.chdir(folder)
    before = inspect(NAME)
    found = [finding for finding in before.findings if finding.code == code]
    assert found, [finding.code for finding in before.findings]
    assert found[0].fixes
    done = {
        trial(before, found[0], found, fix, tmp_path / str(i), monkeypatch)
        for i, fix in enumerate(found[0].fixes)
    }
    for other in found[1:]:
        for fix in other.fixes:
            if fix.text not in {one.text for one in found[0].fixes} and fix.repacks:
                done.add(trial(before, other, [other], fix, tmp_path / "other", monkeypatch))
                shutil.rmtree(tmp_path / "other")
    assert True in done, "no fix could be run here"


def trial(
    before: FileFacts,
    finding: Finding,
    group: list[Finding],
    fix: Fix,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> bool:
    """Run a fix in a copy of the folder; tells whether it can be run by this test."""
    source = Path.cwd()
    shutil.copytree(source, folder)
    monkeypatch.chdir(folder)
    try:
        if fix.tool in ("C", "Fortran") or "meta_block_size" in fix.text:
            return False
        if fix.tool in ("h5repack", "nccopy", "h5clear") and shutil.which(fix.tool) is None:
            return False
        if fix.writing:
            cured(before, finding, [finding], written(source / NAME, finding, fix))
        elif fix.text.split()[0] in ("chunkwise", "h5repack", "nccopy", "cp"):
            paste(fix.text, folder)
            copy = Path(shlex.split(fix.text)[-1])
            if finding.code not in ("not-closed", "early-end"):
                nothing_lost(source / NAME, copy)
            cured(before, finding, group if fix.options or fix.repacks else [finding], copy)
        elif "page_buf_size" in fix.text:
            return False
        else:
            run_reader(before, finding, fix)
        return True
    finally:
        monkeypatch.chdir(source)


def cured(before: FileFacts, finding: Finding, group: list[Finding], copy: Path) -> None:
    """The finding is gone for all datasets of its group, and none as bad has come for them."""
    after = inspect(str(copy))
    paths = {one.path for one in group}
    left = [one for one in after.findings if one.code == finding.code and one.path in paths]
    if finding.code == "reads-exceed-cache":
        # Where no chunks serve the smallest cache, larger ones hold those that are offered.
        left = [one for one in left if not is_better(one, finding)]
    assert not left, left
    old = {(one.code, one.path) for one in before.findings}
    for one in after.findings:
        if one.code == "reads-exceed-cache" and HDF5 < (2, 0):
            continue  # Walks across the usual order are worse than notes where 1 MiB is held.
        if one.path in paths and (one.code, one.path) not in old:
            assert SEVERITIES.index(one.severity) < SEVERITIES.index("warning"), one


def is_better(now: Finding, before: Finding) -> bool:
    """Whether only readers with smaller caches are left, and even those decode less."""
    fewer = now.evidence["cache_nbytes"] < before.evidence["cache_nbytes"]  # type: ignore[operator]
    return fewer and now.waste_nbytes < before.waste_nbytes / 2


def nothing_lost(source: Path, copy: Path) -> None:
    """Every object, attribute and value of a file is in its copy."""
    with h5py.File(source) as mine, h5py.File(copy) as theirs:
        same_attributes(mine, theirs)
        count = 0

        def compare(name: str, item: Any) -> None:
            nonlocal count
            count += 1
            same_attributes(item, theirs[name])
            if isinstance(item, h5py.Dataset):
                assert item.dtype == theirs[name].dtype, name
                assert np.array_equal(item[...], theirs[name][...]), name

        mine.visititems(compare)
        assert count


def same_attributes(mine: Any, theirs: Any) -> None:
    for name, value in mine.attrs.items():
        # nccopy makes arrays of one element of scalars.
        assert np.ravel(value).tolist() == np.ravel(theirs.attrs[name]).tolist(), name


def written(source: Path, finding: Finding, fix: Fix) -> Path:
    """Follow the lines for a writer with the data of the finding's dataset."""
    assert finding.path is not None
    target = Path("written.nc")
    with h5py.File(source) as file:
        data, maxshape = file[finding.path][...], file[finding.path].maxshape
    if fix.tool == "h5py":
        with h5py.File(target, "w") as file:
            exec(fix.text, {"h5py": h5py, "file": file, "data": data})
    else:
        with netCDF4.Dataset(target, "w") as file:
            names = tuple(f"d{i}" for i in range(data.ndim))
            for name, length, limit in zip(names, data.shape, maxshape, strict=True):
                file.createDimension(name, None if limit is None else length)
            here = {"file": file, "datatype": data.dtype, "dimensions": names}
            exec(fix.text, here)
            file[finding.path][:] = data
    with h5py.File(target) as file:
        assert np.array_equal(file[finding.path][...], data)
    return target


def run_reader(before: FileFacts, finding: Finding, fix: Fix) -> None:
    """Paste lines that read; they give the data, with a cache that the model is content with."""
    names: dict[str, Any] = {"h5py": h5py, "netCDF4": netCDF4, "chunkwise": chunkwise}
    *_, last = fix.text.splitlines()
    if "=" not in last.partition("(")[0] and not fix.text.startswith(("with", "variable")):
        value = eval(fix.text, names)
    else:
        exec(fix.text, names)
        value = next(names[n] for n in ("dataset", "variable", "array", "file") if n in names)
    if finding.code == "dangling-link":
        assert value is not None
        assert finding.code not in [one.code for one in inspect(NAME).findings]
        return
    if finding.path is None:
        with value as file:
            assert len(file) > 0
        return
    with h5py.File(NAME) as file:
        expected = file[finding.path][...]
    assert np.array_equal(value[...], expected)
    given = None
    if fix.tool == "h5py" and isinstance(value, h5py.Dataset):
        nslots, nbytes, _ = value.id.get_access_plist().get_chunk_cache()
        given = replace(this_process(), cache_nbytes=nbytes, nslots=nslots)
        value.file.close()
    elif fix.tool == "netCDF4":
        nbytes, nslots, _ = value.get_var_chunk_cache()
        given = replace(this_process(), cache_nbytes=nbytes, nslots=nslots)
        value.group().close()
    if given is not None:
        entry = next(one for one in before.objects if one.path == finding.path)
        assert entry.dataset is not None
        block = tuple(map(int, str(finding.evidence["block"]).split("x")))
        assert survival(entry.dataset, Pattern("", block), given).decodes < 2
