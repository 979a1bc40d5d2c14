"""Which filter does libhdf5 lack, is it here after all, and who brings it?

Names and numbers: HDFGroup/hdf5_plugins, docs/RegisteredFilterPlugins.md; below 256, H5Zpublic.h.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from h5py import h5p, h5z

from chunkwise.names import printable

REGISTERED: Final[dict[int, str]] = {
    1: "deflate (gzip)",
    2: "shuffle",
    3: "fletcher32",
    4: "szip",
    5: "nbit",
    6: "scaleoffset",
    257: "hzip",
    258: "fpzip",
    305: "LZO",
    307: "bzip2",
    32000: "LZF",
    32001: "Blosc",
    32002: "MAFISC",
    32003: "Snappy",
    32004: "LZ4",
    32005: "APAX",
    32006: "CBF",
    32007: "JPEG-XR",
    32008: "bitshuffle",
    32009: "SPDP",
    32010: "LPC-Rice",
    32011: "CCSDS-123",
    32012: "JPEG-LS",
    32013: "ZFP",
    32014: "fpzip",
    32015: "zstd",
    32016: "B3D",
    32017: "SZ",
    32018: "FCIDECOMP",
    32019: "JPEG",
    32020: "VBZ",
    32021: "FAPEC",
    32022: "BitGroom",
    32023: "Granular BitRound",
    32024: "SZ3",
    32025: "Delta-Rice",
    32026: "Blosc2",
    32027: "FLAC",
    32028: "SPERR",
    32029: "TERSE/PROLIX",
    32030: "FFMPEG",
    32031: "JPEG 2000",
    32032: "BitRound",
    # Not in the list as of June 2026; the number is hdf5plugin's.
    32033: "HTJ2K",
}
# What hdf5plugin 7.1 carries, by the stem of the plugin's file (libh5bshuf.so).
IN_HDF5PLUGIN: Final[dict[int, str]] = {
    307: "bzip2",
    32001: "blosc",
    32004: "lz4",
    32008: "bshuf",
    32013: "zfp",
    32015: "zstd",
    32017: "sz",
    32018: "fcidecomp",
    32024: "sz3",
    32026: "blosc2",
    32028: "sperr",
    32033: "htj2k",
}


@dataclass(frozen=True, slots=True)
class Package:
    """A Python package other than hdf5plugin that gives h5py's libhdf5 a filter."""

    name: str  # On PyPI
    module: str  # What is imported


PACKAGES: Final[dict[int, Package]] = {
    32020: Package("vbz-h5py-plugin", "vbz_h5py_plugin"),
    32030: Package("h5ffmpeg", "h5ffmpeg"),
}
# What The HDF Group's own packages of plugins carry beyond those.
_IN_HDF_GROUP: Final = frozenset({32019, 32022, 32023})
RESERVED: Final = range(1, 256)
_FOR_TESTING: Final = range(256, 512)
_PRIVATE: Final = range(32768, 65536)
# The value of HDF5_PLUGIN_PRELOAD that switches loading off (H5PL_NO_PLUGIN).
_NO_PLUGIN: Final = "::"

Hdf5plugin = Literal["absent", "without it", "not imported", "imported"]


def is_available(code: int) -> bool:
    """Return whether libhdf5 has a filter, once the packages that bring it are imported."""
    if h5z.filter_avail(code):
        return True
    modules = ["hdf5plugin"] if code in IN_HDF5PLUGIN else []
    modules += [PACKAGES[code].module] if code in PACKAGES else []
    for module in modules:
        with contextlib.suppress(ImportError, OSError, RuntimeError):
            importlib.import_module(module)
    return bool(h5z.filter_avail(code))


def bring_filters(properties: h5p.PropDCID) -> bool:
    """Import what brings a dataset's missing filters; return whether that helped."""
    codes = [properties.get_filter(i)[0] for i in range(properties.get_nfilters())]
    missing = [code for code in codes if not h5z.filter_avail(code)]
    return bool(missing) and all(map(is_available, missing))


def missing_filter(properties: h5p.PropDCID) -> str | None:
    """Make a dataset's filters available, and say which one is not, and who brings it; or None."""
    for i in range(properties.get_nfilters()):
        code, _, _, name = properties.get_filter(i)
        if not is_available(code):
            return lacking(code, name.decode("utf-8", "replace"))
    return None


def named(code: int) -> str:
    """Name a filter."""
    return REGISTERED.get(code, f"filter {code}")


def lacking(code: int, stored: str = "") -> str:
    """Say that a filter is not here, and who brings it; `stored` is what the file calls it."""
    known = REGISTERED.get(code) or printable(stored)
    title = f"filter {code} ({known})" if known else f"filter {code}"
    return f"{title} is not here: {_who(code)}"


def _who(code: int) -> str:
    package = find_hdf5plugin(code)
    if code not in RESERVED and not plugins_load():
        return "HDF5_PLUGIN_PRELOAD=:: in the environment forbids plugins; unset it"
    if code in IN_HDF5PLUGIN:
        if package == "absent":
            return "pip install hdf5plugin"
        if package == "without it":
            return "pip install --upgrade hdf5plugin"
        if package == "imported":
            return (
                "the plugin of hdf5plugin does not load in this libhdf5; "
                "pip install --upgrade --force-reinstall hdf5plugin"
            )
        return "import hdf5plugin before the data is read"
    if code in PACKAGES:
        return f"pip install {PACKAGES[code].name}"
    if code in RESERVED:
        return "this libhdf5 was built without it; read the file with another build of HDF5"
    return f"{rare(code)}; a folder with its plugin goes into HDF5_PLUGIN_PATH"


def rare(code: int) -> str:
    """Say who brings a filter that no package does that pip installs for h5py."""
    if code == 32000:
        return "LZF comes with h5py alone: read the file with h5py"
    if code == 305:
        return (
            "LZO comes with PyTables, which reads the file with an HDF5 of its own "
            "(pip install tables)"
        )
    if code in _IN_HDF_GROUP:
        return "The HDF Group's plugin packages (github.com/HDFGroup/hdf5_plugins) bring it"
    if code in REGISTERED:
        return "its plugin is in none of the usual packages: ask who wrote the file"
    if code in _FOR_TESTING:
        return "its number is one for tests: ask who wrote the file for its plugin"
    if code in _PRIVATE:
        return "its number is one for use within a house: ask who wrote the file for its plugin"
    return "its number is not registered: ask who wrote the file for its plugin"


def plugins_load() -> bool:
    """Return whether the environment lets libhdf5 load plugins."""
    return os.environ.get("HDF5_PLUGIN_PRELOAD") != _NO_PLUGIN


def find_hdf5plugin(code: int) -> Hdf5plugin:
    """Return whether hdf5plugin is installed, brings a filter, and is imported."""
    stem = IN_HDF5PLUGIN.get(code)
    try:
        spec = importlib.util.find_spec("hdf5plugin")
    except (ImportError, ValueError):  # a broken or half-imported package
        spec = None
    if spec is None:
        return "absent"
    places = spec.submodule_search_locations or ()
    if stem is None or not any(
        plugin.stem == f"libh5{stem}"
        for place in places
        for plugin in Path(place).glob("*/libh5*")
    ):
        return "without it"
    return "imported" if "hdf5plugin" in sys.modules else "not imported"
