"""Does it matter where in memory the elements of a selection go?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5s, h5t

from chunkwise import patterns
from chunkwise.errors import WrongValueError
from chunkwise.measure.schedule import Step
from chunkwise.selecting import lowlevel
from chunkwise.trials.unions import gathered, index_of

if TYPE_CHECKING:
    from chunkwise_lab.studies.context import Context

Array = npt.NDArray[Any]
# Of parts of a selection, array shape and count: the memory's space, and the places.
Place = Callable[[Sequence[Any], tuple[int, ...], int], h5s.SpaceID]


def measured(context: Context) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Read random selections to each place, through h5py's low-level interface; compare all."""
    for path, name, labels in context.data.values():
        with h5py.File(path) as file:
            dataset = file[name]
            whole = dataset[()]
            for planes in context.settings["planes"]:
                text = f"cells:{planes}:{context.settings['selections']}"
                walk = patterns.parse(text, dataset.shape, dataset.dtype.itemsize, name).walk(
                    dataset.shape
                )
                context.say(Step(f"{labels.get('storage', name)}: {text}"))
                chosen = [walk[number] for number in range(walk.operations)]
                points = [{**labels, "planes": str(planes), "memory": memory} for memory in PLACES]
                works = [
                    (one, partial(_read, dataset, whole, chosen, PLACES[one["memory"]]))
                    for one in points
                    if context.wants(one)
                ]
                yield from context.repeated(works, touch=True)


def _read(
    dataset: h5py.Dataset, whole: Array, chosen: Sequence[Any], place: Place
) -> dict[str, Any]:
    took, elements = 0.0, 0
    for selection in chosen:
        parts = [selection] if isinstance(selection, tuple) else selection
        expected = gathered(whole, index_of(selection)).ravel()
        space = place(parts, dataset.shape, expected.size)
        # Neither is any element's number, nor is memory used for the first time while it is timed.
        memory = np.full(space.shape, -1, dataset.dtype)
        begun = perf_counter()
        stored = dataset.id.get_space()
        lowlevel.select(stored, parts)
        space = place(parts, dataset.shape, expected.size)
        dataset.id.read(space, stored, memory, h5t.py_create(dataset.dtype))
        took += perf_counter() - begun
        elements += expected.size
        if not np.array_equal(memory[memory != -1], expected):
            raise WrongValueError(f"{dataset.file.filename}: {dataset.name}: was read wrong")
    return {
        "status": "ok",
        "hdf5": h5py.version.hdf5_version,
        "total_s": took,
        "selected_nbytes": elements * dataset.dtype.itemsize,
        "elapsed_s": took,
        "shape": list(dataset.shape),
        "itemsize": dataset.dtype.itemsize,
    }


def _row(parts: Sequence[Any], shape: tuple[int, ...], elements: int) -> h5s.SpaceID:
    del parts, shape
    return h5s.create_simple((elements,))


def _same(parts: Sequence[Any], shape: tuple[int, ...], elements: int) -> h5s.SpaceID:
    del elements
    space = h5s.create_simple(shape)
    lowlevel.select(space, parts)
    return space


def _second(parts: Sequence[Any], shape: tuple[int, ...], elements: int) -> h5s.SpaceID:
    del parts, shape
    space = h5s.create_simple((2 * elements,))
    space.select_hyperslab((0,), (elements,), stride=(2,))
    return space


PLACES: Final[dict[str, Place]] = {
    "a row": _row, "the same places": _same, "every second place": _second,
}  # fmt: skip
