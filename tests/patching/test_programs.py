"""Does ``python -m chunkwise`` run programs as Python does, but patched?"""

import os
import re
import signal
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.support.processes import ran

PROGRAM = """
import pickle, sys, h5py, beside
print(__name__, __file__, sys.argv, sys.path[0], __spec__ and __spec__.name, beside.there)
def double(x):
    return 2 * x

def fail():
    raise KeyError("no ü")

if __name__ == "__main__":
    assert sys.modules["__main__"].__dict__ is globals()
    match sys.argv[1:]:
        case ["read", path]:
            with h5py.File(path) as f:
                print(f["d"][5:7, 3].tolist())
        case ["exit", code]:
            sys.exit(int(code))
        case ["say", text]:
            sys.exit(text)
        case ["fail"]:
            fail()
        case ["interrupt"]:
            raise KeyboardInterrupt
        case ["pickle"]:
            assert pickle.loads(pickle.dumps(double)) is double
        case ["pool"]:
            import multiprocessing
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(double, [1, 2]))
        case ["exiting"]:
            import atexit
            atexit.register(lambda: print(double(21)))
"""
WAYS = {"script": ["program.py"], "absolute": ["{folder}/program.py"], "module": ["-m", "program"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "beside.py").write_text("there = True")
    (folder / "broken.py").write_text("a = 1\nb = = 2\n")
    (folder / "stats.py").write_text(
        "import atexit, chunkwise\n"
        "atexit.register(lambda: print(chunkwise.patch_stats()))\n"
        "import sys, h5py\n"
        "print(h5py.File(sys.argv[1])['d'][5:7, 3].tolist())\n"
    )
    with h5py.File(folder / "data.h5", "w") as f:
        f["d"] = np.arange(10000.0).reshape(100, 100)
        f["small"], f["text"] = np.arange(10), "text"
    with h5py.File(folder / "field.nc", "w") as f:
        f["d"] = np.arange(10000.0).reshape(100, 100)
        f["x"], f["y"] = np.arange(100), np.arange(100)
        for axis, name in enumerate("xy"):
            f[name].make_scale()
            f["d"].dims[axis].attach_scale(f[name])
    return folder


def run(folder: Path, *arguments: str, patched: bool) -> tuple[str, str, int]:
    done = ran(
        [sys.executable, *(["-m", "chunkwise"] if patched else []), *arguments],
        cwd=folder,
        timeout=60,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
    )
    # Python tells its own frames of a module that it runs.
    frames = re.sub(r'  File "<frozen runpy>", line \d+, in \w+\n', "", done.stderr)
    return done.stdout, frames, done.returncode


CASES = [
    ["read", "data.h5"], ["exit", "7"], ["say", "good bye"], ["fail"], ["interrupt"], ["pickle"],
    ["exiting"], ["-m", "-h", "--help"],
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_programs_run_as_python_runs_them(folder: Path, way: str) -> None:
    how = [part.format(folder=folder) for part in WAYS[way]]
    for case in CASES if way == "script" else CASES[2:4]:
        plain = run(folder, *how, *case, patched=False)
        assert run(folder, *how, *case, patched=True) == plain, case
        assert plain[2] == {"exit": 7, "say": 1, "fail": 1, "interrupt": -signal.SIGINT}.get(
            case[0], 0
        )


def test_the_engine_reads(folder: Path) -> None:
    out, err, code = run(folder, "stats.py", "data.h5", patched=True)
    assert (err, code) == ("", 0)
    assert "[503.0, 603.0]" in out
    assert "{'patched': True, 'engine': 1, 'h5py': {}, 'writes': {'engine': 0, " in out


def test_what_went_through_the_engine_is_said_when_wanted(folder: Path) -> None:
    text = "import h5py; f = h5py.File('data.h5'); [f['d'][i] for i in range(5)], f['small'][0]"
    (folder / "reads.py").write_text(text)
    out, err, code = run(folder, "--stats", "reads.py", patched=True)
    assert (out, code) == ("", 0)
    said = re.fullmatch(
        r"chunkwise: 5 reads went through the engine, 1 through h5py \(mostly because it is "
        r"smaller than 64 KiB\); 3 reads that h5py repeated took it [\d.e+-]+ times as long\n",
        err,
    )
    assert said, err
    (folder / "reads.py").write_text(
        "import multiprocessing, h5py\n"
        "def read(row): return float(h5py.File('data.h5')['d'][row, 3])\n"
        "with multiprocessing.get_context('fork').Pool(1) as pool: pool.map(read, [5])"
    )
    out, err, code = run(folder, "--stats", "reads.py", patched=True)
    assert (out, code) == ("", 0)
    assert "by the program's own process; those that it starts are not counted" in err
    assert "--stats needs a script" in run(folder, "--stats", patched=True)[1]


MADE = "chunkwise: no read went through the engine (by h5py: {}); most frequent reason: {}"
SMALL = "it is smaller than 64 KiB"
ENDINGS: dict[str, tuple[str, str]] = {
    "nothing read": ("", ""),
    "no HDF5": ("print(1)", ""),
    "h5py imported": ("import h5py", ""),
    "written only": ("import h5py; h5py.File('new.h5', 'w')['x'] = 1", ""),
    "read by the engine": ("import h5py; h5py.File('data.h5')['d'][0]", ""),
    "read by both": ("import h5py; f = h5py.File('data.h5'); f['d'][0], f['small'][0]", ""),
    "one reason": (
        "import h5py; f = h5py.File('data.h5'); [f['small'][i] for i in range(3)]",
        MADE.format(3, SMALL),
    ),
    "two reasons": (
        "import h5py; f = h5py.File('data.h5'); f['small'][0], f['small'][1], f['text'][()]",
        MADE.format(3, SMALL),
    ),
    "writing": (
        "import h5py; h5py.File('data.h5', 'r+')['d'][0]",
        MADE.format(1, "the file is open for writing"),
    ),
    "netCDF4": (
        "import netCDF4; netCDF4.Dataset('field.nc')['d'][:]",
        "chunkwise: read nothing: netCDF4 has a libhdf5 of its own; only what is read through "
        "h5py is read by the engine",
    ),
    "xarray": (
        "import xarray; xarray.open_dataset('field.nc', engine='netcdf4').load()",
        "chunkwise: read nothing: netCDF4 has a libhdf5 of its own; give xarray's open functions "
        'engine="h5netcdf", which reads through h5py',
    ),
    "as advised": (
        "import xarray; xarray.open_dataset('field.nc', engine=\"h5netcdf\").load()",
        "",
    ),
    "stderr closed": (
        "import sys, h5py; h5py.File('data.h5')['small'][0]; sys.stderr.close()",
        "",
    ),
    "stderr gone": ("import sys, h5py; h5py.File('data.h5')['small'][0]; sys.stderr = None", ""),
    "a fork": ("import os, sys, h5py; h5py.File('data.h5')['d'][0]; os.fork() or sys.exit(0)", ""),
}
LEAVES = {"": 0, "import sys; sys.exit(3)": 3, "import os; os._exit(4)": 4, "1/0": 1}
LEAVES["import os, signal; os.kill(os.getpid(), signal.SIGTERM)"] = -signal.SIGTERM


@pytest.mark.parametrize("what", ENDINGS)
def test_who_was_not_served_hears_it_in_one_line(folder: Path, what: str) -> None:
    program, line = ENDINGS[what]
    if "netCDF4" in program or "xarray" in program:
        pytest.importorskip("netCDF4")
        pytest.importorskip("xarray")
    (folder / "ending.py").write_text(program)
    out, err, code = run(folder, "ending.py", patched=True)
    assert (out, code) == ("1\n" if what == "no HDF5" else "", 0)
    lines = [one for one in err.splitlines() if one.startswith("chunkwise: ")]
    assert lines == ([line] if line else [])
    if not what.startswith("stderr"):
        assert err == "".join(f"{one}\n" for one in lines)


@pytest.mark.parametrize("leave", LEAVES)
def test_however_a_program_ends(folder: Path, leave: str) -> None:
    read = "import h5py; print(h5py.File('data.h5')['small'][0], flush=True)\n"
    (folder / "ending.py").write_text(read + leave)
    plain = run(folder, "ending.py", patched=False)
    patched = run(folder, "ending.py", patched=True)
    assert (patched[0], patched[2]) == (plain[0], plain[2]) == ("0\n", LEAVES[leave])
    said = MADE.format(1, SMALL) + "\n"
    at_exit = "" if "os" in leave else said
    assert patched[1].replace(f"{folder}/", "") == plain[1].replace(f"{folder}/", "") + at_exit


def test_programs_that_start_processes(folder: Path) -> None:
    plain = run(folder, "program.py", "pool", patched=False)
    assert "[2, 4]" in plain[0]
    assert run(folder, "program.py", "pool", patched=True) == plain


def test_a_syntax_error_is_shown_as_python_shows_it(folder: Path) -> None:
    plain = run(folder, "broken.py", patched=False)
    assert "SyntaxError" in plain[1]
    out, err, code = run(folder, "broken.py", patched=True)
    # Python itself says "broken.py" as it was given, and a module's file in full.
    assert (out, err.replace(f"{folder}/", ""), code) == (
        plain[0],
        plain[1].replace(f"{folder}/", ""),
        1,
    )


def test_what_is_no_program_is_one_line(folder: Path) -> None:
    for arguments, message in (
        (["absent.py"], "cannot run absent.py: No such file"),
        (["inspekt", "data.h5"], "cannot run inspekt: No such file"),
        ([str(folder)], "Is a directory"),
        (["-m"], "-m needs the name of a module"),
    ):
        out, err, code = run(folder, *arguments, patched=True)
        assert (out, code) == ("", 2)
        assert err.startswith("chunkwise: ")
        assert err.count("\n") == 1
        assert message in err
    out, err, code = run(folder, "-m", "absent_module", patched=True)
    assert code == 1
    assert "No module named absent_module" in err


def test_subcommands_are_the_command_line(folder: Path) -> None:
    out, err, code = run(folder, "inspect", "data.h5", patched=True)
    assert (err, code) == ("", 0)
    assert out.startswith("data.h5: ")
    for arguments in (["--help"], []):
        out, err, code = run(folder, *arguments, patched=True)
        assert (err, code) == ("", 0)
        assert out.startswith("Usage: chunkwise ")
