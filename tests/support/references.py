"""What tests of references share: a file of objects without links."""

from pathlib import Path

import h5py
import numpy as np
from h5py import h5d

from tests.support.native import keep_without_links


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
