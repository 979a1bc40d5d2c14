"""Who reads an index of lists, masks or backward slices: the engine, h5py, or neither as it is?

The engine reads it where it reads the dataset.  Otherwise h5py does, and what h5py refuses
is translated to what libhdf5 takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from chunkwise import indexing, lowlevel
from chunkwise.errors import SelectionError, UndecodedChunkError
from chunkwise.indexing import Request
from chunkwise.names import hdf5_reason
from chunkwise.selection import Points, Selection, Union

if TYPE_CHECKING:
    from chunkwise.dataset import Dataset


class OuterIndex:
    """``d.oindex``: every choice of one entry goes with every choice of the others."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __getitem__(self, index: Any) -> Any:
        """Read as ``d[index]`` does."""
        return self._dataset[index]

    def explain(self, index: Any) -> dict[str, Any]:
        """Explain as ``d.explain(index)`` does."""
        return self._dataset.explain(index)


class PairedIndex:
    """``d.vindex``: arrays pair up element by element; see `Dataset.vindex`."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __getitem__(self, index: Any) -> Any:
        """Read the elements that the arrays name.

        Raises
        ------
        chunkwise.errors.SelectionError
            For an index that does not fit the dataset, or arrays that do not pair up.
        chunkwise.errors.CorruptDataError
            When stored bytes are missing or do not decode.
        """
        return _read_request(self._dataset, self._request(index))

    def explain(self, index: Any) -> dict[str, Any]:
        """Explain what reading an index does; see `Dataset.explain`."""
        return self._dataset._explain(self._request(index).product)

    def _request(self, index: Any) -> Request:
        dataset = self._dataset
        dataset._bound()
        if not dataset.shape:
            raise SelectionError(f"{dataset._label()}: vindex takes datasets with dimensions only")
        return indexing.paired(dataset.shape, index, dataset._label())


def read_index(dataset: Dataset, index: Any) -> Any:
    """Read what ``dataset[index]`` means where the engine's own parser does not know it.

    Parameters
    ----------
    dataset : Dataset
        Of any kind.
    index : object
        What stands between the brackets.

    Returns
    -------
    ndarray or scalar
        What h5py gives where it takes the index.

    Raises
    ------
    chunkwise.errors.SelectionError
        For an index that does not fit the dataset.
    """
    if isinstance(index, Selection | Union | Points):
        return dataset.read(index)
    if dataset._bound().reason is not None:
        return read_index_through_h5py(dataset, index)
    # The engine reads, and so there is a shape.
    request = indexing.orthogonal(dataset.shape or (), index, dataset._label())
    if request is not None:
        return _read_request(dataset, request)
    return _as_h5py_reads(dataset, index)


def read_index_through_h5py(dataset: Dataset, index: Any) -> Any:
    """Read an index through libhdf5, also one that h5py refuses; see `read_index`."""
    request = None
    if dataset.shape:
        # First, as h5py leaves it to libhdf5 to find some indices out of range.
        request = indexing.orthogonal(dataset.shape, index, dataset._label())
    try:
        return _as_h5py_reads(dataset, index)
    except SelectionError:
        if request is None:
            raise
    return _scalar_or_array(_read_translated(dataset, request))


def _as_h5py_reads(dataset: Dataset, index: Any) -> Any:
    try:
        return dataset._through_h5py(lambda: dataset._h5[index])
    except UnicodeError:
        raise
    except (IndexError, TypeError, ValueError) as error:
        raise SelectionError(f"{dataset._label()}: {hdf5_reason(error)}") from error


def read_points(dataset: Dataset, points: Points, out: npt.NDArray[Any] | None) -> Any:
    """Read points into `out`, known to fit them, or into a new array."""
    request = indexing.points(dataset.shape or (), points.coordinates, dataset._label())
    return _read_request(dataset, request, out)


def _read_request(dataset: Dataset, request: Request, out: npt.NDArray[Any] | None = None) -> Any:
    native = dataset._bound()
    if native.reason is None:
        try:
            return _scalar_or_array(native.read(request.product, out, request.shape))
        except UndecodedChunkError as error:
            dataset._warn(error, stacklevel=5)
    got = _read_translated(dataset, request)
    if out is not None:
        np.copyto(out, got)
        return out
    return _scalar_or_array(got)


def _read_translated(dataset: Dataset, request: Request) -> npt.NDArray[Any]:
    read = dataset._through_h5py(lambda: lowlevel.read_request(dataset._h5, request))
    return cast("npt.NDArray[Any]", read)


def _scalar_or_array(array: npt.NDArray[Any]) -> Any:
    """Return an element as the scalar that NumPy and h5py make of it."""
    return array[()] if array.shape == () else array
