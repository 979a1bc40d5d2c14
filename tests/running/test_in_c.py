"""Do programs in C that convert, close, or run threads find what they find without the engine?"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise import _native
from chunkwise.running import environment
from tests.attack import preloaded
from tests.support.processes import ran
from tests.support.tools import require_tool

if not environment.LIBRARY.is_file():
    pytest.skip("libchunkwise_preload.so is not built (`make install`)", allow_module_level=True)

HERE = Path(__file__).resolve().parent
STORED = ("<i1", "<u2", ">i4", "<u8", "<f4", ">f8")


def made(name: str, folder: Path) -> Path:
    """Compile a program of this folder."""
    done = ran(
        [require_tool("h5cc"), "-shlib", "-o", folder / name, HERE / f"{name}.c"], cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return folder / name


def write_for_seldom(path: Path) -> None:
    """Write the file that `seldom` reads."""
    values = np.random.default_rng(1).normal(size=20000) * 10.0 ** np.arange(-8, 12, 0.001)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(500,), compression=1)
        file["contiguous"] = np.arange(2000, dtype="<f4").reshape(40, 50)


def both(words: list[str | Path], folder: Path, calls: str | None = None, **given: str) -> str:
    """Run a program alone and with the engine, compare, and give what was reported."""
    report = folder / "report"
    under = dict(os.environ, **environment.variables(report=str(report)), **given)
    said = []
    for variables in (dict(os.environ), under):
        done = ran(words, cwd=folder, env=variables, input=calls, timeout=100)  # fmt: skip
        if done.returncode == 77:
            pytest.skip("this libhdf5 is not made for threads")
        assert done.returncode == 0, done.stderr
        said.append((done.stdout, done.stderr))
    assert said[0] == said[1]
    return report.read_text()


def test_numbers_are_converted(tmp_path: Path) -> None:
    """From every kind to every kind, at the numbers where conversions may differ."""
    calls = ["F 0 r d x.h5"]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for k, name in enumerate(STORED):
            found = np.frombuffer(_native.edge_numbers(name) or b"", name)
            file.create_dataset(f"n{k}", data=found, chunks=(300,), compression=1)
            calls.append(f"D 0 0 n{k}")
            calls += [f"R 0 {kind} A A 0" for kind in preloaded.NUMBERS]
            places = f"S 1 90 1 H 0 5 1 80 1 S 1 {len(found)} 1 H 0 3 7 40 2"
            calls += [f"R 0 {kind} {places} 0" for kind in preloaded.NUMBERS]
    report = both([preloaded.program()], tmp_path, "\n".join(calls), CHUNKWISE_READ_LEAST="1")
    ours = sum(int(n) for n in re.findall(r"(\d+) reads? by chunkwise", report))
    # What this libhdf5 converts otherwise is its own.
    assert ours > len(STORED) * len(preloaded.NUMBERS) * 3 // 2, report
    assert "libhdf5: its type is converted\n" not in report


def test_numbers_are_converted_when_they_are_written(tmp_path: Path) -> None:
    calls = ["F 0 w d x.h5"]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for k, name in enumerate(STORED):
            file.create_dataset(f"n{k}", (60, 70), name, chunks=(7, 70), compression=1)
            for kind in "fiQ":
                calls += [f"D 0 0 n{k}", f"W 0 {kind} A A 0", f"R 0 {kind} A A 0", "d 0 d"]
    report = both([preloaded.program()], tmp_path, "\n".join(calls), CHUNKWISE_WRITE_LEAST="1")
    assert len(re.findall(r"\d writes? by chunkwise", report)) == len(STORED), report


def test_conversions_of_the_program_are_its_own(tmp_path: Path) -> None:
    source = tmp_path / "own.c"
    source.write_text(
        "#include <hdf5.h>\n#include <stdio.h>\n"
        "static herr_t own(hid_t a, hid_t b, H5T_cdata_t *how, size_t n, size_t s, size_t t,\n"
        "                  void *values, void *back, hid_t list) {\n"
        "    (void)a; (void)b; (void)s; (void)t; (void)back; (void)list;\n"
        "    if (how->command == H5T_CONV_CONV)\n"
        "        for (size_t i = 0; i < n; i++) ((float *)values)[i] = 42;\n"
        "    return 0;\n}\n"
        "int main(void) {\n"
        "    static float values[9000];\n"
        '    H5Tregister(H5T_PERS_HARD, "own", H5T_STD_I32LE, H5T_NATIVE_FLOAT, own);\n'
        '    hid_t file = H5Fopen("x.h5", H5F_ACC_RDONLY, H5P_DEFAULT);\n'
        '    hid_t d = H5Dopen2(file, "x", H5P_DEFAULT);\n'
        "    int status = H5Dread(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);\n"
        '    printf("%d %g\\n", status, values[7]);\n'
        "    H5Dclose(d); H5Fclose(file);\n    return 0;\n}\n"
    )
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=np.arange(9000, dtype="<i4"), chunks=(900,), compression=1)
    words: list[str | Path] = [require_tool("h5cc"), "-shlib", "-o", tmp_path / "own", source]
    assert subprocess.run(words, cwd=tmp_path).returncode == 0
    assert "conversions of its own" in both([tmp_path / "own"], tmp_path)


def test_contiguous_data(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["n0"] = np.arange(700 * 900, dtype="<f4").reshape(700, 900)
    calls = ["F 0 r d x.h5", "D 0 0 n0", "R 0 s A A 0", "R 0 D A A 0"]
    # A little of it is read by libhdf5.
    calls += ["R 0 s S 1 900 0 S 2 700 900 1 H 0 5 0 1 1 1 1 1 900 0"] * 3
    report = both([preloaded.program()], tmp_path, "\n".join(calls))
    little = "3 by libhdf5: less than 1 MiB of contiguous data"
    assert f"2 reads by chunkwise (7.2 MiB), {little}" in report


def test_many_small_reads_of_contiguous_data_decide_nothing_about_large_ones(
    tmp_path: Path,
) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["n0"] = np.arange(700 * 900, dtype="<f4").reshape(700, 900)
    row = "R 0 s S 1 900 0 S 2 700 900 1 H 0 {} 0 1 1 1 1 1 900 0"
    rows = [row.format(n) for n in range(30)]
    # The first 600 rows: 2.1 MiB of 2.4.
    most = "R 0 s S 1 540000 0 S 2 700 900 1 H 0 0 0 1 1 600 1 1 900 0"
    calls = ["F 0 r d x.h5", "D 0 0 n0", *rows, most, most, rows[0], most]
    report = both([preloaded.program()], tmp_path, "\n".join(calls))
    assert re.search(r"3 reads by chunkwise \(6\.2 MiB\), 31 by libhdf5", report), report


def test_a_few_tiny_chunks_are_left_to_libhdf5(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        values = np.arange(9000, dtype="<f4").reshape(100, 90)
        file.create_dataset("n0", data=values, chunks=(1, 90), compression=1)
    rows = "R 0 s S 1 {} 0 S 2 100 90 1 H 0 3 0 1 1 {} 1 1 90 0"
    few = [rows.format(90, 1), rows.format(180, 2)] * 3
    calls = "\n".join(["F 0 r d x.h5", "D 0 0 n0", *few, rows.format(270, 3), "R 0 s A A 0"])
    report = both([preloaded.program()], tmp_path, calls)
    assert "2 reads by chunkwise (0.0 MiB), 6 by libhdf5: a few chunks of at most 1" in report
    report = both([preloaded.program()], tmp_path, calls, CHUNKWISE_READ_LEAST="1")
    assert "8 reads by chunkwise" in report


def test_the_first_reads_of_two_threads(tmp_path: Path) -> None:
    """Whoever comes second uses what the first has found, and closes all of it."""
    for name, begin in (("a.h5", 0), ("b.h5", 7)):
        with h5py.File(tmp_path / name, "w") as file:
            for dataset, at in (("x", begin), ("y", begin + 40000)):
                values = np.arange(at, at + 40000, dtype="<i4")
                file.create_dataset(dataset, data=values, chunks=(5000,), compression=1)
    program = made("first", tmp_path)
    under = dict(os.environ, **environment.variables())
    for number in range(150):
        done = ran([program, "a.h5", "b.h5"], cwd=tmp_path, env=under, timeout=60)  # fmt: skip
        if done.returncode == 77:
            pytest.skip("this libhdf5 is not made for threads")
        assert done.returncode == 0, done.stderr
        expected = "a.h5: 0 0 1 1\n0 stay open\nb.h5: 0 0 1 1\n0 stay open\n"
        assert done.stdout == expected, f"run {number}"


def test_descriptors_that_a_program_closes(tmp_path: Path) -> None:
    """Ours are not used under another file's number, and that file stays open."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        values = np.arange(200 * 300, dtype="<f4").reshape(200, 300)
        file.create_dataset("x", data=values, chunks=(4, 100), compression=1)
    (tmp_path / "other").write_text("no HDF5")
    words: list[str | Path] = [made("daemon", tmp_path), "x.h5", "x", "other"]
    assert "reads by chunkwise" in both(words, tmp_path, CHUNKWISE_CACHE_NBYTES="1")


