"""Which lines make xarray write a variable in other chunks, under other filters?"""

from __future__ import annotations

from collections.abc import Sequence

from chunkwise.advise.fix import Fix
from chunkwise.advise.remedies import copy_name, netcdf_options
from chunkwise.grammar import Pipeline


def xarray_encoding(
    file: str, dataset: str, chunks: Sequence[int], filters: str
) -> tuple[Fix, ...]:
    """Give the ``encoding=`` of a variable, for a program that has it in ``ds``.

    Parameters
    ----------
    file
        The file that is read, as the user wrote it: the new one gets another name.
    dataset
        The dataset's path in the file.
    chunks
        Its chunk shape, in elements.
    filters
        Its pipeline in the grammar of filters.

    Returns
    -------
    tuple of Fix
        None for a variable in a group, and for filters that netCDF4-python has no word for.
    """
    name = dataset.strip("/")
    options = netcdf_options(Pipeline.parse(filters))
    if options is None or "/" in name:
        return ()
    compression = options.pop("compression", None)
    words: dict[str, object] = {"chunksizes": tuple(chunks), "zlib": compression is not None}
    words |= options
    encoding = f"{{{name!r}: {words!r}}}"
    text = (
        "# in the program that writes it, which has the data in ds:\n"
        f"ds.to_netcdf({copy_name(file)!r}, encoding={encoding})"
    )
    return (Fix("xarray", text, writing=True, rechunks=True),)
