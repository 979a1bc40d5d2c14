"""Are the files that are meant found, in any folder, and put in the right order?"""

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.errors import FileFormatError
from chunkwise.files.contained import Outcome
from chunkwise.inspection.facts import FileFacts
from chunkwise.inspection.finding import Severity
from chunkwise.inspection.folder import (
    FileSummary,
    FolderFiles,
    find_files,
    one_file,
    reaches,
    refusal,
    summarize,
    survey,
    worst_first,
)
from tests.support.inspect_fakes import file_facts, finding


def make(path: Path, userblock: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w", userblock_size=userblock) as file:
        file["x"] = 1
    return path


def each(
    inspect: Callable[[str], FileFacts],
) -> Callable[[Sequence[str]], Iterator[Outcome[FileFacts]]]:
    def collect(paths: Sequence[str]) -> Iterator[Outcome[FileFacts]]:
        for path in paths:
            try:
                yield Outcome(inspect(path))
            except OSError as error:
                yield Outcome(None, error)

    return collect


def names(found: FolderFiles, top: Path) -> list[str]:
    return [Path(path).relative_to(top).as_posix() for path in found.files]


# --- which files -----------------------------------------------------------------------


def test_folder_is_searched_by_signature(tmp_path: Path) -> None:
    make(tmp_path / "b.dat")
    make(tmp_path / "a" / "deep" / "no_suffix", userblock=1024)
    (tmp_path / "a" / "text.h5").write_text("not HDF5")
    (tmp_path / "empty.txt").touch()
    found = find_files([str(tmp_path)])
    assert names(found, tmp_path) == ["b.dat", "a/deep/no_suffix"]
    assert found.passed_over == 2
    assert found.unreadable == ()


def test_an_empty_file_with_a_name_of_hdf5_is_an_error(tmp_path: Path) -> None:
    make(tmp_path / "a.h5")
    (tmp_path / "empty.nc").touch()
    found = find_files([str(tmp_path)])
    assert found.passed_over == 0
    assert found.unreadable == ((str(tmp_path / "empty.nc"), "the file is empty (0 bytes)"),)


def test_links_that_lead_in_circles_end(tmp_path: Path) -> None:
    make(tmp_path / "a" / "x.h5")
    for name in ("up", "a/up", "a/again"):
        (tmp_path / name).symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "self").symlink_to(tmp_path / "self")
    (tmp_path / "gone.h5").symlink_to(tmp_path / "nowhere")
    found = find_files([str(tmp_path)])
    assert names(found, tmp_path) == ["a/x.h5"]
    assert found.passed_over == 2
    assert found.dangling == (str(tmp_path / "gone.h5"), str(tmp_path / "self"))
    assert found.unreadable == ()
    pattern = find_files([str(tmp_path / "**" / "*.h5")])
    assert names(pattern, tmp_path) == ["a/x.h5", "gone.h5"]


def test_linked_folders_are_searched(tmp_path: Path) -> None:
    make(tmp_path / "elsewhere" / "x.h5")
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "link").symlink_to(tmp_path / "elsewhere")
    assert names(find_files([str(tmp_path / "top")]), tmp_path) == ["top/link/x.h5"]


def test_pipes_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.h5")
    make(tmp_path / "x.h5")
    assert find_files([str(tmp_path)]) == FolderFiles((str(tmp_path / "x.h5"),), 1, ())


def test_folder_without_hdf5_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.h5").write_text("not HDF5")
    with pytest.raises(FileFormatError, match=r"a directory without any HDF5 file \(1 of other"):
        find_files([str(tmp_path)])


