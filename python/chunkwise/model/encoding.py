"""Which lines make xarray write a variable in other chunks, under other filters?"""

from __future__ import annotations

from collections.abc import Sequence

from chunkwise.grammar import Pipeline
from chunkwise.model.fix import Fix
from chunkwise.model.remedies import copy_name, netcdf_options


def xarray_encoding(
    file: str, dataset: str, chunks: Sequence[int], filters: str
) -> tuple[Fix, ...]:
    """Give the ``encoding=`` of a variable, for a program that has it in ``ds``."""
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
