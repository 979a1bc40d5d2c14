"""Do programs say the same with the engine under their HDF5, and does it read for them?"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.running import environment, program
from tests.attack import preloaded
from tests.support.everything import write_everything
from tests.support.golden import assert_golden, steady
from tests.support.tools import require_tool

if not environment.LIBRARY.is_file():
    pytest.skip("libchunkwise_preload.so is not built (`make install`)", allow_module_level=True)

CHUNKWISE = (sys.executable, "-m", "chunkwise")


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compressed field whose chunks do not fit a small cache, and some other things."""
    path = tmp_path_factory.mktemp("running") / "field.h5"
    values = np.random.default_rng(0).normal(size=(60, 40, 50)).round(2).astype("f4")
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "x", data=values, chunks=(60, 20, 25), compression="gzip", shuffle=True
        )
        file.create_dataset("big", data=values.astype(">f8"), chunks=(9, 40, 50), compression=4)
        file.create_dataset("contiguous", data=values)
        file.create_dataset("text", data=["a", "bc"])
        file["scalar"] = 5
    # Of a file and itself h5diff reads nothing.
    shutil.copy(path, path.with_name("twin.h5"))
    return path


def ran(
    *words: str | Path, folder: Path, report: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program, with the engine where a report is wanted."""
    under = (*CHUNKWISE, "run", "--report-to", report, "--") if report else ()
    # Names in files need not be text.
    return subprocess.run(
        [*under, *words], cwd=folder, capture_output=True, text=True, errors="surrogateescape",
        timeout=120,
    )  # fmt: skip


def same_under(script: Path, *words: str | Path, report: Path) -> str:
    """Run a script as it is and with the engine; give what both print."""
    plain, under = (
        ran(sys.executable, script, *words, folder=script.parent, report=to)
        for to in (None, report)
    )
    assert plain.returncode == 0, plain.stderr
    assert (plain.stdout, plain.stderr, plain.returncode) == (
        under.stdout, under.stderr, under.returncode,
    )  # fmt: skip
    return plain.stdout


def reads(report: Path) -> int:
    """Reads that the engine has carried out."""
    return sum(int(n) for n in re.findall(r"(\d+) reads? by chunkwise", report.read_text()))


@pytest.mark.parametrize(
    "words",
    [
        ("h5dump", "field.h5"),
        ("h5dump", "-d", "/x", "-s", "3,1,2", "-c", "2,3,4", "-S", "7,5,9", "field.h5"),
        ("h5ls", "-rvd", "field.h5"),
        ("h5diff", "-v", "field.h5", "twin.h5"),
        ("ncdump", "field.h5"),
        ("ncdump", "-v", "x", "field.h5"),
    ],
    ids=" ".join,
)
def test_what_a_tool_prints(words: tuple[str, ...], field: Path, tmp_path: Path) -> None:
    require_tool(words[0])
    report = tmp_path / "report"
    plain = ran(*words, folder=field.parent)
    under = ran(*words, folder=field.parent, report=report)
    assert (plain.stdout, plain.stderr, plain.returncode) == (
        under.stdout, under.stderr, under.returncode,
    )  # fmt: skip
    assert len(plain.stdout) > 50
    assert reads(report) > 0, report.read_text()


def test_what_a_tool_writes(field: Path, tmp_path: Path) -> None:
    require_tool("h5repack")
    report = tmp_path / "report"
    words = ("h5repack", "-f", "GZIP=1", field)
    assert ran(*words, "plain.h5", folder=tmp_path).returncode == 0
    assert ran(*words, "under.h5", folder=tmp_path, report=report).returncode == 0
    assert reads(report) > 0, report.read_text()
    one, other = (tmp_path / name for name in ("plain.h5", "under.h5"))
    with h5py.File(one) as a, h5py.File(other) as b:
        assert list(a) == list(b)
        for name in a:
            assert a[name].dtype == b[name].dtype
            assert a[name][()].tobytes() == b[name][()].tobytes() or name == "text"
    assert one.stat().st_size == other.stat().st_size


SCRIPT = """
import hashlib, sys
import h5py, numpy as np
from netCDF4 import Dataset

file = h5py.File(sys.argv[1], rdcc_nbytes=1 << 16)
for name in ("x", "big", "contiguous"):
    d = file[name]
    rows = [d[i] for i in range(d.shape[0])]
    parts = [d[3:50:7, 1:30:3, ::4], d[[1, 5, 9], 2], d[d[...] > 1.5], d[..., -1]]
    parts.append(d.astype("f4")[5])
    into = np.full((70, 40, 60), -1.0, d.dtype)
    d.read_direct(into, np.s_[10:20], np.s_[5:15, :, 5:55])
    for array in (*rows, *parts, into):
        print(array.dtype, array.shape, hashlib.sha1(array.tobytes()).hexdigest())
print(file["text"][...], file["scalar"][()])
with Dataset(sys.argv[1]) as same:
    for name in ("x", "contiguous"):
        v = same[name]
        print(hashlib.sha1(np.ascontiguousarray(v[2:40:3, ::2, 7]).tobytes()).hexdigest())
try:
    file["x"][60]
except IndexError as error:
    print(error)
"""


def test_two_libraries_in_one_process(field: Path, tmp_path: Path) -> None:
    """The wheels of h5py and netCDF4 bring a libhdf5 each."""
    pytest.importorskip("netCDF4")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    report = tmp_path / "report"
    same_under(script, field, report=report)
    told = report.read_text()
    assert reads(report) >= 130, told
    assert "/x: " in told
    assert re.search(r"/contiguous: \d+ reads? by libhdf5: less than 1 MiB of contiguous", told)
    assert "/text: 1 read by libhdf5: its elements are of variable length" in told


def test_rows_are_decoded_once(field: Path, tmp_path: Path) -> None:
    """A program that has no room for a chunk decodes each once all the same."""
    script = tmp_path / "rows.py"
    script.write_text(
        "import h5py, sys\n"
        "d = h5py.File(sys.argv[1], rdcc_nbytes=1)['x']\n"
        "print(sum(float(d[i, j].sum()) for i in range(60) for j in range(40)))\n"
    )
    report = tmp_path / "report"
    under = ran(sys.executable, script, field, folder=tmp_path, report=report)
    assert under.returncode == 0, under.stderr
    assert "2400 reads by chunkwise" in report.read_text()


def test_random_programs_are_read_for(tmp_path: Path) -> None:
    """Without a difference: `tests/whole/test_attack.py`."""
    total = 0
    for seed in range(100, 106):
        folder = tmp_path / str(seed)
        folder.mkdir()
        preloaded.attempt(seed, folder)
        report = folder / "report"
        total += reads(report) if report.exists() else 0
    assert total > 0


EVERY = """
import hashlib, sys
import h5py

def one(name, found):
    if isinstance(found, h5py.Dataset):
        try:
            value = found[()]
        except Exception as error:
            print(name, type(error), error)
            return
        plain = hasattr(value, "tobytes") and not value.dtype.hasobject
        text = value.tobytes() if plain else b""
        print(name, found.dtype, found.shape, hashlib.sha1(text).hexdigest())

h5py.File(sys.argv[1]).visititems(one)
"""


def test_every_kind_of_dataset(tmp_path: Path) -> None:
    """A file of all types and layouts."""
    path, script, report = (tmp_path / name for name in ("every.h5", "script.py", "report"))
    write_everything(path)
    script.write_text(EVERY)
    assert len(same_under(script, path, report=report).splitlines()) > 20
    assert reads(report) > 0


def test_forked_children(field: Path, tmp_path: Path) -> None:
    script = tmp_path / "forks.py"
    script.write_text(
        "import h5py, multiprocessing, sys\n"
        "def part(i):\n"
        "    return float(h5py.File(sys.argv[1])['x'][i].sum())\n"
        "if __name__ == '__main__':\n"
        "    d = h5py.File(sys.argv[1])['x']; before = float(d[...].sum())\n"
        "    pool = multiprocessing.get_context('fork').Pool(2)\n"
        "    print(before, sum(pool.map(part, range(60))), float(d[3].sum()))\n"
        "    pool.close(); pool.join()\n"
    )
    same_under(script, field, report=tmp_path / "report")


def test_h5py_before_and_after_patching(field: Path, tmp_path: Path) -> None:
    """Both ways into the engine in one process."""
    script = tmp_path / "both.py"
    script.write_text(
        "import h5py, sys\n"
        "d = h5py.File(sys.argv[1])['x']; before = float(d[...].sum()), d[3, 4].tolist()\n"
        "import chunkwise\n"
        "chunkwise.patch_h5py()\n"
        "after = float(d[...].sum()), d[3, 4].tolist()\n"
        "same = h5py.File(sys.argv[1])['x']\n"
        "print(before == after, before[0] == float(same[...].sum()), float(same[5].sum()))\n"
    )
    report = tmp_path / "report"
    assert same_under(script, field, report=report).startswith("True True")
    assert reads(report) > 0


def test_a_damaged_chunk_fails_as_without(field: Path, tmp_path: Path) -> None:
    require_tool("h5dump")
    path = tmp_path / "damaged.h5"
    with h5py.File(field) as file:
        place = file["x"].id.get_chunk_info(1)
    content = bytearray(field.read_bytes())
    content[place.byte_offset : place.byte_offset + 40] = bytes(40)
    path.write_bytes(content)
    plain = ran("h5dump", "-d", "/x", path, folder=tmp_path)
    under = ran("h5dump", "-d", "/x", path, folder=tmp_path, report=tmp_path / "report")
    assert plain.returncode == under.returncode != 0
    assert (plain.stdout, plain.stderr) == (under.stdout, under.stderr)


def test_exit_code_and_signals_are_the_program_s(tmp_path: Path) -> None:
    assert ran("sh", "-c", "exit 7", folder=tmp_path, report=tmp_path / "r").returncode == 7
    killed = ran("sh", "-c", "kill -TERM $$", folder=tmp_path, report=tmp_path / "r")
    assert killed.returncode == -signal.SIGTERM


def test_what_a_run_reports(field: Path) -> None:
    script = "import h5py; f = h5py.File('field.h5'); [f[name][...] for name in ('x', 'scalar')]"
    done = subprocess.run(
        [*CHUNKWISE, "run", "--report", "--", sys.executable, "-c", script],
        cwd=field.parent, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    said = done.stderr.replace(sys.executable, "python")
    assert_golden("run", steady(re.sub(r"process \d+", "process N", said)))


def test_a_program_without_hdf5_is_said_to_be_one(tmp_path: Path) -> None:
    done = subprocess.run(
        [*CHUNKWISE, "run", "--report", "--", "ls"], cwd=tmp_path, capture_output=True, text=True
    )
    assert "made no call of HDF5 that could be seen" in done.stderr
    assert (done.returncode, done.stdout) == (0, "")


def test_variables_for_batch_scripts(field: Path, tmp_path: Path) -> None:
    require_tool("h5dump")
    command = " ".join(CHUNKWISE) + " run --env --report-to report --threads 1 --keep 1MiB"
    done = subprocess.run(
        ["sh", "-c", f'eval "$({command})"; h5dump -d /x {field} >/dev/null; env'],
        cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ, LD_PRELOAD=""),
    )  # fmt: skip
    assert f"LD_PRELOAD={environment.LIBRARY}" in done.stdout
    assert "CHUNKWISE_CACHE_NBYTES=1048576" in done.stdout
    assert reads(tmp_path / "report") > 0


@pytest.mark.parametrize("command", ["run", "trace"])
def test_options_behind_a_program_are_the_programs(command: str, tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    done = subprocess.run(
        [*CHUNKWISE, command, "ls", "-l", "--color=never"], cwd=tmp_path,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("total 0")


def test_what_cannot_be_run_is_said() -> None:
    for words, told in ((("no-such-program",), "no such program"), ((), "which program?")):
        done = subprocess.run([*CHUNKWISE, "run", *words], capture_output=True, text=True)
        assert (done.returncode, told in done.stderr) == (2, True), done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_static_program_runs_as_without(tmp_path: Path) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "p.c").write_text('#include <stdio.h>\nint main(void){puts("ran");return 0;}\n')
    made = subprocess.run(
        [compiler, "-static", "p.c", "-o", "p"], cwd=tmp_path, capture_output=True
    )
    if made.returncode:
        pytest.skip("no static C library")
    done = subprocess.run(
        [*CHUNKWISE, "run", "--", "./p"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "linked statically" in done.stderr


# Programs that are linked statically ----------------------------------------------------------


def test_hdf5_inside_the_program_is_said(tmp_path: Path) -> None:
    true = shutil.which("true")
    if true is None:
        pytest.skip("no program to copy")
    made = tmp_path / "a.out"
    shutil.copy(true, made)
    assert program.find(str(made)).obstacle is None
    with made.open("ab") as file:
        file.write(b"Headers are %u.%u.%u, library is %u.%u.%u\n")
    found = program.find(str(made))
    assert found.obstacle is not None
    assert "h5cc -shlib" in found.obstacle
    assert not found.harms
    # Why nothing was seen is said once, and not guessed again at the end.
    done = subprocess.run(
        [*CHUNKWISE, "run", "--report", "--", str(made)], capture_output=True, text=True
    )
    assert "made no call of HDF5" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
    plain = subprocess.run(
        [*CHUNKWISE, "run", "--report", "--", true], capture_output=True, text=True
    )
    assert "made no call of HDF5" in plain.stderr


@pytest.mark.parametrize("musl", [False, True])
def test_a_program_for_another_c_library_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, musl: bool
) -> None:
    here = program.find(sys.executable)
    assert here.obstacle is None
    monkeypatch.setattr(program, "_MUSL", musl)
    other = ("musl" in sysconfig.get_config_var("SOABI")) != musl
    found = program.find(sys.executable)
    assert found.harms == other
    assert ("it is made for" in (found.obstacle or "")) == other
