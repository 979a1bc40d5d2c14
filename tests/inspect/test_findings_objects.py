"""Is what cannot be reached found, and nothing else?"""

import re
import shutil
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.files.objects import walk
from chunkwise.inspection import inspect
from chunkwise.inspection.collect import object_facts
from chunkwise.inspection.finding import Finding
from chunkwise.inspection.findings.objects import CHECKS
from tests.support.damage import damage_attribute, damage_header
from tests.support.processes import ran
from tests.support.tools import paste
from tests.support.versions import HDF5


def findings(path: Path) -> list[Finding]:
    with h5py.File(path) as file:
        facts = [object_facts(file, entry) for entry in walk(file)]
    return [finding for one in facts for check in CHECKS for finding in check(str(path), one)]


def only(path: Path, code: str) -> Finding:
    (finding,) = findings(path)
    assert finding.code == code
    return finding


def make_virtual(path: Path, *files: str, fillvalue: int = -1) -> None:
    layout = h5py.VirtualLayout((len(files), 10), "i4")
    for i, file in enumerate(files):
        layout[i] = h5py.VirtualSource(file, "x", (10,))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("all", layout, fillvalue=fillvalue)


def make_source(path: Path, name: str = "x") -> None:
    with h5py.File(path, "w") as file:
        file[name] = np.arange(10, dtype="i4")


# --- sources-missing -------------------------------------------------------------------


def test_virtual_sources_that_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "all.h5"
    make_source(tmp_path / "1.h5")
    make_source(tmp_path / "2.h5", "y")
    make_virtual(path, "1.h5", "2.h5", "3.h5")
    found = only(path, "sources-missing")
    assert (found.severity, found.path) == ("error", "/all")
    assert found.evidence == {
        "missing": 2,
        "looked_for": 3,
        "sources": 3,
        "first_file": "2.h5",
        "first_dataset": "x",
        "first_reason": "no dataset x in it",
    }
    assert found.summary == (
        "2 of its 3 source datasets cannot be used; the first is x in 2.h5: no dataset x in it. "
        "HDF5 gives the fill value (-1) in place of them, and says nothing."
    )
    with h5py.File(path) as file:
        assert file["all"][:, 0].tolist() == [0, -1, -1]


def test_virtual_sources_that_are_there(tmp_path: Path) -> None:
    make_source(tmp_path / "1.h5")
    make_source(tmp_path / "2.h5")
    make_virtual(tmp_path / "all.h5", "1.h5", "2.h5")
    assert [one.code for one in findings(tmp_path / "all.h5")] == ["data-elsewhere"]


