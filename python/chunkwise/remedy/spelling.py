"""Which lines say a remedy?  The words come here, at the very end.

Commands copy the file and are complete.  Lines that read open the file themselves.  Lines that
write belong where the program creates the dataset (`writers`).  Names are quoted for the language
of the line.  If a tool cannot express something (a path with a comma for h5repack), there is no
line for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Final

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
    match remedy:
        case SetCache(program="C"):
            yield from _for_writing(remedy)
        case SetCache():
            yield from _for_reading(remedy)
        case records.ReadOnce(file, path):
            opened = f"h5py.File({file!r})[{python_path(absolute(path))}]"
            yield Fix("h5py", f"array = {opened}[...]  # once; then index the array")
        case records.OpenNatively(file, path):
            yield Fix("chunkwise", f"chunkwise.open({file!r})[{absolute(path)!r}]")
        case records.Copy():
            yield from commands(remedy)
            yield from writers(remedy)
        case records.Create(copy, in_xarray):
            yield from by_xarray(copy) if in_xarray else writers(copy)
        case records.GatherMetadata(nbytes):
            call = f"h5py.File(name, 'w', meta_block_size={nbytes})"
            yield Fix("h5py", f"# in the program that writes it:\n{call}", writing=True)
        case records.ReadPaged(file, nbytes) if file.isprintable():
            name = beside(file, "repacked")
            yield OfCopy("h5py", f"h5py.File({name!r}, page_buf_size={nbytes})")
        case records.FollowWriter(file):
            yield Fix("h5py", f"file = h5py.File({file!r}, 'r', swmr=True)")
        case records.ClearCopy(file):
            # ``h5clear -s`` alone would cut it where its superblock ends it, which a SWMR writer
            # does not keep up to date; ``--increment=0`` first puts that end where the file ends.
            name = shell_file(beside(file, "cleared"))
            cleared = f"h5clear -s --increment=0 {name}"
            yield Fix("h5clear", f"cp {shell_file(file)} {name} && {cleared}")
        case records.Examine(file, salvage):
            saved = f" --salvage {shell_file(beside(file, 'salvaged'))}" if salvage else ""
            yield Fix("chunkwise", f"chunkwise verify {shell_file(file)}{saved}")
        case records.InspectOthers(files):
            yield Fix("chunkwise", f"chunkwise inspect {' '.join(map(shell_file, files))}")
        case records.RemoveLink(file, path):
            opened = f"with h5py.File({file!r}, 'r+') as file:"
            yield Fix("h5py", f"{opened}\n    del file[{python_path(path)}]")
        case records.PutBeside(place):
            yield Fix("shell", f"# copy it, under this name, to:\nls {shell_file(place)}")
        case records.LookFor(variable, None):
            yield Fix("shell", f"export {variable}='${{ORIGIN}}'")
        case records.LookFor(variable, str(file)):
            yield from _look_for(variable, PurePath(file))
        case records.BringFilter("import", name):
            yield Fix("h5py", f"import {name}  # before the data is read")
        case records.BringFilter(how, name):
            yield Fix("shell", _BRING.get(how, f"pip install {name}"))


def _look_for(variable: str, name: PurePath) -> Iterator[Fix]:
    # HDF5 looks for the name's own folders below the given one.
    inner = () if name.is_absolute() else name.parts[:-1]
    if ".." in inner:
        return
    wanted = name.name if name.is_absolute() else str(name)
    found = f"find ~ -path {shell_word('*/' + wanted)} -print -quit"
    folder = f'"$(dirname "$({found})")"'
    for _ in inner:
        folder = f'"$(dirname {folder})"'
    yield Fix("shell", f"export {variable}={folder}")


def _for_writing(remedy: SetCache) -> Iterator[Fix]:
    place = f"/* for H5Dcreate2 or H5Dopen2 of {printable(remedy.path)}: */"
    yield Fix("C", f"{place}\n{c_cache(remedy.nslots, remedy.nbytes)}")
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


def _opened_in_c(remedy: SetCache) -> str:
    file, path = c_text(remedy.file), c_text(absolute(remedy.path))
    return (
        f"{c_cache(remedy.nslots, remedy.nbytes)}\n"
        f"hid_t file = H5Fopen({file}, H5F_ACC_RDONLY, H5P_DEFAULT);\n"
        f"hid_t dataset = H5Dopen2(file, {path}, dapl);"
    )
