"""Which lines say a remedy?  The words come here, at the very end.

Commands copy the file and are complete.  Lines that read open the file themselves.  Lines that
write belong where the program creates the dataset (`writers`).  Names are quoted for the language
of the line.  If a tool cannot express something (a path with a comma for h5repack), there is no
line for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

from chunkwise.model.readers import DEFAULT_W0
from chunkwise.names import printable, python_text, shell_word
from chunkwise.remedy import records, tools
from chunkwise.remedy.commands import commands
from chunkwise.remedy.fix import Fix, OfCopy
from chunkwise.remedy.records import Remedy, SetCache
from chunkwise.remedy.tools import absolute, beside, c_text, names, python_path, shell_file
from chunkwise.remedy.writers import by_xarray, c_cache, fortran_cache, writers

_MIB: Final = 1 << 20
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


def spelled(remedies: Iterable[Remedy]) -> tuple[Fix, ...]:
    """Give the lines of some remedies, those of the first one first."""
    found = [fix for remedy in remedies for fix in lines(remedy)]
    return tuple(sorted(found, key=lambda fix: not (fix.repacks and fix.rechunks)))


def lines(remedy: Remedy) -> Iterator[Fix]:
    """Give the lines of one remedy, those of the usual tool first."""
    return SAID[type(remedy)](remedy)


def _set_cache(remedy: SetCache) -> Iterator[Fix]:
    return _for_writing(remedy) if remedy.writing else _for_reading(remedy)


def _read_once(remedy: records.ReadOnce) -> Iterator[Fix]:
    opened = f"h5py.File({remedy.file!r})[{python_path(absolute(remedy.path))}]"
    yield Fix("h5py", f"array = {opened}[...]  # once; then index the array")


def _open_natively(remedy: records.OpenNatively) -> Iterator[Fix]:
    yield Fix("chunkwise", f"chunkwise.open({remedy.file!r})[{absolute(remedy.path)!r}]")


def _copy(remedy: records.Copy) -> Iterator[Fix]:
    yield from commands(remedy)
    yield from writers(remedy)


def _create(remedy: records.Create) -> Iterator[Fix]:
    return by_xarray(remedy.copy) if remedy.by_xarray else writers(remedy.copy)


def _for_writing(remedy: SetCache) -> Iterator[Fix]:
    place = f"/* for H5Dcreate2 or H5Dopen2 of {printable(remedy.path)}: */"
    yield Fix("C", f"{place}\n{_c_cache(remedy)}")
    of_fortran = ("! for h5dcreate_f or h5dopen_f, as dapl_id:", *_fortran_cache(remedy))
    yield Fix("Fortran", "\n".join(of_fortran))


def _for_reading(remedy: SetCache) -> Iterator[Fix]:
    path = absolute(remedy.path)
    found = [
        Fix(
            "h5py",
            f"file = h5py.File({remedy.file!r}, rdcc_nbytes={remedy.nbytes}, "
            f"rdcc_nslots={remedy.nslots})\n"
            f"dataset = file[{python_path(path)}]",
        )
    ]
    if "lzf" not in names(remedy.filters):
        # It comes with h5py, and others do not have it.
        if tools.is_in_netcdf(path):
            opened = f"netCDF4.Dataset({remedy.file!r})[{path!r}]"
            arguments = f"{remedy.nbytes}, {remedy.nslots}, {DEFAULT_W0}"
            found.append(
                Fix("netCDF4", f"variable = {opened}\nvariable.set_var_chunk_cache({arguments})")
            )
        found.append(Fix("C", _opened_in_c(remedy)))
        if path.isprintable() and path.isascii():
            found.append(Fix("Fortran", _opened_in_fortran(remedy)))
    yield from sorted(found, key=lambda fix: fix.tool != remedy.program)


# --- files, links, filters --------------------------------------------------------------


def _gather_metadata(remedy: records.GatherMetadata) -> Iterator[Fix]:
    call = f"h5py.File(name, 'w', meta_block_size={remedy.nbytes})"
    yield Fix("h5py", f"# in the program that writes it:\n{call}", writing=True)


def _read_paged(remedy: records.ReadPaged) -> Iterator[Fix]:
    if remedy.file.isprintable():
        copy = beside(remedy.file, "repacked")
        yield OfCopy("h5py", f"h5py.File({copy!r}, page_buf_size={remedy.buffer_nbytes})")


def _follow_writer(remedy: records.FollowWriter) -> Iterator[Fix]:
    yield Fix("h5py", f"file = h5py.File({remedy.file!r}, 'r', swmr=True)")


def _clear_copy(remedy: records.ClearCopy) -> Iterator[Fix]:
    # ``h5clear -s`` alone would cut it where its superblock ends it, which a SWMR writer does not
    # keep up to date; ``--increment=0`` first puts that end where the file ends.
    copy = shell_file(beside(remedy.file, "cleared"))
    cleared = f"h5clear -s --increment=0 {copy}"
    yield Fix("h5clear", f"cp {shell_file(remedy.file)} {copy} && {cleared}")


def _examine(remedy: records.Examine) -> Iterator[Fix]:
    command = f"chunkwise verify {shell_file(remedy.file)}"
    if remedy.salvage:
        command += f" --salvage {shell_file(beside(remedy.file, 'salvaged'))}"
    yield Fix("chunkwise", command)


def _inspect_others(remedy: records.InspectOthers) -> Iterator[Fix]:
    yield Fix("chunkwise", f"chunkwise inspect {' '.join(map(shell_file, remedy.files))}")


def _remove_link(remedy: records.RemoveLink) -> Iterator[Fix]:
    opened = f"with h5py.File({remedy.file!r}, 'r+') as file:"
    yield Fix("h5py", f"{opened}\n    del file[{python_path(remedy.path)}]")


def _put_beside(remedy: records.PutBeside) -> Iterator[Fix]:
    yield Fix("shell", f"# copy it, under this name, to:\nls {shell_file(remedy.place)}")


def _look_for(remedy: records.LookFor) -> Iterator[Fix]:
    if remedy.file is None:
        yield Fix("shell", f"export {remedy.variable}='${{ORIGIN}}'")
        return
    name = PurePath(remedy.file)
    # HDF5 looks for the name's own folders below the given one.
    inner = () if name.is_absolute() else name.parts[:-1]
    if ".." in inner:
        return
    wanted = name.name if name.is_absolute() else str(name)
    found = f"find ~ -path {shell_word('*/' + wanted)} -print -quit"
    folder = f'"$(dirname "$({found})")"'
    for _ in inner:
        folder = f'"$(dirname {folder})"'
    yield Fix("shell", f"export {remedy.variable}={folder}")


def _bring_filter(remedy: records.BringFilter) -> Iterator[Fix]:
    if remedy.how == "import":
        yield Fix("h5py", f"import {remedy.name}  # before the data is read")
    else:
        yield Fix("shell", _BRING.get(remedy.how, f"pip install {remedy.name}"))


# What says each kind of remedy.
SAID: Final[Mapping[type, Callable[[Any], Iterator[Fix]]]] = {
    SetCache: _set_cache,
    records.ReadOnce: _read_once,
    records.OpenNatively: _open_natively,
    records.Copy: _copy,
    records.Create: _create,
    records.GatherMetadata: _gather_metadata,
    records.ReadPaged: _read_paged,
    records.FollowWriter: _follow_writer,
    records.ClearCopy: _clear_copy,
    records.Examine: _examine,
    records.InspectOthers: _inspect_others,
    records.RemoveLink: _remove_link,
    records.PutBeside: _put_beside,
    records.LookFor: _look_for,
    records.BringFilter: _bring_filter,
}


# --- in a few words --------------------------------------------------------------------


def in_short(remedy: Remedy) -> str | None:
    """Give the one line that is enough for a program that has all else; None without any."""
    if isinstance(remedy, SetCache) and remedy.program != "h5py":
        texts = {fix.tool: fix.text for fix in lines(remedy)}
        return texts.get(remedy.program, texts.get("C"))
    if isinstance(remedy, SetCache):
        slots = "" if remedy.own_slots else f", rdcc_nslots={remedy.nslots}"
        cache = f"rdcc_nbytes={remedy.nbytes // _MIB} * 2**20{slots}"
        return f"h5py.File({python_text(remedy.file)}, {cache})"
    if isinstance(remedy, records.OpenNatively):
        return f"chunkwise.open({python_text(remedy.file)})[{python_text(remedy.path)}]"
    if isinstance(remedy, records.ReadOnce):
        return "array = dataset[...]  # once; then index the array"
    return next((fix.text for fix in lines(remedy) if not fix.writing), None)


def in_c(remedy: Remedy) -> str | None:
    """Give the lines of C that do what a remedy in Python does; None where C has no like."""
    if isinstance(remedy, SetCache):
        return _opened_in_c(remedy)
    if not isinstance(remedy, records.ReadOnce):
        return None
    file, path = c_text(remedy.file), c_text(absolute(remedy.path))
    return "\n".join(
        (
            f"hid_t file = H5Fopen({file}, H5F_ACC_RDONLY, H5P_DEFAULT);",
            f"hid_t dataset = H5Dopen2(file, {path}, H5P_DEFAULT);",
            "hid_t type = H5Tget_native_type(H5Dget_type(dataset), H5T_DIR_DEFAULT);",
            "hssize_t n = H5Sget_simple_extent_npoints(H5Dget_space(dataset));",
            "void *array = malloc(n * H5Tget_size(type));",
            "/* once; then index the array: */",
            "H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array);",
        )
    )


def _fortran_cache(remedy: SetCache) -> tuple[str, ...]:
    return ("integer(hid_t) :: dapl", *fortran_cache(remedy.nslots, remedy.nbytes))


def _opened_in_fortran(remedy: SetCache) -> str:
    name = absolute(remedy.path).replace('"', '""')
    return "\n".join(
        (
            "! in the program that reads it, which has file, dataset and error:",
            "block",
            *(f"  {line}" for line in _fortran_cache(remedy)),
            f'  call h5dopen_f(file, "{name}", &',
            "    dataset, error, dapl)",
            "end block",
        )
    )


def _c_cache(remedy: SetCache) -> str:
    return c_cache(remedy.nslots, remedy.nbytes)


def _opened_in_c(remedy: SetCache) -> str:
    file, path = c_text(remedy.file), c_text(absolute(remedy.path))
    return (
        f"{_c_cache(remedy)}\n"
        f"hid_t file = H5Fopen({file}, H5F_ACC_RDONLY, H5P_DEFAULT);\n"
        f"hid_t dataset = H5Dopen2(file, {path}, dapl);"
    )
