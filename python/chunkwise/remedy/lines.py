"""Which lines help by themselves, whatever else is wrong with a file?"""

from __future__ import annotations

from pathlib import PurePath
from typing import Final, Literal

from chunkwise.names import shell_word
from chunkwise.remedy.fix import Fix, OfCopy
from chunkwise.remedy.records import Copy
from chunkwise.remedy.tools import beside, python_path, shell_file

_BRING: Final = {
    "allow": "unset HDF5_PLUGIN_PRELOAD",
    "install": "pip install --upgrade hdf5plugin  # or: conda install -c conda-forge hdf5plugin",
    "again": "pip install --upgrade --force-reinstall hdf5plugin",
    "tools": "# for h5dump, h5repack and other programs started from the same shell:\n"
    "export HDF5_PLUGIN_PATH="
    "\"$(python -c 'import hdf5plugin; print(hdf5plugin.PLUGIN_PATH)')\"",
    "netcdf": 'export HDF5_PLUGIN_PATH="$(nc-config --plugindir)"',
    "rebuild": "pip install --force-reinstall --only-binary h5py h5py",
}


def read_paged(file: str, buffer_nbytes: int) -> tuple[Fix, ...]:
    """Read the copy of a file by pages."""
    copy = beside(file, "repacked")
    line = OfCopy("h5py", f"h5py.File({copy!r}, page_buf_size={buffer_nbytes})")
    return (line,) if file.isprintable() else ()


def gather_metadata(nbytes: int) -> Fix:
    """Write a file's metadata in blocks of this size."""
    call = f"h5py.File(name, 'w', meta_block_size={nbytes})"
    return Fix("h5py", f"# in the program that writes it:\n{call}", writing=True)


def follow_writer(file: str) -> Fix:
    """Read a file along with its writer (SWMR)."""
    return Fix("h5py", f"file = h5py.File({file!r}, 'r', swmr=True)")


def saved_unclosed(file: str) -> tuple[Copy, Fix]:
    """Copy a file whose writer was killed, so that the copy opens; the file itself stays."""
    # ``h5clear -s`` alone would cut it where its superblock ends it, which a SWMR writer does not
    # keep up to date; ``--increment=0`` first puts that end where the file ends.
    copy = shell_file(beside(file, "cleared"))
    cleared = f"h5clear -s --increment=0 {copy}"
    return Copy(file, by_us=True), Fix("h5clear", f"cp {shell_file(file)} {copy} && {cleared}")


def examine(file: str, *, salvage: bool = False) -> Fix:
    """Say what of a file is damaged, element by element, and perhaps save what is left."""
    command = f"chunkwise verify {shell_file(file)}"
    if salvage:
        command += f" --salvage {shell_file(beside(file, 'salvaged'))}"
    return Fix("chunkwise", command)


def inspect_others(*files: str) -> Fix:
    """Inspect other files."""
    return Fix("chunkwise", f"chunkwise inspect {' '.join(map(shell_file, files))}")


def remove_link(file: str, path: str) -> Fix:
    """Remove a link that leads nowhere."""
    opened = f"with h5py.File({file!r}, 'r+') as file:"
    return Fix("h5py", f"{opened}\n    del file[{python_path(path)}]")


def put_beside(place: str) -> Fix:
    """Copy a missing file to this place."""
    return Fix("shell", f"# copy it, under this name, to:\nls {shell_file(place)}")


def look_beside(variable: str) -> Fix:
    """Say to HDF5 that files lie beside the one that leads to them."""
    return Fix("shell", f"export {variable}='${{ORIGIN}}'")


def look_for(variable: str, file: str) -> tuple[Fix, ...]:
    """Look for a file by its name, and say to HDF5 in which folder names begin."""
    name = PurePath(file)
    # HDF5 looks for the name's own folders below the given one.
    inner = () if name.is_absolute() else name.parts[:-1]
    if ".." in inner:
        return ()
    wanted = name.name if name.is_absolute() else str(name)
    found = f"find ~ -path {shell_word('*/' + wanted)} -print -quit"
    folder = f'"$(dirname "$({found})")"'
    for _ in inner:
        folder = f'"$(dirname {folder})"'
    return (Fix("shell", f"export {variable}={folder}"),)


def bring_filter(
    # ``allow``: plugins are forbidden; ``install``: hdf5plugin has it; ``again``: hdf5plugin is
    # broken; ``tools``: programs of the same shell; ``netcdf``: netCDF-C has it; ``rebuild``:
    # h5py's wheel has it.
    how: Literal["allow", "install", "again", "tools", "netcdf", "rebuild"],
) -> Fix:
    """Get a filter that libhdf5 lacks."""
    return Fix("shell", _BRING[how])


def install(package: str) -> Fix:
    """Get a package that brings a filter."""
    return Fix("shell", f"pip install {package}")


def import_filter(module: str = "hdf5plugin") -> Fix:
    """Let a package register the filter that libhdf5 lacks."""
    return Fix("h5py", f"import {module}  # before the data is read")
