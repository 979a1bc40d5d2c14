"""xarray: its engine (`engine.py`), and datasets of Dask arrays that all workers write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chunkwise._lazy import attach

if TYPE_CHECKING:
    from chunkwise.xarray.writing import to_netcdf

__all__ = ["to_netcdf"]

__getattr__, __dir__ = attach(__name__, {"to_netcdf": "chunkwise.xarray.writing"})
