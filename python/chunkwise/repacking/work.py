"""How is a plan carried out?

The tree of objects first, then the data of each dataset, then what refers to them; the
file is closed, verified, and left where the caller brings it into place.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import h5py
from h5py import h5d

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import ChunkwiseError, CorruptDataError
from chunkwise.names import HDF5_ERRORS, decode_name, hdf5_reason, printable
from chunkwise.opening import open_h5
from chunkwise.repacking.by_library import copy_by_library
from chunkwise.repacking.creation import copy_user_block, create
from chunkwise.repacking.moment import Teller, Watch
from chunkwise.repacking.options import Options
from chunkwise.repacking.plan import Plan, Step
from chunkwise.repacking.records import DatasetResult, storage_of
from chunkwise.repacking.target import Place, cannot_write
from chunkwise.repacking.verify import compare_files


@dataclass
class _Run:
    """What a run has come to.

    Attributes
    ----------
    results
        One for each dataset, in the plan's order.
    checksums
        What `verify_data` compares with, by path.
    warnings
        What was kept otherwise than it was.
    """

    results: list[DatasetResult] = field(default_factory=list)
    checksums: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def carry_out(
    place: Place,
    source: h5py.File,
    plan: Plan,
    options: Options,
    journal: _native.Journal | None,
    watch: Watch,
) -> tuple[tuple[DatasetResult, ...], tuple[str, ...]]:
    """Write and verify the target's partial file.

    Parameters
    ----------
    place
        Where it is made.
    source
        The source, open for reading.
    plan, options
        What to do.
    journal
        Where encoded chunks are kept, and are found again; None keeps none.
    watch
        Told about progress; may raise to end the run.

    Returns
    -------
    results, warnings
        By dataset, and what was kept otherwise than it was.

    Raises
    ------
    ChunkwiseError
        Damage in the source, a full disk, a result that is not what it should be.
    """
    run = _Run()
    try:
        target = create(place.partial, source, options)
    except HDF5_ERRORS as wrong:
        raise cannot_write(place.said, wrong) from wrong
    try:
        _fill(run, source, target, plan, options, journal, watch)
    except BaseException as wrong:
        # Closing writes metadata, and fails too where the disk is full; what went wrong
        # first is what the user should hear.
        with contextlib.suppress(*HDF5_ERRORS):
            target.close()
        if isinstance(wrong, HDF5_ERRORS) and not isinstance(wrong, ChunkwiseError):
            raise cannot_write(place.said, wrong) from wrong
        raise
    try:
        target.close()
        copy_user_block(place.source, place.partial, source.userblock_size)
    except HDF5_ERRORS as wrong:
        raise cannot_write(place.said, wrong) from wrong
    _verify(run, place, source, plan, options, watch)
    return tuple(run.results), tuple(run.warnings)


def _fill(
    run: _Run,
    source: h5py.File,
    target: h5py.File,
    plan: Plan,
    options: Options,
    journal: _native.Journal | None,
    watch: Watch,
) -> None:
    teller = Teller(watch, "copying", sum(step.source.nbytes for step in plan.steps))
    changed = {step.source.address: step.dcpl for step in plan.steps if step.dcpl is not None}
    steps = {step.source.address: step for step in plan.steps}
    results: dict[str, DatasetResult] = {}
    tree = _native.copy_tree(
        library(), source.id.id, target.id.id, _by_header(changed), lambda *_: watch_only(watch)
    )
    left = {_address(address): path for path, address in tree.datasets}
    for step in plan.steps:
        path = left.get(_address_of(step))
        if path is None:
            continue
        name = step.source.path
        made = h5d.open(target.id, path)
        tell = teller.of(name, step.source.nbytes)
        begin = time.perf_counter()
        result = _copy(run, source, step, made, options, plan, journal, tell)
        results[name] = replace(result, elapsed_s=time.perf_counter() - begin)
        teller.ended(step.source.nbytes)
    tree.finish()
    run.warnings += tree.warnings
    del steps
    for step in plan.steps:
        run.results.append(results.get(step.source.path) or _result(step, step.out_nbytes))
