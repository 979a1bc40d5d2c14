"""Are many files repacked in place, in parts and several at a time, and the rest left alone?"""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any

import h5py
import numpy as np
import pytest

from chunkwise.errors import UsageError
from chunkwise.newfile.claim import claimed
from chunkwise.newfile.target import choose
from chunkwise.repacking.gathering import Wanted, gather
from tests.support.commands import run
from tests.support.golden import assert_golden, mistakes
from tests.support.processes import ran

VALUES = np.arange(200 * 100, dtype="<i4").reshape(200, 100)
# Names that other runs give to what is half done, and to copies that they read.
LEFT_BY_OTHERS = (
    ".1.h5.0123456789abcdef.partial",
    ".1.h5.repack/before.h5",
    ".1.h5.repack.ab_12cde/1.h5",
    ".old.nc.netcdf4.ab_12cde/old.nc",
)


def make(path: Path, chunks: tuple[int, int] = (1, 100), offset: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file.create_dataset("t", data=VALUES + offset, chunks=chunks, compression=1)
        file.attrs["title"] = path.name
    return path


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Seven files in two folders, of which two are as asked already; and one that is no HDF5."""
    monkeypatch.chdir(tmp_path)
    for i in range(5):
        make(tmp_path / "archive" / f"{i}.h5", offset=i)
    make(tmp_path / "archive" / "sub" / "5.h5", (200, 100), offset=5)
    make(tmp_path / "archive" / "sub" / "6.nc", (200, 100), offset=6)
    (tmp_path / "archive" / "notes.txt").write_text("no HDF5")
    return tmp_path / "archive"


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in found
    }


def is_done(path: Path, offset: int) -> bool:
    with h5py.File(path) as file:
        same = bool(np.array_equal(file["t"][...], VALUES + offset))
        return same and file["t"].chunks == (200, 100) and file.attrs["title"] == path.name


# --- in place ---------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_folder_in_place(jobs: int, archive: Path) -> None:
    before = stamps(archive)
    arguments = [archive, "--in-place", "--chunk", "200x100", "--jobs", jobs, "--json"]
    code, out, err = run("repack", *arguments)
    assert code == 0, err
    results = [json.loads(line) for line in out.splitlines()]
    outcomes = {Path(one["source"]).name: one["outcome"] for one in results}
    assert outcomes == {
        **{f"{i}.h5": "repacked" for i in range(5)},
        **dict.fromkeys(("5.h5", "6.nc"), "skipped"),
    }
    after = stamps(archive)
    assert set(after) == set(before)
    for name, number in (("sub/5.h5", 5), ("sub/6.nc", 6)):
        assert after[name] == before[name]
        assert is_done(archive / name, number)
    for number in range(5):
        assert is_done(archive / f"{number}.h5", number)
    # Again: nothing is to be done, and nothing is touched.
    code, out, _ = run("repack", archive, "--in-place", "--chunk", "200x100")
    assert code == 0
    assert "7 files: 7 skipped" in out
    assert stamps(archive) == after


def test_a_file_that_may_not_be_replaced_does_not_stop_the_rest(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are write-protected, by permissions, a folder's, or the system; or in use."""
    protected = (archive / "1.h5", archive / "sub")

    def access(path: Path, mode: int) -> bool:
        return path not in protected or not mode & os.W_OK  # Root may write to all.

    def replace(*given: Any, **more: Any) -> None:
        if given[1] == "2.h5":
            raise PermissionError(errno.EPERM, "immutable")
        renamed(*given, **more)

    renamed = os.replace
    monkeypatch.setattr(os, "access", access)
    monkeypatch.setattr(os, "replace", replace)
    make(archive / "sub" / "5.h5", offset=5)
    before = stamps(archive)
    arguments = (archive, "--in-place", "--chunk", "200x100")
    with claimed(choose(archive / "3.h5", None, in_place=True, force=False), resume=False):
        code, out, err = run("repack", *arguments)
    assert code == 2, err
    assert out.count("FAILED") == 5  # Of 6.nc, which needs nothing, the folder as well.
    said = (
        "may not be written to",
        "cannot be written to",
        "another run is writing it",
        "not permitted",
    )
    assert all(one in out for one in said), out
    after = stamps(archive)
    left = {name for name in after if after[name] == before.get(name)}
    assert left == {"1.h5", "2.h5", "3.h5", "sub/5.h5", "sub/6.nc", "notes.txt"}


@pytest.mark.parametrize("resume", [[], ["--resume"]])
def test_a_file_of_several_names_is_replaced_by_force_alone(
    resume: list[str], archive: Path
) -> None:
    os.link(archive / "1.h5", archive.parent / "another.h5")
    arguments = (archive, "--in-place", "--chunk", "200x100", *resume)
    code, out, _ = run("repack", *arguments)
    assert code == 2
    assert "has 2 names" in out
    assert (archive / "1.h5").samefile(archive.parent / "another.h5")
    assert is_done(archive / "2.h5", 2)
    assert run("repack", *arguments, "--force")[0] == 0
    assert is_done(archive / "1.h5", 1)


# --- lists ------------------------------------------------------------------------------


def test_files_and_folders_are_left_out(archive: Path) -> None:
    arguments = (archive, "-o", "out", "--filter", "none")
    assert run("repack", *arguments, "--exclude", "sub", "--exclude", "[01].h5")[0] == 0
    found = {path.name for path in Path("out").rglob("*.*") if not path.name.startswith(".")}
    assert found == {"2.h5", "3.h5", "4.h5"}
    code, out, _ = run("verify", archive, "--exclude", "sub/5.*", "--json")
    names = [Path(json.loads(line)["path"]).name for line in out.splitlines()]
    assert (code, sorted(names)) == (0, ["0.h5", "1.h5", "2.h5", "3.h5", "4.h5", "6.nc"])


@pytest.mark.parametrize("kind", [PurePosixPath, PureWindowsPath])
def test_patterns_have_slashes_on_each_system(kind: type[PurePath]) -> None:
    wanted = Wanted(("sub/5.*", "old/"))
    assert wanted.excludes(kind("sub", "5.h5"))
    assert wanted.excludes(kind("old", "deep", "1.h5"))
    assert not wanted.excludes(kind("sub", "6.h5"))


def test_files_that_still_arrive_are_left_for_later(archive: Path) -> None:
    for path in archive.rglob("*.*"):
        os.utime(path, (0, time.time() - 3600))
    (archive / "0.h5").touch()
    (archive / "new.h5").touch()  # Nothing has arrived yet: that is no damage.
    code, out, _ = run("repack", archive, "-o", "out", "--filter", "none", "--quiet-for", "10min")
    assert (code, out.count("LATER"), out.count("repacked ")) == (4, 2, 6), out
    assert not Path("out/0.h5").exists()
    code, out, _ = run("verify", archive, "--quiet-for", "10min", "--json")
    verdicts = [json.loads(line)["verdict"] for line in out.splitlines()]
    assert (code, sorted(verdicts)) == (4, ["busy"] * 2 + ["sound"] * 6)
    assert run("verify", archive)[0] == 1


def test_what_was_wrong_before_does_not_count(archive: Path) -> None:
    (archive / "0.h5").write_bytes((archive / "0.h5").read_bytes()[:3000])
    for command in (("verify", archive), ("repack", archive, "-o", "out", "--filter", "none")):
        before = run(*command, "--json")
        Path("before.jsonl").write_text(before.out)
        assert before.code == 1
        again = (*command, "--force") if command[0] == "repack" else command
        assert run(*again, "--baseline", "before.jsonl")[0] == 0
    (archive / "1.h5").write_bytes((archive / "1.h5").read_bytes()[:3000])
    words = ("repack", archive, "-o", "out", "--filter", "none", "--force")
    assert run(*words, "--baseline", "before.jsonl").code == 1
    Path("before.jsonl").write_text("no record")
    assert "--baseline" in run("verify", archive, "--baseline", "before.jsonl").err
    assert "is for many files" in run("verify", archive / "2.h5", "--exclude", "a").err


def test_what_is_not_kept_is_counted(archive: Path) -> None:
    arguments = ("repack", archive, "-o", "out", "--filter", "none", "--dry-run")
    assert "not kept" not in run(*arguments).out
    (archive / "link.h5").symlink_to("0.h5")
    (archive / "again.h5").hardlink_to(archive / "1.h5")
    # What is counted of a file is not counted again of a link to it.
    (archive / "link-1.h5").symlink_to("1.h5")
    (archive / "link-2.h5").symlink_to("2.h5")
    (archive / "gone.h5").symlink_to("nowhere.h5")
    (archive / "sub").chmod(0o700)
    os.setxattr(archive / "2.h5", "user.doi", b"10.1/x")
    said = run(*arguments).out.splitlines()[-1]
    assert said == (
        "not kept as it is: 3 symbolic links, 1 dangling link, 2 files of several names, "
        "1 file with extended attributes, 1 folder with permissions of its own"
    )
    (archive / "self.h5").symlink_to("self.h5")
    assert "2 dangling links" in run(*arguments).out
    assert "1 dangling link," in run(*arguments, "--exclude", "self*").out
    first, second = (run(*arguments, "--task", f"{i}/2").out for i in (1, 2))
    assert "2 dangling links" in first
    assert "dangling" not in second


def test_a_disk_that_is_too_small_for_one_file_takes_the_others(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with h5py.File(archive / "1.h5", "r+") as file:
        file["large"] = np.zeros(1 << 20)
    monkeypatch.setattr("chunkwise.repacking.run.free_nbytes", lambda _: 4 << 20)
    code, out, _ = run("repack", archive, "-o", "out", "--filter", "none")
    assert (code, out.count("FAILED"), out.count("repacked ")) == (2, 1, 6), out
    assert "are needed" in out


@pytest.mark.usefixtures("archive")
def test_files_from_a_list(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("# of today\narchive/0.h5\n\narchive/sub/5.h5\n")
    arguments = ["--files-from", "list.txt", "-o", "out", "--chunk", "200x100"]
    code, out, err = run("repack", *arguments)
    assert code == 0, err
    assert "1 repacked, 1 copied" in out
    assert is_done(tmp_path / "out" / "0.h5", 0)
    assert is_done(tmp_path / "out" / "sub" / "5.h5", 5)


def test_files_from_standard_input(archive: Path, tmp_path: Path) -> None:
    names = "\n".join(str(archive / f"{i}.h5") for i in range(3))
    words = ["repack", "--files-from", "-", "--in-place", "--chunk", "200x100", "--jobs", "2"]
    done = ran([sys.executable, "-m", "chunkwise", *words], input=names, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [is_done(archive / f"{i}.h5", i) for i in range(5)] == [True] * 3 + [False] * 2


def test_a_name_of_the_list_that_is_not_there_fails_alone(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("archive/0.h5\narchive/none.h5\n")
    arguments = ["--files-from", "list.txt", "--in-place", "--chunk", "200x100"]
    code, out, _ = run("repack", *arguments)
    assert code == 2
    assert "FAILED  archive/none.h5: no such file" in out
    assert is_done(archive / "0.h5", 0)


def test_names_of_a_list_are_paths_of_any_kind(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upwards, and with characters in them that end lines of text, but none of a list."""
    odd = (archive / "0.h5").rename(archive / "0\u2028a\x0b.h5")
    listed = ["../archive/1.h5", "../archive/sub/../2.h5", f"../archive/{odd.name}"]
    (tmp_path / "list.txt").write_text("\r\n".join(listed), newline="")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    arguments = ["--files-from", "../list.txt", "--chunk", "200x100"]
    code, _, err = run("repack", *arguments, "-o", "out")
    assert code == 0, err
    made = {path.name for path in Path("out").iterdir() if not path.name.startswith(".")}
    assert made == {"1.h5", "2.h5", odd.name}
    assert run("repack", *arguments, "--in-place")[0] == 0
    assert is_done(archive / "1.h5", 1)
    assert is_done(archive / "2.h5", 2)


# --- parts of an array ------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 7, 9])
def test_each_file_is_in_one_part(archive: Path, count: int) -> None:
    whole = gather([str(archive)], None)
    assert len(whole.pairs) == 7
    parts = [whole.task(f"{i}/{count}").pairs for i in range(1, count + 1)]
    assert sorted(pair for part in parts for pair in part) == sorted(whole.pairs)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    # The same whenever a task begins, and whatever others have done meanwhile.
    make(archive / "0.h5", (200, 100))
    content = (archive / "1.h5").read_bytes()
    for name in LEFT_BY_OTHERS:
        (archive / name).parent.mkdir(exist_ok=True)
        (archive / name).write_bytes(content)
    again = gather([str(archive)], None)
    assert [again.task(f"{i}/{count}").pairs for i in range(1, count + 1)] == parts


@pytest.mark.parametrize("text", ["", "0/3", "4/3", "3", "a/b", "1/0", "-1/3", "1/3/5"])
def test_parts_that_there_are_not(archive: Path, text: str) -> None:
    with pytest.raises(UsageError, match="write i/n with i from 1 to n"):
        gather([str(archive)], None).task(text)


def test_tasks_of_an_array_share_a_folder_of_results(archive: Path, tmp_path: Path) -> None:
    rules = ["-o", "out", "--chunk", "200x100"]
    for task in ("2/3", "1/3", "3/3"):
        code, _, err = run("repack", archive, *rules, "--task", task)
        assert code == 0, err
    for name, number in (("0.h5", 0), ("4.h5", 4), ("sub/5.h5", 5), ("sub/6.nc", 6)):
        assert is_done(tmp_path / "out" / name, number)
    # Each goes on from its own list.
    arguments = [archive, *rules, "--task", "2/3", "--resume"]
    code, out, _ = run("repack", *arguments)
    assert "done before" in out
    assert "repacked" not in out


def test_a_rule_that_means_a_dataset_of_another_part(archive: Path) -> None:
    with h5py.File(archive / "0.h5", "a") as file:
        file.create_dataset("only", data=VALUES, chunks=(1, 100))
    for count, task in enumerate(("9/9", "2/7", "1/7")):
        arguments = (archive, "--in-place", "--chunk", "only:200x100", "--task", task)
        code, _, err = run("repack", *arguments)
        assert code == 0, err
        with h5py.File(archive / "0.h5") as file:
            assert file["only"].chunks == ((200, 100) if count == 2 else (1, 100))


# --- mistakes ---------------------------------------------------------------------------


def test_mistakes_are_one_line(archive: Path) -> None:
    Path("list.txt").write_text("archive/0.h5\n")
    Path("empty.txt").write_text("\n# nothing\n")
    Path("empty").mkdir()
    before = stamps(archive)
    said = mistakes("""
repack archive
repack archive -o o --in-place
repack --files-from list.txt
repack archive/0.h5 b.h5 --jobs 2
repack archive/0.h5 b.h5 --task 1/2
repack archive --in-place --task 0/2
repack archive --in-place --jobs 0
repack archive --in-place --unchanged link
repack archive/0.h5 b.h5 --unchanged skip
repack --files-from empty.txt -o o
repack --files-from none.txt -o o
repack empty -o o
repack
""")
    assert_golden("repack-mistakes", said)
    assert stamps(archive) == before


# --- ending -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_jobs_that_are_told_to_end_leave_no_halves(tmp_path: Path, number: int) -> None:
    with h5py.File(tmp_path / "0.h5", "w") as file:
        data = np.random.default_rng(0).integers(0, 50, (3000, 2000), "<i4")
        file.create_dataset("t", data=data, chunks=(100, 2000), compression=1)
    for i in range(1, 4):
        shutil.copy(tmp_path / "0.h5", tmp_path / f"{i}.h5")
    before = stamps(tmp_path)
    words = ["repack", ".", "--in-place", "--chunk", "3000x20", "--filter", "deflate:9"]
    with subprocess.Popen(
        [sys.executable, "-m", "chunkwise", *words, "--jobs", "2"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        deadline = time.monotonic() + 180
        while not list(tmp_path.glob(".*.partial")) and time.monotonic() < deadline:
            time.sleep(0.02)
        # As a terminal does: to all of them.
        os.killpg(process.pid, number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else 143), err
    after = stamps(tmp_path)
    assert set(after) == set(before), err
    assert any(after[name] == before[name] for name in before)
    for name in before:
        with h5py.File(tmp_path / name) as file:
            assert file["t"].shape == (3000, 2000)
