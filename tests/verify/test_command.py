"""Does the command tell all, go on where it was stopped, and end cleanly?"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import pytest

from chunkwise.verifying import apart
from chunkwise.verifying import file as verifying_file
from chunkwise.verifying.file import Checked
from chunkwise.verifying.records import Verified
from tests.support import verifying
from tests.support.damage import flip_in
from tests.support.golden import assert_golden, steady
from tests.support.verifying import chunks_of, command, write
from tests.support.versions import HDF5

CHECKED: dict[str, Any] = {"compression": 4, "fletcher32": True}


def damage(path: Path, number: int = 0) -> Any:
    """Flip a bit in the middle of a chunk."""
    chunk = chunks_of(path)[number]
    flip_in(path, 8 * (chunk.byte_offset + chunk.size // 2))
    return chunk


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder of three files, one of them damaged."""
    (tmp_path / "in" / "below").mkdir(parents=True)
    one = write(tmp_path / "in" / "a.h5", **CHECKED)
    for name in ("b.nc", "below/c.h5"):
        shutil.copy(one, tmp_path / "in" / name)
    damage(tmp_path / "in" / "below" / "c.h5", 2)
    return tmp_path / "in"


def test_one_sound_file(tmp_path: Path) -> None:
    write(tmp_path / "a.h5", **CHECKED)
    done = command("a.h5", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert_golden("verify", steady(done.stdout))


def test_a_line_for_each_damaged_chunk(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", **CHECKED)
    chunks = [damage(path, number) for number in (1, 5, 9)]
    done = command("a.h5", cwd=tmp_path)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "a.h5: damaged: 3 findings; whole: 0 of 1 dataset"
    for chunk in chunks:
        origin = ", ".join(map(str, chunk.chunk_offset))
        said = f"  /g/d [{origin}] {chunk.size} bytes at {chunk.byte_offset}: checksum: "
        assert sum(line.startswith(said) for line in lines) == 1
    record = json.loads(command("a.h5", "--json", cwd=tmp_path).stdout)
    assert record["format"] == "chunkwise-verify-file"
    found = Verified.from_dict(record)
    assert found.as_dict() == {**record, "damages": found.as_dict()["damages"], "notes": ()}
    assert [one.address for one in found.damages] == [one.byte_offset for one in chunks]


def test_a_folder(folder: Path) -> None:
    (folder / "cut.h5").write_bytes(b"\x89HDF\r")
    (folder / "empty.nc").write_bytes(b"")
    (folder / "text.h5").write_text("no longer HDF5, whatever the name says")
    (folder / "notes.txt").write_text("a text")
    done = command(folder, "--json")
    assert done.returncode == 1
    records = {Path(one["path"]).name: one for one in map(json.loads, done.stdout.splitlines())}
    verdicts = {name: one["verdict"] for name, one in records.items()}
    assert verdicts == {
        "a.h5": "sound", "b.nc": "sound", "c.h5": "damaged", "cut.h5": "damaged",
        "empty.nc": "damaged", "text.h5": "damaged",
    }  # fmt: skip
    done = command(folder)
    assert "a.h5" not in done.stdout
    assert "6 files: 2 sound, 4 damaged" in done.stdout


def test_what_could_not_be_looked_at(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a text")
    for words, said in ((["a.txt"], "not an HDF5 file"), (["missing.h5"], "no such file")):
        done = command(*words, cwd=tmp_path)
        assert done.returncode == 2
        assert said in done.stdout
    for words, said in (
        ([], "name a file"),
        ([".", "--salvage", "out.h5"], "one file"),
        (["a.h5", "--manifest", "missing.json"], "cannot be read"),
    ):
        done = command(*words, cwd=tmp_path)
        assert done.returncode == 2
        assert said in done.stderr
        assert done.stderr.startswith("chunkwise: ") or "Usage" in done.stderr


def test_lists_of_files(folder: Path) -> None:
    names = [folder / "a.h5", folder / "below" / "c.h5", folder / "missing.h5"]
    done = command("--files-from", "-", "--json", input="\n".join(map(str, names)))
    assert done.returncode == 1
    verdicts = [json.loads(line)["verdict"] for line in done.stdout.splitlines()]
    assert sorted(verdicts) == ["could not be read", "damaged", "sound"]


def test_a_run_goes_on(folder: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    first = command(folder, "--resume", state)
    assert first.returncode == 1
    # Other bytes, and nothing by which that could be seen: it is not read again.
    sound = folder / "a.h5"
    status = sound.stat()
    sound.write_bytes(bytes(status.st_size))
    os.utime(sound, ns=(status.st_atime_ns, status.st_mtime_ns))
    again = command(folder, "--resume", state)
    assert again.returncode == 1
    assert "3 of them known before" in again.stdout
    assert [line for line in again.stdout.splitlines() if "/g/d" in line] == [
        line for line in first.stdout.splitlines() if "/g/d" in line
    ]
    # A line that was cut is no line, and a file that has changed is read again.
    content = state.read_bytes()
    state.write_bytes(content[:-9])
    os.utime(sound)
    third = command(folder, "--resume", state)
    assert "a.h5: damaged" in " ".join(third.stdout.split())
    assert "1 of them known before" in third.stdout
    assert state.read_bytes().endswith(b"\n")
    assert all(json.loads(line) for line in state.read_text().splitlines())


def test_a_state_of_something_else_is_refused(folder: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.write_text("my notes\nand more\n")
    done = command(folder, "--resume", state)
    assert done.returncode == 2
    assert "left as it is" in done.stderr
    assert state.read_text() == "my notes\nand more\n"
    other = tmp_path / "other"
    assert command(folder, "--resume", other).returncode == 1
    done = command(folder, "--resume", other, "--write-manifest", tmp_path / "m.json")
    assert done.returncode == 2
    assert "other words about" in done.stderr
    assert not (tmp_path / "m.json").exists()
    (tmp_path / "link").symlink_to(other)
    assert command(folder, "--resume", tmp_path / "link").returncode == 2


# Verifies, and stays with one of the files for as long as it runs.
STAYING = """
import os, time
from chunkwise.cli.main import main
from chunkwise.verifying import apart
real, begun = apart.verify_file, os.getpid()
def look(path, *more):
    while path.endswith("060.h5") and os.getppid() == begun:
        time.sleep(0.01)
    return real(path, *more)
apart.verify_file = look
main()
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_stopped_run_leaves_no_process_and_goes_on(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    one = write(folder / "000.h5", **CHECKED)
    for each in range(1, 120):
        shutil.copy(one, folder / f"{each:03}.h5")
    damage(folder / "100.h5")
    state = tmp_path / "state"
    words = ["verify", str(folder), "--resume", str(state)]
    run = subprocess.Popen(
        [sys.executable, "-c", STAYING, *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 180
    while not state.exists() or state.read_bytes().count(b"\n") < 20:
        assert time.monotonic() < deadline
        assert run.poll() is None
        time.sleep(0.005)
    number = getattr(signal, name)
    run.send_signal(number)
    out, err = run.communicate(timeout=60)
    assert run.returncode == (130 if number == signal.SIGINT else -number)
    if number == signal.SIGINT:
        assert "interrupted after" in err
        assert "the same command goes on" in err
        assert "Traceback" not in out + err
    again = [sys.executable, "-m", "chunkwise", *words]
    done = subprocess.run(again, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "120 files: 119 sound, 1 damaged" in done.stdout
    assert "known before" in done.stdout


def test_a_file_that_ends_its_process_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [write(tmp_path / f"{name}.h5") for name in ("a", "crash", "hang", "odd", "z")]
    real = verifying_file.verify_file

    def look(path: str, *more: Any) -> Checked:
        if "crash" in path:
            os.kill(os.getpid(), signal.SIGSEGV)
        if "hang" in path:
            while True:
                time.sleep(1)
        if "odd" in path:
            raise UnicodeDecodeError("utf-8", b"", 0, 1, "odd")
        return real(path, *more)

    monkeypatch.setattr(apart, "verify_file", look)
    # Seconds, as a busy machine lets sound files stand still, too.
    found = verifying.apart(paths, still_s=5.0)
    said = [one.verdict for one in found]
    assert said == ["sound", *["cannot be judged here"] * 2, "damaged", "sound"]
    assert "SIGSEGV" in found[1].notes[0].reason
    assert "stood still" in found[2].notes[0].reason


def test_bad_files_are_found_without_a_crash() -> None:
    """What tests of reading keep as damaged; each has something wrong but some."""
    folder = Path(__file__).parents[1] / "bad"
    found = verifying.apart(sorted(folder.glob("*.h5")))
    if HDF5 < (2, 0):
        # Of some, HDF5 2.0 has written messages that it alone knows.
        newer = "bad version number for layout message, though its checksum is right"
        found = [one for one in found if not any(newer in note.reason for note in one.notes)]
    sound = [Path(one.path).name for one in found if one.verdict != "damaged"]
    # libhdf5 takes other codes of some options for one that it knows.
    assert sound == [
        "scaleoffset-fill-of-2.h5",
        "scaleoffset-order-of-2.h5",
        "two-to-the-40-chunks.h5",
    ]
    assert not any("crashed" in note.reason for one in found for note in one.notes)


def test_damage_on_heaps_in_references_and_attributes_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        words = [f"word number {n}" for n in range(40)]
        file.create_dataset("words", data=words, chunks=(8,))
        file["target"] = [1, 2, 3]
        file.create_dataset("gone", data=[1])
        refs = [file["target"].ref, file["gone"].ref]
        file.create_dataset("refs", data=refs, dtype=h5py.ref_dtype)
        file.attrs["refers"] = file["gone"].ref
        file.attrs["titles"] = ["x", "y"]
    assert verifying.apart([path])[0].verdict == "sound"
    content = path.read_bytes()
    heap = content.index(b"GCOL")
    path.write_bytes(content[:heap] + b"XCOL" + content[heap + 4 :])
    (found,) = verifying.apart([path])
    assert {"/words"} <= {one.path for one in found.damages}
    assert all(one.origin is not None for one in found.damages if one.path == "/words")
    path.write_bytes(content)
    with h5py.File(path, "r+") as file:
        address = h5py.h5g.get_objinfo(file["gone"].id).objno[0]
        del file["gone"]
    # h5py still reads what lies there.
    assert verifying.apart([path])[0].verdict == "sound"
    content = path.read_bytes()
    path.write_bytes(content[:address] + bytes(16) + content[address + 16 :])
    (found,) = verifying.apart([path])
    assert (found.verdict, found.damages) == ("sound, with loose ends", ())
    assert {one.path for one in found.notes} == {"/refs", "/@refers"}
    assert all("leading nowhere" in one.reason for one in found.notes)