def test_names_with_any_bytes(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9\n.nc")
    make(tmp_path / name)
    assert names(find_files([str(tmp_path)]), tmp_path) == [name]


def test_files_that_cannot_be_read_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked, folder = make(tmp_path / "locked.h5"), tmp_path / "locked"
    folder.mkdir()
    # Permissions would not do: they do not bind whoever tests as root.
    real_open, real_scandir = Path.open, os.scandir

    def open_(path: Path, *arguments: Any) -> Any:
        if path == locked:
            raise PermissionError(13, "Permission denied")
        return real_open(path, *arguments)

    def scandir(path: Path) -> Any:
        if path == folder:
            raise PermissionError(13, "Permission denied")
        return real_scandir(path)

    monkeypatch.setattr(Path, "open", open_)
    monkeypatch.setattr(os, "scandir", scandir)
    found = find_files([str(tmp_path)])
    assert found.files == ()
    assert found.passed_over == 0
    assert dict(found.unreadable) == {
        str(locked): "cannot be read: Permission denied",
        str(folder): "cannot be listed: Permission denied",
    }
    summaries = [summary for summary, _ in survey(found, each(lambda _: file_facts()))]
    assert [summary.severity for summary in summaries] == ["error", "error"]


def test_named_files_are_taken_as_they_are(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("not HDF5")
    x = make(tmp_path / "x.h5")
    found = find_files([str(text), str(x), str(tmp_path), str(x)])
    assert names(found, tmp_path) == ["text.txt", "x.h5"]


def test_pattern_that_no_shell_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b1.nc", "b2.nc", "c.nc", ".b3.nc"):
        make(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert find_files(["b*.nc"]).files == ("b1.nc", "b2.nc")
    assert find_files(["*"]).files == ("b1.nc", "b2.nc", "c.nc")
    assert find_files([".b*"]).files == (".b3.nc",)
    assert names(find_files([str(tmp_path / "[c]?nc")]), tmp_path) == ["c.nc"]


def test_file_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    make(tmp_path / "b1.nc")
    odd = make(tmp_path / "b[12].nc")
    assert find_files([str(odd)]).files == (str(odd),)


@pytest.mark.parametrize(
    ("name", "words"),
    [("*.nothing", "no file matches"), ("nothing", "no such file$"), ("**x", "pattern")],
)
def test_names_that_lead_nowhere(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(FileFormatError, match=words):
        find_files([str(tmp_path / name)])


# --- one file, or several --------------------------------------------------------------


def test_one_or_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make(Path("a.h5"))
    make(Path("b.h5"))
    Path("folder").mkdir()
    Path("x").touch()
    assert one_file(["a.h5"]) == ("a.h5", None)
    assert one_file(["a.h5", "temperature"]) == ("a.h5", "temperature")
    assert one_file(["gone.h5"]) == ("gone.h5", None)
    assert one_file(["gone.h5", "temperature"]) == ("gone.h5", "temperature")
    # A file of that name is there, and so is a dataset: the dataset is meant.
    assert one_file(["a.h5", "x"]) == ("a.h5", "x")
    for several in (["a.h5", "b.h5"], ["folder"], ["*.h5"], ["a.h5", "b*.h5"], ["folder", "x"]):
        assert one_file(several) is None
    assert one_file(["a.h5", "b.h5", "x"]) is None
    assert one_file([""]) == ("", None)


def test_zarr_store_is_one_thing(tmp_path: Path) -> None:
    (tmp_path / ".zgroup").touch()
    assert one_file([str(tmp_path)]) == (str(tmp_path), None)


# --- summaries -------------------------------------------------------------------------


def test_summary() -> None:
    facts = file_facts(findings=(finding("/a", waste_nbytes=3), finding("/b", waste_nbytes=7)))
    summary = summarize(facts)
    assert (summary.findings, summary.waste_nbytes, summary.severity) == (2, 7, "warning")
    assert summary.worst is facts.findings[0]
    assert summarize(file_facts()).severity is None


def test_one_bad_file_does_not_stop_the_rest(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("a", "b", "c")]
    (tmp_path / "a").write_bytes(b"12345")

    def inspect(path: str) -> FileFacts:
        if path == paths[0]:
            raise FileFormatError(f"{path}: the file is empty")
        if path == paths[1]:
            raise OSError("Unable to open file (bad symbol table)")
        return file_facts(path=path)

    found = list(survey(FolderFiles(tuple(paths), 0, ()), each(inspect)))
    assert [(summary.reason, summary.nbytes) for summary, _ in found] == [
        ("the file is empty", 5),
        ("bad symbol table", None),
        (None, 21_000_000),
    ]
    assert [facts is None for _, facts in found] == [True, True, False]
    assert found[0][0].worst == refusal("the file is empty")
    assert (refusal("x").code, refusal("x").severity) == ("cannot-open", "error")


SUMMARIES = st.builds(
    FileSummary,
    path=st.text(max_size=3),
    nbytes=st.none() | st.integers(0, 9),
    worst=st.none()
    | st.sampled_from(["note", "warning", "error"]).map(
        lambda severity: finding(severity=severity)
    ),
    waste_nbytes=st.integers(0, 9),
    reason=st.none() | st.just("gone"),
)


@given(st.lists(SUMMARIES))
@pytest.mark.slow
def test_worst_comes_first(summaries: list[FileSummary]) -> None:
    ordered = worst_first(summaries)
    assert sorted(map(id, ordered)) == sorted(map(id, summaries))
    levels: tuple[Severity, ...] = ("note", "warning", "error")
    for before, after in pairwise(ordered):
        for level in levels:
            assert reaches(before.severity, level) or not reaches(after.severity, level)
        if before.severity == after.severity:
            assert before.waste_nbytes >= after.waste_nbytes
