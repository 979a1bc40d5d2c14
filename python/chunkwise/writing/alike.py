"""Which new datasets are small, and like one that was made before, so that libhdf5 is fastest?"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t, h5z
from h5py._objects import phil

from chunkwise.files import unwritten
from chunkwise.names import HDF5_ERRORS
from chunkwise.writing.creating import Request, plain_name

if TYPE_CHECKING:
    import numpy.typing as npt

Key = tuple[Any, ...]

# What libhdf5 encodes in the time that it takes to make a writer ready.
MOST_NBYTES: Final = 32 << 10
# Keywords of h5py's that say nothing but what the property list says.
_IN_THE_LIST: Final = frozenset(
    {"compression", "compression_opts", "fill_time", "fletcher32", "scaleoffset", "shuffle"}
    | {"track_order", "track_times"}
)
_MOST_KEPT: Final = 64
# Filters whose values are what they are.
_LASTING: Final = (h5z.FILTER_DEFLATE, h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32, h5z.FILTER_LZF)


class Recipe:
    """How libhdf5 makes a dataset."""

    def __init__(self, dtype: np.dtype[Any], shape: tuple[int, ...], properties: h5p.PropDCID):
        self._kind = h5t.py_create(dtype, logical=True)
        self._space = h5s.create_simple(shape)
        self._properties = properties

    def is_lasting(self) -> bool:
        """Whether another dataset has the same filters.  Under h5py's lock."""
        # Some, such as bitshuffle, change their values whenever a dataset is made.
        before = _filters(self._properties)
        if all(code in _LASTING for code, *_ in before):
            return True
        fapl = h5p.create(h5p.FILE_ACCESS)
        fapl.set_fapl_core(backing_store=False)
        file = h5f.create(b"alike", h5f.ACC_TRUNC, fapl=fapl)
        try:
            made = h5d.create(file, None, self._kind, self._space, self._properties)
            return _filters(made.get_create_plist()) == before
        except HDF5_ERRORS:
            return False
        finally:
            file.close()

    def make(self, group: h5py.h5g.GroupID, name: bytes, data: npt.NDArray[Any]) -> Any:
        """Make and write a dataset; None if there is such a name, or it fails."""
        # Nothing of it is left then.
        if group.links.exists(name):
            return None
        made = h5d.create(group, name, self._kind, self._space, self._properties)
        try:
            made.write(h5s.ALL, h5s.ALL, data, self._kind)
            unwritten.flush(made)
        except BaseException:
            group.unlink(name)
            raise
        return made


def _filters(properties: h5p.PropDCID) -> list[tuple[Any, ...]]:
    return [properties.get_filter(place) for place in range(properties.get_nfilters())]


_recipes: OrderedDict[Key, Recipe] = OrderedDict()


def key_of(request: Request) -> Key | None:
    """Return what similar datasets have in common."""
    data = request.data
    if (
        type(data) is not np.ndarray
        or not _is_of_numbers(data.dtype)
        or not 0 < data.nbytes <= MOST_NBYTES
        or not data.ndim
        or request.shape is not None
        or request.dtype is not None
        or request.maxshape is not None
        or request.fillvalue is not None
        or not request.options.keys() <= _IN_THE_LIST
    ):
        return None
    chunks, options = request.chunks, request.options
    # With types, as True is 1: that is no level of compression, and no length of a chunk.
    said = tuple((name, type(value), value) for name, value in options.items())
    order = h5py.get_config().track_order
    key = (
        data.dtype,
        data.shape,
        type(chunks),
        chunks,
        request.filters,
        request.access,
        order,
        said,
    )
    try:
        hash(key)
    except TypeError:
        return None  # Lists, say.
    return key


def _is_of_numbers(dtype: np.dtype[Any]) -> bool:
    """Whether elements are numbers or records of them, without a meaning that h5py adds."""
    if dtype.metadata is not None:
        return False
    if dtype.fields is None:
        return dtype.kind in "biufc"
    return all(_is_of_numbers(member[0].base) for member in dtype.fields.values())


def make(group: h5py.h5g.GroupID, name: Any, key: Key, data: npt.NDArray[Any]) -> Any:
    """Make and write a dataset like one before."""
    recipe = _recipes.get(key)
    if recipe is None or not plain_name(name):
        return None
    try:
        return recipe.make(group, name.encode(), np.ascontiguousarray(data))
    except HDF5_ERRORS:
        # The more careful way says what there is to say.
        return None


def remember(key: Key, data: npt.NDArray[Any], properties: h5p.PropDCID) -> None:
    """Keep how a dataset was made, if others can be made in the same way."""
    recipe = Recipe(data.dtype, data.shape, properties)
    with phil:
        if not recipe.is_lasting():
            return
        _recipes[key] = recipe
        if len(_recipes) > _MOST_KEPT:
            _recipes.popitem(last=False)
