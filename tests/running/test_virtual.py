"""Virtual datasets that a program reads with the engine under its HDF5."""

from __future__ import annotations

import fcntl
import random
import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.running import environment
from tests.read.test_virtual import endless, master, numbered, percent, rows, scattered
from tests.running.test_programs import ran, reads
from tests.support import mapping
from tests.support.mapping import make_random

if not environment.LIBRARY.is_file():
    pytest.skip("libchunkwise_preload.so is not built (`make install`)", allow_module_level=True)

BEGIN = """
import hashlib, os, sys
import h5py, numpy as np
from h5py import h5d, h5p

def opened(file, gap=0, view=h5d.VDS_LAST_AVAILABLE):
    dapl = h5p.create(h5p.DATASET_ACCESS)
    dapl.set_virtual_printf_gap(gap)
    dapl.set_virtual_view(view)
    return h5py.Dataset(h5d.open(file.id, b"v", dapl))

def show(d, times=1):
    "Print what several reads give; the first small reads of a dataset are HDF5's."
    for _ in range(times):
        for index in ((), (slice(None, None, 2),), (slice(1, None),), (Ellipsis, slice(1, 3))):
            try:
                values = d[index]
            except Exception as error:
                print(type(error), error)
            else:
                print(values.shape, values.dtype, hashlib.sha1(values.tobytes()).hexdigest())
        print(hashlib.sha1(d.astype("f8")[...].tobytes()).hexdigest())
"""


def both(script: str, folder: Path, *words: str | Path) -> str:
    """Run a script with and without the engine, which says the same; what the engine reports."""
    path, report = folder / "script.py", folder / "report"
    path.write_text(BEGIN + script)
    plain, under = (
        ran(sys.executable, path, *words, folder=folder, report=one) for one in (None, report)
    )
    assert (plain.stdout, plain.stderr) == (under.stdout, under.stderr)
    assert plain.returncode == under.returncode == 0, plain.stderr
    return report.read_text()


@pytest.mark.slow
def test_any_mappings_give_what_libhdf5_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(60):
        monkeypatch.setattr(mapping, "TYPES", ["<i4"] if seed % 6 else ["<i4", ">i2", "<f8"])
        folder = tmp_path / str(seed)
        folder.mkdir()
        make_random(folder, seed)
    report = both(
        "for seed in range(60):\n"
        "    with h5py.File(f'{seed}/virtual.h5') as file:\n"
        "        show(file['v'])\n",
        tmp_path,
    )
    assert reads(tmp_path / "report") > 50, report
    assert "has another type" in report


@pytest.mark.slow
def test_damaged_mappings_give_what_libhdf5_gives(tmp_path: Path) -> None:
    rng = random.Random(5)
    for name in every_kind(tmp_path):
        content = (tmp_path / f"{name}.h5").read_bytes()
        for number in range(25):
            damaged = bytearray(content)
            at = rng.randrange(len(content))
            damaged[at] = rng.choice([0, 1, 0x7F, 0xFF, damaged[at] ^ 1, rng.randrange(256)])
            (tmp_path / f"damaged-{number}-{name}.h5").write_bytes(damaged)
    # libhdf5 alone crashes on some, and asks for any memory for others.
    both(
        """
import glob, resource
for path in sorted(glob.glob("damaged-*")):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        try:
            with h5py.File(path) as file:
                values = file["v"][...] if file["v"].size < 1e6 else np.zeros(0)
            said = f"{values.shape} {hashlib.sha1(values.tobytes()).hexdigest()}"
        except Exception as error:
            said = "error"
        print(path, said, flush=True)
        os._exit(0)
    print(path, os.waitpid(child, 0)[1])
with h5py.File("v.h5") as file:
    print(file["v"][...].sum())
""",
        tmp_path,
    )


def every_kind(folder: Path) -> list[str]:
    """Files with virtual datasets that the engine reads."""
    rows(folder)
    numbered(folder, [0, 1, 3, 6])
    percent(folder)
    endless(folder)
    scattered(folder)

    nested = h5py.VirtualLayout((2, 4, 30), "i4")
    for number in range(2):
        nested[number] = h5py.VirtualSource("v.h5", "v", (4, 30))
    master(folder / "nested.h5", nested)

    # In the same file, behind a group and a link; and beside it nothing.
    layout = h5py.VirtualLayout((3, 5), "f8")
    layout[0] = h5py.VirtualSource(".", "group/link", (5,))
    layout[1] = h5py.VirtualSource(".", "missing", (5,))
    layout[2] = h5py.VirtualSource("no-such-file.h5", "x", (5,))
    with h5py.File(master(folder / "same.h5", layout, fillvalue=3.5), "a") as file:
        file.create_dataset("group/x", data=np.arange(5.0), chunks=(2,))
        file["group/link"] = h5py.SoftLink("/group/x")
    return ["v", "p", "percent", "endless", "scattered", "nested", "same"]