def test_threads(tmp_path: Path) -> None:
    """None waits for ever, and each finds what it finds without the engine."""
    rng = np.random.default_rng(5)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, dtype in (("a", "<f4"), ("b", ">i4"), ("c", "<f8")):
            values = rng.integers(0, 900, (300, 400)).astype(dtype)
            file.create_dataset(name, data=values, chunks=(16, 100), compression=1)
    words: list[str | Path] = [made("threads", tmp_path), "x.h5", "out.h5", "6", "20"]
    words += ["a", "b", "c"]
    assert "reads by chunkwise" in both(words, tmp_path, CHUNKWISE_CACHE_NBYTES="300000")
    with h5py.File(tmp_path / "out.h5") as file:
        expected = np.arange(64 * 4096) % 1013
        assert all((file[name][...].ravel() == expected).all() for name in "abcd")


@pytest.fixture(scope="module")
def seldom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that does what few do, beside a file for it."""
    folder = tmp_path_factory.mktemp("seldom")
    write_for_seldom(folder / "x.h5")
    return made("seldom", folder)


@pytest.mark.parametrize("way", ["handlers", "closes", "arithmetic", "traps"])
def test_what_few_programs_do(way: str, seldom: Path, tmp_path: Path) -> None:
    """Error handlers of HDF5 1.6, files closed by reference, another arithmetic."""
    report = both([seldom, way, seldom.with_name("x.h5")], tmp_path)
    assert "by chunkwise" in report
    told = "computes in an arithmetic of its own" in report
    assert told == (way in ("arithmetic", "traps")), report


def test_reads_within_callbacks(tmp_path: Path) -> None:
    """HDF5 holds its lock in callbacks: nothing that another thread waits for is waited for."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name in "abc":
            file.create_dataset(name, data=np.arange(20000.0), chunks=(2000,), compression=1)
    both([made("callbacks", tmp_path), "x.h5", "60"], tmp_path)


def test_an_error_handler_that_throws(tmp_path: Path) -> None:
    require_tool("g++")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=np.arange(20000.0), chunks=(2000,), compression=1)
    done = ran(
        [require_tool("h5cc"), "-shlib", "-o", "throws", HERE / "throws.cpp"],
        cwd=tmp_path,
        env=dict(os.environ, HDF5_CC="g++", HDF5_CLINKER="g++"),
    )
    assert done.returncode == 0, done.stderr
    under = dict(os.environ, **environment.variables())
    for variables in (dict(os.environ), under):
        done = ran(["./throws", "x.h5"], cwd=tmp_path, env=variables)
        assert (done.stdout, done.returncode) == ("left\ncaught an error\n", 0), done.stderr
