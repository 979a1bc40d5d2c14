"""Which lines of C do what a remedy in Python does?

They are for a function that includes ``hdf5.h`` and ``stdlib.h``, and open the file themselves.
"""

from __future__ import annotations

from chunkwise.model.remedies import larger_cache
from chunkwise.names import octal

# A question mark may begin a trigraph.
_SPECIAL = '"\\?'


def with_cache(file: str, dataset: str, nbytes: int, nslots: int) -> str:
    """Give the lines that open a dataset with another chunk cache."""
    return next(f.text for f in larger_cache(file, dataset, nbytes, nslots) if f.tool == "C")


def read_once(file: str, dataset: str) -> str:
    """Give the lines that read a dataset as a whole, into ``array``, in the machine's own type."""
    path = "/" + dataset.strip("/")
    return "\n".join(
        (
            f"hid_t file = H5Fopen({_text(file)}, H5F_ACC_RDONLY, H5P_DEFAULT);",
            f"hid_t dataset = H5Dopen2(file, {_text(path)}, H5P_DEFAULT);",
            "hid_t type = H5Tget_native_type(H5Dget_type(dataset), H5T_DIR_DEFAULT);",
            "hssize_t n = H5Sget_simple_extent_npoints(H5Dget_space(dataset));",
            "void *array = malloc(n * H5Tget_size(type));",
            "/* once; then index the array: */",
            "H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array);",
        )
    )


def _text(text: str) -> str:
    return f'"{octal(text, _SPECIAL)}"'
