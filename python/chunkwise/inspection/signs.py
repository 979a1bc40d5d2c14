"""What does a file say of a dataset, by classes, attributes and the names of its dimensions?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import h5py

from chunkwise.files.objects import HDF5_ERRORS
from chunkwise.model.purpose import Axis, Kind, Signs

# Objects of NeXus that hold frames of a detector.
_NEXUS: Final = frozenset({"NXdata", "NXdetector"})
_INTERPRETED: Final[dict[str, Kind]] = {
    "image": "frame",
    "rgb-image": "image",
    "rgba-image": "image",
    "spectrum": "spectrum",
}
_AXES: Final[tuple[Axis, ...]] = ("T", "Z", "Y", "X")
# What CF writes in place of an axis.
_MEANT: Final[dict[str, Axis]] = {
    **dict.fromkeys(("time", "t", "date", "valid_time"), "T"),
    **dict.fromkeys(("lev", "level", "depth", "height", "altitude", "plev", "z"), "Z"),
    **dict.fromkeys(("lat", "latitude", "y", "projection_y_coordinate", "grid_latitude"), "Y"),
    **dict.fromkeys(("lon", "longitude", "x", "projection_x_coordinate", "grid_longitude"), "X"),
    **dict.fromkeys(("degrees_north", "degree_north", "degrees_n"), "Y"),
    **dict.fromkeys(("degrees_east", "degree_east", "degrees_e"), "X"),
}


class Reading:
    """Reads the signs of the datasets of one file; each group and dimension scale once."""

    def __init__(self, file: h5py.File) -> None:
        self._file = file
        self._classes: dict[str, str] = {}
        self._meant: dict[str, Axis | None] = {}

    def of(self, path: str, dimensions: Sequence[str | None] | None) -> Signs:
        """Read the signs of a dataset, whose dimensions have these names."""
        try:
            dataset = self._file[path]
            kind = self._kind(path, dataset)
            axes = tuple(map(self._axis, dimensions or ()))
        except (*HDF5_ERRORS, TypeError, AttributeError):
            return Signs()
        return Signs(kind, axes if any(axes) else ())

    def _kind(self, path: str, dataset: h5py.Dataset) -> Kind | None:
        if _text(dataset, "CLASS") == "IMAGE":
            return "image"
        interpreted = _INTERPRETED.get(_text(dataset, "interpretation").lower())
        if interpreted is not None:
            return interpreted
        group, _, name = path.rpartition("/")
        if group not in self._classes:
            self._classes[group] = _text(self._file[group or "/"], "NX_class")
        if self._classes[group] in _NEXUS and dataset.ndim > 2:
            return "frame"
        sparse = name in ("data", "indices") and f"{group}/indptr" in self._file
        return "sparse" if sparse else None

    def _axis(self, name: str | None) -> Axis | None:
        if name is None:
            return None
        if name not in self._meant:
            self._meant[name] = self._axis_of(name)
        return self._meant[name]

    def _axis_of(self, name: str) -> Axis | None:
        scale = self._file.get(name)
        said = _text(scale, "axis").upper()
        for axis in _AXES:
            if said == axis:
                return axis
        units = _text(scale, "units").lower()
        if " since " in units:
            return "T"
        for word in (_text(scale, "standard_name"), units, name.rpartition("/")[2]):
            if word.lower() in _MEANT:
                return _MEANT[word.lower()]
        return None


def _text(item: Any, name: str) -> str:
    """Read an attribute that is one string; empty for any other."""
    if item is None or name not in item.attrs:
        return ""
    value = item.attrs[name]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""
