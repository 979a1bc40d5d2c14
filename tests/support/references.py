"""What tests of references share: objects without links, and who says that two files are alike.

A file is compared by walking it as h5py does: from the root group along links and references.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5g

from tests.support.native import keep_without_links


class Graph:
    """All that h5py reaches in an open file, each object numbered as it is met."""

    def __init__(self, file: h5py.File) -> None:
        self.file = file
        self.numbers: dict[tuple[int, ...], int] = {}
        self.waiting: list[Any] = []
        self.number_of(file["/"])
        self.found = []
        while self.waiting:
            self.found.append(self.describe(self.waiting.pop(0)))

    def number_of(self, found: Any) -> int:
        address = tuple(h5g.get_objinfo(found.id).objno)
        if address not in self.numbers:
            self.numbers[address] = len(self.numbers)
            self.waiting.append(found)
        return self.numbers[address]

    def describe(self, found: Any) -> dict[str, Any]:
        known: dict[str, Any] = {"kind": type(found).__name__}
        if isinstance(found, h5py.Group):
            known["links"] = [(name, self.link(found, name)) for name in found]
        elif isinstance(found, h5py.Dataset):
            known |= self.type_of(found.id) | {"shape": found.shape}
            known["values"] = None if found.shape is None else self.meaning(found[()])
        else:
            known["type"] = repr(found.dtype)
        known["attributes"] = {
            name: self.type_of(found.attrs.get_id(name)) | {"value": self.meaning(value)}
            for name, value in sorted(found.attrs.items())
        }
        known["counted"] = h5g.get_objinfo(found.id).nlink
        return known

    def type_of(self, holder: Any) -> dict[str, Any]:
        datatype = holder.get_type()
        committed = datatype.committed()
        number = self.number_of(h5py.Datatype(datatype)) if committed else None
        return {"type": repr(holder.dtype), "committed": number}

    def link(self, group: h5py.Group, name: str) -> object:
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.SoftLink):
            return "soft", link.path
        if isinstance(link, h5py.ExternalLink):
            return "external", link.filename, link.path
        return self.number_of(group[name])

    def meaning(self, value: Any) -> object:
        if isinstance(value, h5py.RegionReference):
            if not value:
                return None
            region = h5py.h5r.get_region(value, self.file.id)
            return self.lead(value), region.get_select_npoints(), region.get_select_bounds()
        if isinstance(value, h5py.Reference):
            return self.lead(value) if value else None
        if isinstance(value, np.void) and value.dtype.names:
            return [self.meaning(value[name]) for name in value.dtype.names]
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                return [self.meaning(one) for one in value.reshape(-1)]
            return value.dtype.str, value.tobytes()
        return repr(value)

    def lead(self, reference: Any) -> int | None:
        try:
            return self.number_of(self.file[reference])
        except (ValueError, KeyError, RuntimeError, OSError):
            return None


def graph(path: Path) -> list[dict[str, Any]]:
    """Describe a file as a reader meets it; equal for files that are alike."""
    with h5py.File(path) as file:
        return Graph(file).found


def write_like_jld2(path: Path) -> Path:
    """Write nested values as JLD2 does: no link but one leads to them."""
    random = np.random.default_rng(1)
    with h5py.File(path, "w", track_order=True) as file:
        hidden = file.create_group("hidden")
        data = random.integers(0, 50, (300, 100))
        for name in ("a", "b"):
            hidden.create_dataset(name, data=data, chunks=(300, 10), compression=1)
        hidden["text"] = "a value"
        point = np.dtype([("x", "<f8"), ("next", h5py.ref_dtype), ("more", h5py.ref_dtype, (2,))])
        hidden["point"] = point
        hidden["point"].attrs["julia type"] = hidden["text"].ref
        inner = hidden.create_group("inner")
        inner["b"] = hidden["b"]
        inner["soft"] = h5py.SoftLink("/value")
        inner["lost"] = h5py.SoftLink("/nowhere")
        values = np.zeros((), point)
        value = h5d.create(file.id, b"value", hidden["point"].id, h5py.h5s.create(h5py.h5s.SCALAR))
        made = h5py.Dataset(value)
        values["next"], values["more"] = inner.ref, [hidden["a"].ref, made.ref]
        made[()] = values
        cells = file.create_dataset("cells", (6,), h5py.special_dtype(vlen=h5py.ref_dtype))
        cells[2] = np.array([hidden["a"].ref, inner.ref], h5py.ref_dtype)
        made.attrs["part"] = hidden["a"].regionref[2:5, 3:9]
        keep_without_links(*(hidden[name] for name in ("a", "text", "inner")))
        del file["hidden"]
    return path
