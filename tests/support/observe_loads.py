"""How many chunks does a libhdf5 load for each read, and does chunkwise's tally count the same?

Run as a program of its own, so that exactly one libhdf5 is loaded: its path is the
first argument; cases come as JSON on standard input, counts go as JSON to standard
output.  A filter that changes nothing is registered under a number of the range for
testing, and counts the chunks that it is asked to decode.  Beside it there are two of libhdf5's
own, whose calls chunkwise counts.
"""

import ctypes
import json
import sys
from ctypes import byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

from chunkwise import _native

SHUFFLE, FLETCHER32, FILTER = 2, 3, 300
REVERSE = 0x0100  # H5Z_FLAG_REVERSE: decoding
FILTER_FUNCTION = ctypes.CFUNCTYPE(
    c_size_t, c_uint, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p
)


class FilterClass(ctypes.Structure):
    """H5Z_class2_t"""

    _fields_ = (
        ("version", c_int),
        ("id", c_int),
        ("encoder_present", c_uint),
        ("decoder_present", c_uint),
        ("name", c_char_p),
        ("can_apply", c_void_p),
        ("set_local", c_void_p),
        ("filter", FILTER_FUNCTION),
    )


class Observer:
    """One libhdf5, with a filter that counts."""

    def __init__(self, path: str) -> None:
        self.library = ctypes.CDLL(path)
        self.decoded = 0
        self.library.H5open()
        self._function = FILTER_FUNCTION(self._filter)
        self._class = FilterClass(1, FILTER, 1, 1, b"count", None, None, self._function)
        self("H5Zregister", byref(self._class))
        self.bound = _native.Library.from_path(path)

    def __call__(self, name: str, *arguments: Any) -> int:
        function = getattr(self.library, name)
        function.restype = c_int64 if name.split("H5")[1][0] in "PSFD" else c_int
        result = int(function(*arguments))
        if result < 0 or result == 0xFFFFFFFF:
            raise RuntimeError(name)
        return result

    def _filter(
        self, flags: int, _count: int, _values: int, nbytes: int, _size: int, _buffer: int
    ) -> int:
        if flags & REVERSE:
            self.decoded += 1
        return nbytes

    def constant(self, name: str) -> c_int64:
        return c_int64(c_int64.in_dll(self.library, name).value)

    def count(self) -> int:
        """Chunks decoded so far, as both count them."""
        tallied = self.bound.tally([SHUFFLE, FLETCHER32, FILTER])
        # The function of a filter that a program registers itself cannot be found.
        assert FILTER not in tallied
        counts = {tally["decode"][0] for tally in tallied.values()}
        if counts != {self.decoded}:
            raise RuntimeError(f"{counts} tallied, {self.decoded} decoded")
        return self.decoded

    def loads(self, case: dict[str, Any]) -> list[int]:
        """Write a dataset of bytes, read boxes of it, and count each read's decodes."""
        shape, chunk = case["shape"], case["chunk"]
        rank = len(shape)
        dims = c_uint64 * rank
        default = c_int64(0)
        # A file in memory that is never written to disk.
        fapl = c_int64(self("H5Pcreate", self.constant("H5P_CLS_FILE_ACCESS_ID_g")))
        self("H5Pset_fapl_core", fapl, c_size_t(1 << 20), c_uint(0))
        file = c_int64(self("H5Fcreate", b"observed.h5", c_uint(2), default, fapl))
        space = c_int64(self("H5Screate_simple", c_int(rank), dims(*shape), None))
        dcpl = c_int64(self("H5Pcreate", self.constant("H5P_CLS_DATASET_CREATE_ID_g")))
        self("H5Pset_chunk", dcpl, c_int(rank), dims(*chunk))
        self("H5Pset_filter", dcpl, c_int(FILTER), c_uint(0), c_size_t(0), None)
        self("H5Pset_shuffle", dcpl)
        self("H5Pset_fletcher32", dcpl)
        # H5D_ALLOC_TIME_EARLY: every chunk is written, with the fill value.
        self("H5Pset_alloc_time", dcpl, c_int(1))
        byte = self.constant("H5T_NATIVE_UCHAR_g")
        created = self("H5Dcreate2", file, b"x", byte, space, default, dcpl, default)
        self("H5Dclose", c_int64(created))
        dapl = c_int64(self("H5Pcreate", self.constant("H5P_CLS_DATASET_ACCESS_ID_g")))
        nslots, nbytes, w0 = case["cache"]
        self("H5Pset_chunk_cache", dapl, c_size_t(nslots), c_size_t(nbytes), c_double(w0))
        dataset = c_int64(self("H5Dopen2", file, b"x", dapl))
        counts = []
        for start, count in case["reads"]:
            memory = c_int64(self("H5Screate_simple", c_int(rank), dims(*count), None))
            self("H5Sselect_hyperslab", space, c_int(0), dims(*start), None, dims(*count), None)
            size = 1
            for n in count:
                size *= n
            before = self.count()
            buffer = ctypes.create_string_buffer(size)
            self("H5Dread", dataset, byte, memory, space, default, buffer)
            counts.append(self.count() - before)
            self("H5Sclose", memory)
        self("H5Dclose", dataset)
        self("H5Sclose", space)
        self("H5Fclose", file)
        for plist in (dapl, dcpl, fapl):
            self("H5Pclose", plist)
        return counts


if __name__ == "__main__":
    observer = Observer(sys.argv[1])
    json.dump([observer.loads(case) for case in json.load(sys.stdin)], sys.stdout)
