"""How do arrays of xarray keep their file open, in every process?"""

from __future__ import annotations

import contextlib
import uuid
import weakref
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from chunkwise import _native
from chunkwise.errors import ChunkwiseError, FileFormatError, like
from chunkwise.file import File
from chunkwise.files.native import open_metadata
from chunkwise.names import HDF5_ERRORS, printable
from chunkwise.settings import settings as change_settings
from chunkwise.xarray.native import NativeFile

if TYPE_CHECKING:
    import numpy as np

# Options of `h5netcdf.File` that are not h5py's.
_OF_NETCDF = ("invalid_netcdf", "phony_dims", "decode_vlen_strings")


@contextlib.contextmanager
def meant(filename: str, path: str) -> Iterator[None]:
    """Say by name what has no meaning in netCDF, or cannot be read."""
    try:
        yield
    except ChunkwiseError:
        raise
    except (*HDF5_ERRORS, AttributeError, IndexError) as error:
        raise like(FileFormatError, error)(
            f"{printable(filename)}: {printable(path)}: h5netcdf makes no netCDF of it: "
            f"{printable(str(error))}; read the file by chunkwise.open(path)"
        ) from error


class Opened:
    """A file that is open, as HDF5 and as netCDF."""

    def __init__(self, given: Any, options: Mapping[str, Any]) -> None:
        rest = dict(options)
        self._of_netcdf = {name: rest.pop(name) for name in _OF_NETCDF if name in rest}
        self._ours = not isinstance(given, File)
        self.hdf5 = File(given, "r", **rest) if self._ours else given

    @cached_property
    def netcdf(self) -> Any:
        """The file as h5netcdf has it."""
        import h5netcdf

        with meant(str(self.hdf5.filename), "/"):
            return h5netcdf.File(self.hdf5, "r", **self._of_netcdf)

    def is_open(self) -> bool:
        """Whether nobody has closed it."""
        return bool(self.hdf5)

    def close(self) -> None:
        """Close what was opened here."""
        if self._ours:
            self.hdf5.close()


# Files open in this process: arrays that were sent here one by one share a file.
_opened: weakref.WeakValueDictionary[str, Opened] = weakref.WeakValueDictionary()


class SharedFile:
    """The file from which xarray's arrays are read; all copies of this object are one source."""

    def __init__(
        self,
        given: Any,
        options: Mapping[str, Any],
        settings: Mapping[str, Any],
        token: str | None = None,  # What its copies have in common; None for a new source
    ) -> None:
        self._given, self._options, self._settings = given, options, settings
        self._token = token or uuid.uuid4().hex
        self._held: Opened | None = None
        self._own: NativeFile | None = None
        self._is_left = False
        # Datasets by path that the engine reads without libhdf5; None of those that it cannot.
        self._datasets: dict[str, _native.Dataset | None] = {}

    @property
    def name(self) -> str:
        """Path, or what else the file is called."""
        return self._given if isinstance(self._given, str) else str(self.open().hdf5.filename)

    def native(self) -> NativeFile | None:
        """The file as its own bytes say; None where libhdf5 has to open it."""
        if self._own is None and not self._is_left:
            if self._is_far():
                home = self.open().hdf5._home
                home.look_around()
                storage = home.storage
                found = None if storage is None else _native.Metadata.of_storage(storage)
            else:
                found = open_metadata(self.open().hdf5) if self._is_plain() else None
            self._own = None if found is None else NativeFile(found)
        return self._own

    def leave_to_libhdf5(self) -> None:
        """Read no more of the file's bytes but through libhdf5's knowledge of it."""
        self._is_left = True
        self._own = None
        # Others may be reading meanwhile.
        datasets, self._datasets = self._datasets, {}
        for one in list(datasets.values()):
            if one is not None:
                one.end_reads(True)

    def _is_plain(self) -> bool:
        """Whether it is a local file that no option has opened in another way."""
        local = isinstance(self._given, str) and "://" not in self._given
        return local and self._options.keys() <= {*_OF_NETCDF, "external"}

    def _is_far(self) -> bool:
        """Whether it is opened by a URL, as `_is_plain`."""
        url = isinstance(self._given, str) and "://" in self._given
        return url and self._options.keys() <= {*_OF_NETCDF, "external", "storage_options"}

    def dataset(self, path: str, dtype: np.dtype[Any]) -> _native.Dataset | None:
        """A dataset that is read without libhdf5; None where there is none."""
        own = self._own
        # Of requests that fail, `chunkwise.Dataset` has the words.
        if own is None or self._is_far():
            return None
        datasets = self._datasets
        if path in datasets:
            return datasets[path]
        address = own.address(path)
        label = f"{printable(self._given)}: dataset {printable(path)}"
        found = None if address is None else own.file.dataset(address, label)
        made = None if found is None or found[1].itemsize != dtype.itemsize else found[0]
        datasets[path] = made
        return made

    def open(self) -> Opened:
        """The file, opened if it is not."""
        held = self._held
        if held is not None and held.is_open():
            return held
        held = _opened.get(self._token)
        if held is None or not held.is_open():
            if self._settings:
                change_settings(**self._settings)
            held = _opened[self._token] = Opened(self._given, self._options)
        self._held = held
        return held

    def close(self) -> None:
        """Close it, for all that is read through it; whatever is read next opens it again."""
        self.leave_to_libhdf5()
        held, self._held = _opened.pop(self._token, self._held), None
        if held is not None:
            held.close()

    def __reduce__(self) -> Any:
        return SharedFile, (self._given, self._options, self._settings, self._token)