def test_every_kind_of_mapping(tmp_path: Path) -> None:
    names = every_kind(tmp_path)
    report = both(
        f"for name in {names}:\n"
        "    for gap in 0, 1, 3:\n"
        "        with h5py.File(f'{name}.h5') as file:\n"
        "            show(opened(file, gap))\n",
        tmp_path,
    )
    for name in names:
        line = next(
            line for line in report.splitlines() if line.strip().startswith(f"{name}.h5: ")
        )
        assert re.search(r" \d+ reads? by chunkwise", line), report
        assert "libhdf5" not in line, report


def test_what_comes_later_is_seen(tmp_path: Path) -> None:
    """Files that were missing, or change; what the program writes; where it goes."""
    rows(tmp_path)
    (tmp_path / "1.h5").rename(tmp_path / "away.h5")
    (tmp_path / "elsewhere").mkdir()
    report = both(
        "v = h5py.File('v.h5')['v']\n"
        "show(v)\n"
        "os.rename('away.h5', '1.h5')\n"
        "show(v)\n"
        "os.rename('1.h5', 'away.h5')\n"
        "del v\n"
        "v = h5py.File('v.h5')['v']\n"
        "show(v)\n"
        "del v\n"
        "with h5py.File('2.h5', 'r+') as written:\n"
        "    v = h5py.File('v.h5')['v']\n"
        "    show(v)\n"
        "    written['x'][:8] -= 7\n"
        "    show(v)\n"
        "    del v\n"
        "with h5py.File('unrelated.h5', 'w') as file:\n"
        "    v = h5py.File('v.h5')['v']\n"
        "    show(v)\n"
        "    os.chdir('elsewhere')\n"
        "    show(v)\n"
        "    del v\n"
        "os.chdir('..')\n"
        "with h5py.File('2.h5', 'r+') as written:\n"
        "    written['x'][:8] += 7\n",
        tmp_path,
    )
    assert reads(tmp_path / "report") > 10, report
    assert re.search("libhdf5: (a source that was missing|a file that it leads to)", report)


def test_what_is_left_to_libhdf5(tmp_path: Path) -> None:
    rows(tmp_path)
    layout = h5py.VirtualLayout((30,), "f8")
    layout[:] = h5py.VirtualSource("0.h5", "x", (30,))
    master(tmp_path / "types.h5", layout)
    report = both(
        "with h5py.File('v.h5') as file:\n"
        "    show(opened(file, view=h5d.VDS_FIRST_MISSING))\n"
        "with h5py.File('types.h5') as file:\n"
        "    show(file['v'])\n",
        tmp_path,
    )
    (tmp_path / "report").unlink()
    # As a writer does, whose file HDF5 takes for a missing one, or refuses.
    with (tmp_path / "0.h5").open("rb+") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        report += both(
            "try:\n"
            "    print(h5py.File('v.h5')['v'][...])\n"
            "except OSError as error:\n"
            "    print(error)\n",
            tmp_path,
        )
    assert "is locked by a writer" in report
    assert "it is viewed up to the first missing source" in report
    assert "has another type" in report


def test_sources_whose_filter_the_program_has_not(tmp_path: Path) -> None:
    """A detector's master file, and frames in bitshuffle-LZ4."""
    frames = np.random.default_rng(0).integers(0, 50, (6, 64, 80), "u2")
    layout = h5py.VirtualLayout(frames.shape, "u2")
    for number in range(2):
        part = slice(3 * number, 3 * number + 3)
        name = f"data_{number}.h5"
        with chunkwise.open(tmp_path / name, "w") as file:
            file.create_dataset(
                "x", data=frames[part], chunks=(1, 64, 80), filters="bitshuffle:lz4"
            )
        layout[part] = h5py.VirtualSource(name, "x", (3, 64, 80))
    master(tmp_path / "v.h5", layout)
    script = tmp_path / "sums.py"
    script.write_text(
        "import h5py, sys\n"
        "v = h5py.File(sys.argv[1])['v']\n"
        "print(v[...].tobytes() == open('frames', 'rb').read(), v[4, 5:9].sum())\n"
    )
    (tmp_path / "frames").write_bytes(frames.tobytes())

    def run(report: Path | None) -> subprocess.CompletedProcess[str]:
        return ran(sys.executable, script, tmp_path / "v.h5", folder=tmp_path, report=report)

    assert run(None).returncode != 0
    assert run(tmp_path / "report").stdout == f"True {frames[4, 5:9].sum()}\n"
