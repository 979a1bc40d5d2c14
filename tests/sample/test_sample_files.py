"""Writing samples: whole files or none, and a command that says what happened."""

import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import h5py
import pytest
from click.testing import CliRunner

from chunkwise.errors import UsageError
from chunkwise_lab.commands.sample import command
from chunkwise_lab.sample import SAMPLES, CannotWriteError, write
from tests.support.golden import assert_golden, mistakes, refused, steady
from tests.support.processes import ran

SHAPE = (5, 40, 60)


def test_progress_ends_at_the_total(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    write("radar", tmp_path / "x.h5", shape=(60, 70), progress=lambda *now: seen.append(now))
    total = 12 * 60 * 70 * 2
    assert [done for done, _ in seen] == [total // 12 * (n + 1) for n in range(12)]
    assert {nbytes for _, nbytes in seen} == {total}


BAD: list[dict[str, Any]] = [
    *({"name": "crsi"}, {"name": "xyzzy"}, {"shape": (10, 10)}, {"shape": (2**40, 2**40, 2**40)}),
    *({"chunk": (10, 10)}, {"chunk": (1, 601, 600)}, {"filters": "deflat"}, {"seed": -1}),
    *({"filters": "filter-32123"}, {"filters": "scaleoffset"}, {"seed": 2**64}),
    *({"resolution": "1/4"}, {"name": "occam", "resolution": "1/5"}),
    {"chunk": "contiguous", "filters": "deflate:4"},
    {"name": "counts", "filters": "scaleoffset:ds:2"},
    {"filters": "szip:nn:32", "chunk": (1, 1, 1)},
    {"name": "occam", "resolution": "1", "shape": (1, 1, 1)},
]


def test_bad_arguments_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    def make(arguments: dict[str, Any]) -> None:
        write(**{"name": "cube", "path": tmp_path / "x.h5", **arguments})

    assert_golden("sample-refused", refused(make, BAD).replace(str(tmp_path), "FOLDER"))
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    out = tmp_path / "x.h5"
    out.write_text("precious")
    with pytest.raises(UsageError, match=r"exists already; --force"):
        write("cube", out, shape=SHAPE)
    assert out.read_text() == "precious"
    write("cube", out, shape=SHAPE, force=True)
    with h5py.File(out) as file:
        assert file["t2m"].shape == SHAPE
    assert list(tmp_path.iterdir()) == [out]


def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link.h5").symlink_to(tmp_path / "real.h5")
    write("cube", tmp_path / "link.h5", shape=SHAPE)
    assert (tmp_path / "link.h5").is_symlink()
    assert h5py.is_hdf5(tmp_path / "real.h5")


def test_the_file_has_the_usual_permissions(tmp_path: Path) -> None:
    write("cube", tmp_path / "x.h5", shape=SHAPE)
    (tmp_path / "usual").touch()
    assert (tmp_path / "x.h5").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize(
    ("out", "part"),
    [("", "is a folder"), ("missing/x.h5", "there is no folder"), ("fifo", "not a regular file")],
)
def test_places_where_no_file_can_be(tmp_path: Path, out: str, part: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError, match=part):
        write("cube", tmp_path / out, shape=SHAPE, force=True)
    assert list(tmp_path.iterdir()) == [tmp_path / "fifo"]


@pytest.mark.parametrize("wrong", [KeyboardInterrupt, RuntimeError("mine"), OSError(28, "")])
def test_nothing_is_left_when_something_goes_wrong(
    tmp_path: Path, wrong: BaseException | type[BaseException]
) -> None:
    out = tmp_path / "x.h5"
    out.write_text("precious")
    kind = wrong if isinstance(wrong, type) else type(wrong)

    def fail(_done: int, _total: int) -> None:
        raise wrong

    with pytest.raises(CannotWriteError if kind is OSError else kind):
        write("radar", out, shape=(60, 70), progress=fail, force=True)
    assert out.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [out]


def test_writing_off_the_main_thread_leaves_signals_alone(tmp_path: Path) -> None:
    thread = threading.Thread(
        target=write, args=("cube", tmp_path / "x.h5"), kwargs={"shape": SHAPE}
    )
    thread.start()
    thread.join()
    assert h5py.is_hdf5(tmp_path / "x.h5")


def run_cli(folder: Path, *arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    code = f"import sys\n{before}\nfrom chunkwise.cli import main\nmain()"
    return ran([sys.executable, "-c", code, "sample", *arguments], cwd=folder, timeout=60)


LIMIT_FILE_SIZE = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))"


@pytest.mark.parametrize("limit", [1000, 5000, 1_000_000])
@pytest.mark.parametrize("filters", ["deflate:6", "shuffle+lzf"])
def test_a_full_disk_is_one_line_and_leaves_nothing(
    tmp_path: Path, filters: str, limit: int
) -> None:
    # A limit on the size of files stands in for the disk; libhdf5 meets it alike.
    done = run_cli(
        tmp_path, "cris", "x.h5", "--filter", filters, before=LIMIT_FILE_SIZE.format(limit)
    )
    assert done.stderr == "chunkwise: x.h5: cannot be written: File too large\n"
    assert (done.returncode, done.stdout) == (2, "")
    assert list(tmp_path.iterdir()) == []


# Root may write to read-only folders, so become nobody, after all imports.
NOT_ROOT = """
import os
from chunkwise.cli.main import cli
cli.get_command(None, "sample")
if os.geteuid() == 0:
    os.seteuid(65534)
"""


def test_a_read_only_folder_is_one_line() -> None:
    # Not below tmp_path, which only its owner may enter.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        done = run_cli(Path(folder), "cube", "x.h5", before=NOT_ROOT)
        Path(folder).chmod(0o755)
        assert list(Path(folder).iterdir()) == []
    said = "chunkwise: x.h5: cannot be written: Permission denied; nothing was changed\n"
    assert done.stderr == said
    assert (done.returncode, done.stdout) == (2, "")


def test_a_folder_that_may_not_be_entered_is_one_line() -> None:
    with tempfile.TemporaryDirectory() as folder:
        inner = Path(folder, "inner")
        inner.mkdir(mode=0)
        Path(folder).chmod(0o755)
        done = run_cli(Path(folder), "cube", "inner/x.h5", before=NOT_ROOT)
    assert done.stderr == "chunkwise: inner/x.h5: cannot be written: Permission denied\n"
    assert (done.returncode, done.stdout) == (2, "")


INTERRUPT = """
import os, signal
from chunkwise_lab.sample import writing
slabs = writing.Layout.slabs
def interrupted(self):
    for number, box in enumerate(slabs(self)):
        if number == 2:
            os.kill(os.getpid(), signal.SIGINT)
        yield box
writing.Layout.slabs = interrupted
"""


@pytest.mark.parametrize("filters", ["none", "shuffle+lzf"])
def test_ctrl_c_leaves_nothing(tmp_path: Path, filters: str) -> None:
    done = run_cli(tmp_path, "cris", "x.h5", "--filter", filters, before=INTERRUPT)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.strip() == "chunkwise: interrupted"
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_and_says_what(tmp_path: Path) -> None:
    out = tmp_path / "x.h5"
    arguments = ["cube", "-o", str(out), "--shape", "6x40x50", "--chunk", "3x20x50"]
    result = CliRunner().invoke(command, [*arguments, "--filter", "gzip:1", "--seed", "9"])
    assert result.exit_code == 0
    said = re.sub(r"(?<=ratio )[\d.]+", "N", result.stdout)
    assert_golden("sample", steady(said, tmp_path))
    assert result.output == result.stdout  # no progress bar where nobody looks
    with h5py.File(out) as file:
        assert file.attrs["sample"] == "cube"
        assert file.attrs["seed"] == 9
        assert file["t2m"].attrs["units"] == "K"


def test_the_command_lists_all_samples_within_80_columns() -> None:
    result = CliRunner().invoke(command, ["--list"])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert {line.split()[0] for line in lines if line[:1].strip()} == {*SAMPLES, "chunkwise"}
    assert max(map(len, lines)) <= 80


def test_every_sample_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs" / "samples.md"
    text = page.read_text()
    for name in SAMPLES:
        assert f"`{name}`" in text


def test_mistakes_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = mistakes("""
sample crsi x.h5
sample cube x.h5 --shape auto
sample cube x.h5 --shape 4x0
sample cube x.h5 --filter gzp
sample cube
sample cube x.h5 -o y.h5
""")
    assert_golden("sample-mistakes", said)
    assert list(tmp_path.iterdir()) == []