@pytest.mark.parametrize("count", [1, 2, 6])
def test_where_the_data_of_a_virtual_dataset_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """The commands are pasted: the sources are inspected, and a copy needs them no more."""
    names = [f"sources/it's {i}.h5" for i in range(count)]
    (tmp_path / "sources").mkdir()
    for name in names:
        make_source(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    make_virtual(Path("all.h5"), *names)
    found = only(Path("all.h5"), "data-elsewhere")
    assert found.severity == "note"
    assert found.evidence["files"] == count
    look, copy = found.fixes
    assert look.text.count("it") == (count if count < 5 else 0)
    assert copy.text == "chunkwise repack --merge all.h5 all_repacked.h5"
    for fix in found.fixes:
        paste(fix.text, tmp_path)
    with h5py.File("all.h5") as file:
        expected = file["all"][...]
    shutil.rmtree("sources")
    with h5py.File("all_repacked.h5") as file:
        assert np.array_equal(file["all"][...], expected)
        assert not file["all"].is_virtual
    assert findings(Path("all_repacked.h5")) == []


def test_the_line_that_finds_a_source(tmp_path: Path) -> None:
    """The line is pasted into a shell, and h5py then reads the data."""
    path, home = tmp_path / "all.h5", tmp_path / "home"
    (home / "a folder").mkdir(parents=True)
    make_source(home / "a folder" / "it's.h5")
    make_virtual(path, "/moved/it's.h5")
    (fix,) = only(path, "sources-missing").fixes
    assert (fix.tool, len(fix.text.splitlines())) == ("shell", 1)
    assert dump(path, "all", fix.text, home).split() == [f"{i}," for i in range(9)] + ["9"]


def dump(path: Path, dataset: str, before: str, home: Path) -> str:
    """What a new process reads after a line was pasted into its shell."""
    code = "import h5py, sys; print(*h5py.File(sys.argv[1])[sys.argv[2]][...].flat, sep=', ')"
    done = ran(
        ["bash", "-c", f'{before}\n"$@"', "bash", sys.executable, "-c", code, path, dataset],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        cwd=home,
        check=True,
    )
    return done.stdout


def test_names_with_folders_are_looked_for_with_them(tmp_path: Path) -> None:
    make_virtual(tmp_path / "all.h5", "run/1.h5")
    (fix,) = only(tmp_path / "all.h5", "sources-missing").fixes
    assert "*/run/1.h5" in fix.text
    make_virtual(tmp_path / "up.h5", "../run/1.h5")
    assert only(tmp_path / "up.h5", "sources-missing").fixes == ()


def make_external(path: Path, *pieces: tuple[str, int, int]) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("raw", (10,), "i4", external=list(pieces))


def test_raw_file_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    path = tmp_path / "a.h5"
    (tmp_path / "a.raw").write_bytes(np.arange(10, dtype="i4").tobytes())
    make_external(path, ("a.raw", 0, 40))
    found = only(path, "sources-missing")
    assert found.summary == (
        "1 of its 1 raw files cannot be used; the first is a.raw: no such file. "
        "Reading the data fails."
    )
    with h5py.File(path) as file, pytest.raises(OSError, match="external"):
        file["raw"][...]
    # HDF5 looks where the program runs; the first line makes it look beside the file.
    assert dump(path, "raw", found.fixes[0].text, tmp_path / "elsewhere").startswith("0, 1, 2")
    monkeypatch.chdir(tmp_path)
    assert findings(path) == []


@pytest.mark.parametrize(("nbytes", "count"), [(40, 0), (39, 1)])
def test_raw_file_that_is_too_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nbytes: int, count: int
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.h5"
    make_external(path, ("a.raw", 0, 40))
    Path("a.raw").write_bytes(b"\1" * nbytes)
    found = findings(path)
    assert [one.code for one in found] == ["sources-missing"] * count
    for one in found:
        assert "too short: 39 of 40 bytes. HDF5 gives zeros for what is not there" in one.summary
        with h5py.File(path) as file:
            assert file["raw"][9] == 0x00010101


# --- unreadable-object, unreadable-attribute -------------------------------------------


def test_unreadable_object(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["good"], file["bad"] = 1, 2
    assert findings(path) == []
    damage_header(path, "bad")
    found = only(path, "unreadable-object")
    assert (found.severity, found.path) == ("error", "/bad")
    with h5py.File(path) as file, pytest.raises(KeyError) as error:
        file["bad"]
    said, _, native = str(found.evidence["reason"]).partition("; ")
    assert said in str(error.value)
    assert re.fullmatch(r"the object header at address \d+: its signature is not there", native)
    assert str(found.evidence["reason"]) in found.summary


@pytest.mark.parametrize("name", ["group", "dataset", "type", "/"])
@pytest.mark.parametrize("count", [1, 3, 12])
def test_unreadable_attribute(tmp_path: Path, name: str, count: int) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["group/x"], file["dataset"], file["type"] = 1, 2, np.dtype("i4")
        for i in range(count):
            file[name].attrs[f"units-{i}"] = "K"
    assert findings(path) == []
    damage_attribute(path, f"units-{count - 1}")
    found = only(path, "unreadable-attribute")
    assert (found.severity, found.path) == ("warning", "/" + name.strip("/"))
    assert found.evidence == {
        "attributes": count,
        "reason": "(bad version number for attribute message)",
    }
    its = "its only attribute" if count == 1 else f"its {count} attributes"
    assert f"cannot list {its} (bad version" in found.summary
    if HDF5 >= (2, 0):  # which does not crash when it fails to list more than a few
        with h5py.File(path) as file, pytest.raises(RuntimeError, match="bad version number"):
            list(file[name].attrs)


# --- dangling-link ---------------------------------------------------------------------


def leads_somewhere(file: h5py.File, name: str) -> bool:
    try:
        file[name]
    except (KeyError, RuntimeError):
        return False
    return True


@pytest.mark.parametrize(
    ("link", "severity", "tools"),
    [
        (h5py.SoftLink("/gone"), "note", ["h5py"]),
        (h5py.SoftLink("/good/gone"), "note", ["h5py"]),
        (h5py.SoftLink("/link"), "note", ["h5py"]),
        (h5py.ExternalLink("gone.h5", "/x"), "warning", ["shell", "shell"]),
        (h5py.ExternalLink("below/gone.h5", "/x"), "warning", ["shell", "shell"]),
        (h5py.ExternalLink("there.h5", "/gone"), "warning", ["h5py"]),
        (h5py.ExternalLink("a.h5", "/link"), "warning", ["h5py"]),
        (h5py.SoftLink("/good"), None, []),
        (h5py.SoftLink("good"), None, []),
        (h5py.SoftLink("/"), None, []),
        (h5py.ExternalLink("there.h5", "/x"), None, []),
    ],
)
def test_dangling_link(
    tmp_path: Path, link: h5py.SoftLink | h5py.ExternalLink, severity: str | None, tools: list[str]
) -> None:
    make_source(tmp_path / "there.h5")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["good"] = 1
        file["link"] = link
    with h5py.File(path) as file:
        assert leads_somewhere(file, "link") == (severity is None)
    found = findings(path)
    assert [(one.code, one.severity, one.path) for one in found] == [
        ("dangling-link", severity, "/link") for _ in range(severity is not None)
    ]
    for one in found:
        assert one.verdict == "sound, with loose ends"
        assert [fix.tool for fix in one.fixes] == tools
        if tools == ["h5py"]:
            exec("import h5py\n" + one.fixes[-1].text)
            assert findings(path) == []
            continue
        # A file that is only not here: no link to it is given up.
        assert str(tmp_path / str(link.filename)) in one.summary
        assert str(link.filename) in one.fixes[0].text
        assert "HDF5_EXT_PREFIX" in one.fixes[1].text


def test_the_lines_for_a_missing_file_lead_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.h5"
    home = tmp_path / "home"
    (home / "data" / "raw").mkdir(parents=True)
    make_source(home / "data" / "raw" / "part.h5")
    with h5py.File(path, "w") as file:
        file["link"] = h5py.ExternalLink("raw/part.h5", "/x")
    monkeypatch.setenv("HOME", str(home))
    search = findings(path)[0].fixes[1].text
    said = ran(["bash", "-c", f'{search}; echo "$HDF5_EXT_PREFIX"'])
    assert said.stdout.strip() == str(home / "data")
    monkeypatch.setenv("HDF5_EXT_PREFIX", said.stdout.strip())
    assert findings(path) == []


def test_the_line_that_removes_a_link_of_any_name(tmp_path: Path) -> None:
    path = tmp_path / "it's a file.h5"
    with h5py.File(path, "w") as file:
        file[b"caf\xe9 'n\n"] = h5py.SoftLink("/gone")
    exec("import h5py\n" + only(path, "dangling-link").fixes[0].text)
    assert findings(path) == []
    with h5py.File(path) as file:
        assert len(file) == 0


# --- unreadable-chunks -----------------------------------------------------------------


def test_a_damaged_chunk_index_leaves_the_other_facts(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("x", data=np.zeros((40, 30), "f4"), chunks=(10, 10))
        file["y"] = 1
    assert not inspect(path).findings
    content = path.read_bytes()
    # The header of the fixed array begins so.
    assert content.count(b"FAHD") == 1
    path.write_bytes(content.replace(b"FAHD", b"XXXX"))
    found = inspect(path)
    (finding,) = found.findings
    assert (finding.code, finding.severity, finding.path) == ("unreadable-chunks", "error", "/x")
    assert "checksum" in finding.summary
    facts = next(entry.dataset for entry in found.objects if entry.path == "/x")
    assert facts is not None
    assert (facts.shape, facts.dtype, facts.chunks) == ((40, 30), "float32", None)
    assert facts.unlisted is not None


def test_more_chunks_than_can_be_counted_are_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (1 << 62, 1 << 62), "u1", chunks=(1, 2))
    found = inspect(path, sample=False)
    facts = found.objects[1].dataset
    assert facts is not None
    assert facts.chunks is not None
    assert (facts.chunks.allocated, facts.chunks.grid) == (0, 1 << 123)
    assert not [finding for finding in found.findings if finding.severity == "error"]
