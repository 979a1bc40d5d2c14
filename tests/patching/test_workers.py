"""Are the processes that a patched program starts patched as well?"""

import json
import os
import shutil
import sys
import venv
from pathlib import Path

import h5py
import numpy as np
import pytest

import chunkwise
from tests.support.processes import ran

SHIPPED = Path(__file__).resolve().parents[2] / "python/chunkwise.data/purelib"
PROGRAM = """
import concurrent.futures, json, multiprocessing, subprocess, sys
import chunkwise

def work(path):
    import h5py
    with h5py.File(path) as f:
        value = f["d"][5, 3]
    stats = chunkwise.patch_stats()
    return [float(value), stats["patched"], stats["engine"], type(h5py.__loader__).__name__]

if __name__ == "__main__":
    how, path = sys.argv[1:]
    if how == "subprocess":
        command = [sys.executable, __file__, "here", path]
        done = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    elif how == "here":
        done = work(path)
    elif how == "executor":
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
            done = pool.submit(work, path).result()
    else:
        with multiprocessing.get_context(how).Pool(1) as pool:
            done = pool.apply(work, (path,))
    print(json.dumps(done))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program, a file, and an environment with the .pth file that is shipped."""
    folder = tmp_path_factory.mktemp("workers")
    (folder / "program.py").write_text(PROGRAM)
    with h5py.File(folder / "data.h5", "w") as f:
        f["d"] = np.arange(10000.0).reshape(100, 100)
    venv.create(folder / "venv", symlinks=True)
    (site,) = (folder / "venv/lib").glob("python*/site-packages")
    # All that is importable here is importable there, though .pth files below are not read.
    found = [str(Path(chunkwise.__file__).parent.parent), *filter(os.path.isdir, sys.path)]
    (site / "chunkwise.pth").write_text("\n".join(found))
    shutil.copy(SHIPPED / "chunkwise_patch.pth", site)
    return folder


def run(folder: Path, *arguments: str, patch: str | None = None) -> str:
    env = {name: value for name, value in os.environ.items() if name != "CHUNKWISE_PATCH"}
    done = ran(
        [str(folder / "venv/bin/python"), *arguments],
        cwd=folder,
        env=env if patch is None else env | {"CHUNKWISE_PATCH": patch},
        timeout=120,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout


@pytest.mark.parametrize("how", ["spawn", "forkserver", "fork", "executor", "subprocess"])
def test_workers_of_a_patched_program(folder: Path, how: str) -> None:
    out = run(folder, "-m", "chunkwise", "program.py", how, "data.h5")
    assert json.loads(out) == [503.0, True, 1, "SourceFileLoader"]


def test_the_variable_patches_a_program(folder: Path) -> None:
    out = run(folder, "program.py", "spawn", "data.h5", patch="1")
    assert json.loads(out) == [503.0, True, 1, "SourceFileLoader"]
    for off in (None, "", "0"):
        out = run(folder, "program.py", "spawn", "data.h5", patch=off)
        assert json.loads(out) == [503.0, False, 0, "SourceFileLoader"]


def test_what_is_not_imported_costs_nothing(folder: Path) -> None:
    loaded = "import sys; print([m for m in ('chunkwise', 'h5py', 'numpy') if m in sys.modules])"
    assert run(folder, "-c", loaded) == "[]\n"
    # chunkwise waits for h5py.
    assert run(folder, "-c", loaded, patch="1") == "['chunkwise']\n"
    asked = (
        "import importlib.util as u; assert u.find_spec('h5py') and u.find_spec('h5py').origin; "
    )
    asked += "assert u.find_spec('absent') is None; "
    patched = (
        asked + "import h5py, chunkwise; h5py.File('data.h5'); print(chunkwise.patch_stats())"
    )
    assert "'patched': True" in run(folder, "-c", patched, patch="1")
    assert "'patched': False" in run(folder, "-c", patched)


@pytest.mark.parametrize(
    "first",
    ["chunkwise.unpatch_h5py()", "chunkwise.open('data.h5')", "import chunkwise.handles.handle"],
)
def test_chunkwise_may_be_what_imports_h5py(folder: Path, first: str) -> None:
    program = f"import chunkwise\n{first}\nimport h5py\nbefore = h5py.File.__init__.__module__\n"
    program += "print(before, h5py.File('data.h5')['d'][5, 3], chunkwise.patch_stats())\n"
    program += "print(h5py.__spec__.loader, h5py.File.__init__.__module__)"
    said = run(folder, "-c", program, patch="1")
    assert "503.0 {'patched': True, 'engine': 1, 'h5py': {}," in said
    assert "SourceFileLoader" in said
    assert said.endswith(" h5py._hl.files\n")


def test_what_measures_h5py_leaves_it_as_it_is(folder: Path) -> None:
    measure = "from chunkwise._startup import measure_h5py_as_it_is as m; import os, sys; {}\n"
    measure += "import h5py, chunkwise; h5py.File('data.h5')['d'][...]\n"
    measure += "print(chunkwise.patch_stats(), os.environ.get('CHUNKWISE_PATCH'))"
    for order in ("m()", "import h5py; m()", "m(); m()"):
        said = run(folder, "-c", measure.format(order), patch="1")
        assert said.startswith("{'patched': False, 'engine': 0, 'h5py': {}, ")
        assert said.endswith("{'engine': 0, 'h5py': {}}} None\n")
    said = run(folder, "-m", "chunkwise", "inspect", "data.h5", patch="1")
    assert said.startswith("data.h5: ")
