"""Which filter does libhdf5 lack, where did it look for it, and what brings it?

hdf5plugin is looked for and never imported: that would change what libhdf5 can read.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Set
from dataclasses import dataclass
from typing import Final

from h5py import h5pl

from chunkwise.files import filters
from chunkwise.names import HDF5_ERRORS, printable
from chunkwise.remedy.records import BringFilter
from chunkwise.words import counted

# Plugins that netCDF-C builds and installs where their libraries are found.
_IN_NETCDF_C: Final = frozenset({307, 32001, 32015})
# Filters of libhdf5 itself that a build may lack.
_BUILD_NEEDS: Final[dict[int, str]] = {1: "zlib", 4: "libaec or szip"}
# A folder such as /usr/lib may hold thousands of files.
_FILES_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class PluginFolder:
    """One folder in which libhdf5 looks for plugins."""

    path: str  # As libhdf5 has it (H5PLget), safe to print
    exists: bool  # Whether there is such a folder that can be listed
    count: int  # How many files are in it
    files: tuple[str, ...]  # The names of at most 20 of them, sorted, safe to print

    def __str__(self) -> str:
        if not self.exists:
            return f"{self.path} (no such folder)"
        return f"{self.path} ({', '.join(self.files) or 'empty'})"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why libhdf5 cannot decode a filter, and what helps."""

    filter_id: int  # HDF5's number of the filter
    name: str | None  # Its registered name; None for a number that nobody registered
    folders: tuple[PluginFolder, ...]  # Where libhdf5 looks for plugins
    loading: bool  # False where ``HDF5_PLUGIN_PRELOAD=::`` forbids plugins
    # Whether this environment's hdf5plugin brings it.
    hdf5plugin: filters.Hdf5plugin
    reason: str  # Why it is lacking, as a part of a sentence
    remedies: tuple[BringFilter, ...]  # The likeliest first; empty if nobody is known to bring it

    @property
    def title(self) -> str:
        """The filter in words: ``bitshuffle (number 32008)``, ``number 40000``."""
        return (
            f"{self.name} (number {self.filter_id})" if self.name else f"number {self.filter_id}"
        )

    @property
    def searched(self) -> str:
        """Where libhdf5 looked, as a sentence; empty for a filter of its own."""
        if self.filter_id in filters.RESERVED or not self.loading:
            return ""
        if not self.folders:
            return "libhdf5 has no folder to look for plugins."
        found = (
            counted(folder.count, "file") if folder.exists else "no such folder"
            for folder in self.folders
        )
        looked = (f"{one.path} ({what})" for one, what in zip(self.folders, found, strict=True))
        return f"libhdf5 looked in {', '.join(looked)}."


def diagnose(filter_id: int) -> Diagnosis:
    """Find out why a filter is lacking and what brings it."""
    package = filters.find_hdf5plugin(filter_id)
    loading = filters.plugins_load()
    reason, remedies = _explain(filter_id, package, loading)
    return Diagnosis(
        filter_id=filter_id,
        name=filters.REGISTERED.get(filter_id),
        folders=plugin_folders(),
        loading=loading,
        hdf5plugin=package,
        reason=reason,
        remedies=remedies,
    )


def means_of(packages: Set[filters.Hdf5plugin], *, natively: bool) -> list[str]:
    """Name what is installed and reads data whose filters libhdf5 lacks."""
    means = ["chunkwise.open"] if natively else []
    return means + (["h5py after 'import hdf5plugin'"] if packages == {"not imported"} else [])


def plugin_folders() -> tuple[PluginFolder, ...]:
    """List where libhdf5 looks for plugins (H5PLsize, H5PLget), in its order."""
    # ``HDF5_PLUGIN_PATH`` replaces the library's own folders, and is read once.
    try:
        paths = [h5pl.get(i) for i in range(h5pl.size())]
    except HDF5_ERRORS:
        return ()
    return tuple(map(_folder, paths))


def _folder(path: bytes) -> PluginFolder:
    shown = printable(os.fsdecode(path))
    try:
        with os.scandir(path) as entries:
            names = sorted(printable(os.fsdecode(entry.name)) for entry in entries)
    except OSError:
        return PluginFolder(shown, False, 0, ())
    return PluginFolder(shown, True, len(names), tuple(names[:_FILES_SHOWN]))


def _explain(
    filter_id: int, package: filters.Hdf5plugin, loading: bool
) -> tuple[str, tuple[BringFilter, ...]]:
    """Give the reason why a filter is lacking, and what helps."""
    if filter_id in filters.RESERVED:
        return _explain_builtin(filter_id)
    by_netcdf = filter_id in _IN_NETCDF_C and shutil.which("nc-config") is not None
    netcdf = (BringFilter("netcdf"),) if by_netcdf else ()
    if not loading:
        # hdf5plugin registers its filters itself, and is not held up by that.
        imported = (BringFilter("import"),) if package == "not imported" else ()
        return (
            "HDF5_PLUGIN_PRELOAD=:: in the environment forbids plugins",
            (BringFilter("allow"), *imported),
        )
    if package == "not imported":
        return (
            "hdf5plugin, which brings it, is installed and not imported",
            (BringFilter("import"), BringFilter("tools"), *netcdf),
        )
    if package == "imported":
        return (
            "hdf5plugin is imported and its plugin does not load in this libhdf5",
            (BringFilter("again"), *netcdf),
        )
    if filter_id in filters.IN_HDF5PLUGIN:
        old = "the hdf5plugin installed here is too old to bring it"
        reason = (
            old if package == "without it" else "hdf5plugin, which brings it, is not installed"
        )
        found = (BringFilter("install"), BringFilter("import"), BringFilter("tools"))
        return reason, (*found, *netcdf)
    if filter_id in filters.PACKAGES:
        other = filters.PACKAGES[filter_id]
        helps = (BringFilter("package", other.name), BringFilter("import", other.module))
        return f"the package {other.name} brings it", helps
    return filters.rare(filter_id), ()


def _explain_builtin(filter_id: int) -> tuple[str, tuple[BringFilter, ...]]:
    needs = _BUILD_NEEDS.get(filter_id)
    if needs:
        return (f"this libhdf5 was built without {needs}", (BringFilter("rebuild"),))
    if filter_id in filters.REGISTERED:
        return "this libhdf5 was built without it", ()
    return "its number is reserved for libhdf5 itself: a newer one is needed", ()
