"""Does the doctor name a missing filter, where it was looked for, and what brings it?"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chunkwise.files.filters import IN_HDF5PLUGIN, REGISTERED
from chunkwise.grammar.codecs import CODECS_BY_ID
from chunkwise.inspection.doctor import diagnose
from tests.support.processes import ran
from tests.support.tools import require_tool

# Importing it would register its filters in the process of the tests.
needs_hdf5plugin = pytest.mark.skipif(
    importlib.util.find_spec("hdf5plugin") is None, reason="hdf5plugin is not installed"
)

DIAGNOSE = """
import json, sys
from chunkwise.inspection.doctor import diagnose
from chunkwise.remedy.spelling import spelled
if {register}:
    import hdf5plugin
found = diagnose({filter_id})
print(json.dumps({{
    "state": found.hdf5plugin, "loading": found.loading, "reason": found.reason,
    "folders": list(map(str, found.folders)), "searched": found.searched,
    "fixes": [[fix.tool, fix.text] for fix in spelled(found.remedies)],
    "imported": "hdf5plugin" in sys.modules,
}}))
"""


def python(code: str, **environment: str) -> str:
    """What Python prints in an environment of its own, since libhdf5 reads its once."""
    clean = {name: value for name, value in os.environ.items() if "HDF5_PLUGIN" not in name}
    return ran([sys.executable, "-c", code], env=clean | environment, check=True).stdout


def diagnosed(filter_id: int, register: bool = False, **environment: str) -> dict[str, Any]:
    code = DIAGNOSE.format(filter_id=filter_id, register=register)
    found: dict[str, Any] = json.loads(python(code, **environment))
    return found


def bitshuffled(path: Path) -> Path:
    """A file that needs a plugin, written where it is there."""
    python(
        "import h5py, hdf5plugin, numpy as np\n"
        f"with h5py.File({str(path)!r}, 'w') as file:\n"
        "    file.create_dataset('x', data=np.arange(64, dtype='i4'), chunks=(64,),"
        " **hdf5plugin.Bitshuffle())\n"
    )
    return path


@needs_hdf5plugin
def test_installed_and_not_imported() -> None:
    found = diagnosed(32008)
    assert found["state"] == "not imported"
    assert not found["imported"]
    assert "installed and not imported" in found["reason"]
    assert found["fixes"][0] == ["h5py", "import hdf5plugin  # before the data is read"]


@needs_hdf5plugin
def test_the_python_line_works(tmp_path: Path) -> None:
    path = bitshuffled(tmp_path / "a.h5")
    read = f"import h5py\nprint(h5py.File({str(path)!r})['x'][63])"
    with pytest.raises(subprocess.CalledProcessError):
        python(read)
    line = diagnosed(32008)["fixes"][0][1]
    assert python(f"{line}\n{read}") == "63\n"


@needs_hdf5plugin
def test_the_shell_line_works(tmp_path: Path) -> None:
    h5dump = require_tool("h5dump")
    path = bitshuffled(tmp_path / "a.h5")
    (line,) = [text for tool, text in diagnosed(32008)["fixes"] if tool == "shell"]
    # The line says python, of whichever environment is active.
    path_first = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    printed = ran(
        ["sh", "-c", f"{line}\n{h5dump} -d /x -s 63 -c 1 {path}"], env=os.environ | path_first
    )
    assert "(63): 63" in printed.stdout, printed.stderr


@needs_hdf5plugin
def test_imported_and_still_missing() -> None:
    found = diagnosed(32008, register=True)
    assert found["state"] == "imported"
    assert found["fixes"] == [["shell", "pip install --upgrade --force-reinstall hdf5plugin"]]


def test_not_installed(tmp_path: Path) -> None:
    """An hdf5plugin that cannot be found, and one that is too old."""
    hide = (
        "import importlib.util\nimportlib.util.find_spec = lambda name: None\n" + DIAGNOSE
    ).format(filter_id=32015, register=False)
    found = json.loads(python(hide))
    assert found["state"] == "absent"
    assert found["reason"] == "hdf5plugin, which brings it, is not installed"
    assert found["fixes"][0][1].startswith("pip install --upgrade hdf5plugin")
    old = tmp_path / "hdf5plugin"
    (old / "plugins").mkdir(parents=True)
    (old / "__init__.py").touch()
    (old / "plugins" / "libh5lz4.so").touch()
    first = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    found = diagnosed(32015, PYTHONPATH=first)
    assert (found["state"], "too old" in found["reason"]) == ("without it", True)
    assert diagnosed(32004, PYTHONPATH=first)["state"] == "not imported"


def test_folders_are_listed(tmp_path: Path) -> None:
    full, empty = tmp_path / "full", tmp_path / "empty\n"
    full.mkdir()
    empty.mkdir()
    (full / "libh5b.so").touch()
    (full / "libh5a.so").touch()
    gone = tmp_path / "gone"
    found = diagnosed(32008, HDF5_PLUGIN_PATH=f"{full}:{empty}:{gone}")
    assert found["folders"] == [
        f"{full} (libh5a.so, libh5b.so)",
        f"{tmp_path}/empty\\n (empty)",
        f"{gone} (no such folder)",
    ]
    assert found["searched"] == (
        f"libhdf5 looked in {full} (2 files), {tmp_path}/empty\\n (0 files), "
        f"{gone} (no such folder)."
    )


def test_plugins_forbidden() -> None:
    found = diagnosed(32014, HDF5_PLUGIN_PRELOAD="::")
    assert not found["loading"]
    assert "HDF5_PLUGIN_PRELOAD" in found["reason"]
    assert found["fixes"][0] == ["shell", "unset HDF5_PLUGIN_PRELOAD"]


def test_netcdfs_own_folder(tmp_path: Path) -> None:
    """Offered where netCDF-C is installed, for the filters that it comes with."""
    program = tmp_path / "nc-config"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    line = ["shell", 'export HDF5_PLUGIN_PATH="$(nc-config --plugindir)"']
    assert line in diagnosed(32015, PATH=str(tmp_path))["fixes"]
    assert line not in diagnosed(32008, PATH=str(tmp_path))["fixes"]
    assert line not in diagnosed(32015, PATH="")["fixes"]


@pytest.mark.parametrize(
    ("filter_id", "title", "words"),
    [
        (4, "szip (number 4)", "built without libaec"),
        (1, "deflate (gzip) (number 1)", "built without zlib"),
        (6, "scaleoffset (number 6)", "built without it"),
        (99, "number 99", "a newer one is needed"),
        (305, "LZO (number 305)", "PyTables"),
        (400, "number 400", "for tests"),
        (32000, "LZF (number 32000)", "h5py"),
        (32022, "BitGroom (number 32022)", "HDF Group"),
        (32027, "FLAC (number 32027)", "ask who wrote the file"),
        (32123, "number 32123", "not registered"),
        (40000, "number 40000", "within a house"),
    ],
)
def test_filters_of_all_kinds(filter_id: int, title: str, words: str) -> None:
    found = diagnose(filter_id)
    assert found.title == title
    # No folder holds a plugin for what belongs to libhdf5 itself.
    assert bool(found.searched) is (filter_id > 255)
    assert words in found.reason


@needs_hdf5plugin
def test_names_agree() -> None:
    """The grammar's names, h5py's and hdf5plugin's are those of the table."""
    for filter_id, codec in CODECS_BY_ID.items():
        assert codec.name in REGISTERED[filter_id].lower()
    hdf5plugin = python(
        "import hdf5plugin, json\n"
        "print(json.dumps([value for name, value in vars(hdf5plugin).items()"
        " if name.endswith('_ID')]))"
    )
    assert set(json.loads(hdf5plugin)) == set(IN_HDF5PLUGIN)
