"""What is there to know about a file, and in which order is it found out?"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import h5py
from h5py import h5d, h5o

from chunkwise import _native
from chunkwise.errors import CannotJudgeError, CorruptDataError, SelectionError, UsageError
from chunkwise.files.answers import keep_samples, kept, kept_samples
from chunkwise.files.around import Surroundings
from chunkwise.files.mended import Mended, early_end, open_mended, refused
from chunkwise.files.native import damaged_metadata, open_metadata
from chunkwise.files.objects import Entry, walk
from chunkwise.files.opening import find_dataset, full_name
from chunkwise.files.stored import data_end
from chunkwise.files.unclosed import open_readable
from chunkwise.handles.pending import flush_beside
from chunkwise.inspection.collect import forget_filters, object_facts
from chunkwise.inspection.dimensions import coordinates
from chunkwise.inspection.facts import FileFacts, FormatFacts, ObjectFacts, SampleFacts
from chunkwise.inspection.findings import find
from chunkwise.inspection.format import format_facts
from chunkwise.inspection.native import listed, metadata_facts
from chunkwise.inspection.patterns import pattern_facts
from chunkwise.inspection.sampling import choose, take_sample
from chunkwise.model.purpose import NO_SIGNS, Axis, Kind, Signs, purpose
from chunkwise.model.readers import Reader, everyone, reader
from chunkwise.model.traffic import Pattern
from chunkwise.names import HDF5_ERRORS, encode_name, is_url, printable, shown_url
from chunkwise.patterns import StatedPattern, of_stored, question, read
from chunkwise.remote.opening import open_url
from chunkwise.remote.urls import file_name, local_path
from chunkwise.verdicts import FileVerdict

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


# The most seconds for all sampling: a person waits for it.
SAMPLING_S: Final = 1.5
# Attributes of smaller datasets are not looked at.
_SMALL_NBYTES: Final = 1 << 20


def inspect(
    path: str | os.PathLike[str],
    dataset: str | None = None,
    *,
    access: Sequence[str | StatedPattern] = (),
    readers: Sequence[str | Reader] | None = None,
    sample: bool = True,
    metadata: bool = True,
    latency_s: float | None = None,
) -> FileFacts:
    """Collect the facts about a file, or about one dataset in it, and what is wrong.

    ``chunkwise inspect`` prints the same for one file.  libhdf5 crashes on some damaged files: the
    command works in a child process, but this function works in yours.

    Parameters
    ----------
    path : str or path
        An HDF5 or netCDF-4 file, or its URL.
    dataset : str, optional
        The path of one dataset; None collects the whole file.
    access : sequence of str, optional
        What you read, such as ``"line:0"`` or ``"1x600x600 weight 3"``
        (`chunkwise.patterns.parse`).  Datasets that the patterns fit are judged by them, and get
        offers of chunks for them; coordinates only if `dataset` names one.  By default they are
        judged by the reads that they are evidently made for (`DatasetFacts.purpose`).
    readers : sequence of str, optional
        Who will read the file: ``libhdf5-1.10``, ``libhdf5-2``, ``netcdf-c``, ``chunkwise``.
        None for the first three, and the library of this process.
    sample : bool
        Read some chunks of the dataset, or of the file's largest ones, to measure how fast they
        decode and how well they compress.
    metadata : bool
        Count the reads that opening the file needs; not done for one dataset.
    latency_s : float, optional
        Of a URL: for which time until the first byte of an answer `FileFacts.far` says how long
        this takes.  None for that of the first request.

    Returns
    -------
    FileFacts
        Its ``findings`` are what is wrong, the worst first; `FileFacts.as_dict` is what
        ``--json`` prints.

    Raises
    ------
    FileFormatError
        The file cannot be opened as HDF5.
    DatasetNotFoundError, NotADatasetError, CorruptDataError
        See `chunkwise.files.opening.find_dataset`.
    UsageError
        There is no reader of that name, or a pattern cannot be understood.
    SelectionError
        The patterns fit none of the datasets.
    RemoteError, FileChangedError
        A request for a URL has failed for good, or its object was replaced.

    Examples
    --------
    >>> facts = chunkwise.inspect("model.nc")             # doctest: +SKIP
    >>> [(each.severity, each.code, each.path) for each in facts.findings]  # doctest: +SKIP
    """
    named = everyone() if readers is None else readers
    served = tuple(reader(one) if isinstance(one, str) else one for one in named)
    request = _Request(dataset, read(access), served, sample, metadata)
    # A plugin may have been registered since the last call.
    forget_filters()
    path = (local_path(os.fspath(path)) if is_url(path) else None) or path
    if is_url(path):
        return _look_far(os.fspath(path), request, latency_s)
    if latency_s is not None:
        raise UsageError(
            f"{printable(os.fspath(path))}: a latency is for a URL; this file is here"
        )
    flush_beside(path)
    try:
        facts = _look(path, request)
    except (CorruptDataError, CannotJudgeError):
        early = refused(path)
        if early is None:
            raise
        return _look(path, request, early)
    lacks = any(_unreadable(facts))
    early = refused(path) if lacks else early_end(path)
    if early is None or not (lacks or _goes_beyond(early, path)):
        return facts
    beyond = _look(path, request, early)
    better = _unreadable(beyond) < _unreadable(facts)
    return beyond if better or not any(_unreadable(beyond)) else facts


class _Request(NamedTuple):
    """What the caller of `inspect` wants to know of a file."""

    dataset: str | None
    access: Sequence[StatedPattern]
    served: tuple[Reader, ...]
    sample: bool
    metadata: bool

    @property
    def listing(self) -> bool:
        """Whether to say what listing the file costs."""
        return self.metadata and self.dataset is None


def _goes_beyond(early: Mended, path: str | os.PathLike[str]) -> bool:
    """Whether data of a file lies beyond the end that it states: HDF5 does not read it."""
    with open_mended(path, early) as file:
        datasets = (each.identifier for each in walk(file) if each.kind == "dataset")
        return any(data_end(dataset) > (early.stated or 0) for dataset in datasets)


def _unreadable(facts: FileFacts) -> tuple[int, int]:
    """Count what is damaged, and what cannot be judged."""
    found = Counter(one.verdict for one in facts.findings)
    return found[FileVerdict.DAMAGED], found[FileVerdict.UNJUDGED]


def _look(
    path: str | os.PathLike[str], request: _Request, early: Mended | None = None
) -> FileFacts:
    """Inspect a file as it is, or beyond the end that it states too early."""
    # Without a cache, so that a chunk read twice for its speed is decoded twice.
    with open_readable(path, rdcc_nbytes=0) if early is None else open_mended(path, early) as file:
        gathered = _gathered(file, request)
        format_of = replace(
            format_facts(file, gathered.objects, path, gathered.type_versions),
            early_end=None if early is None else early.stated,
            refused=None if early is None or early.is_end else early.said,
        )
        known = damaged_metadata(path) if request.listing else None
        nbytes = Path(path).stat().st_size
        facts = _facts(os.fspath(path), nbytes, format_of, known, gathered)
    usual = request.served == everyone()
    measured = {
        path: answer
        for path, patterns in gathered.stated.items()
        if usual and (answer := kept(facts.path, path, question(patterns))) is not None
    }
    return replace(facts, findings=find(facts, request.served, gathered.stated, measured))


def _look_far(url: str, request: _Request, latency_s: float | None) -> FileFacts:
    """Inspect a file by its URL."""
    opened = open_url(url, None, rdcc_nbytes=0)
    source = opened.source

    def look(file: h5py.File, refused: str | None) -> FileFacts:
        gathered = _gathered(file, request)
        found = format_facts(file, gathered.objects, None, gathered.type_versions)
        known = open_metadata(file) if request.listing else None
        nbytes = file.id.get_filesize() if source is None else source.size
        format_of = replace(found, refused=refused)
        facts = _facts(shown_url(url), nbytes, format_of, known, gathered)
        # Remedies are for a copy, as nothing here can change the file.
        here = replace(facts, path=file_name(url) or "copy.h5")
        return replace(
            facts, copy=here.path, findings=find(here, request.served, gathered.stated, {})
        )

    with opened.file as file:
        if source is not None:
            source.look_around()
        facts = look(file, None)
        shown = opened.narrowed({"rdcc_nbytes": 0}) if any(_unreadable(facts)) else None
        if shown is not None:
            with shown[0] as narrow:
                facts = look(narrow, shown[1])
    return replace(facts, far=None if source is None else source.fetched(latency_s))


class _Gathered(NamedTuple):
    """The facts about each object, with what a sample of it and its purpose say."""

    objects: tuple[ObjectFacts, ...]
    type_versions: Mapping[str, int]
    stated: dict[str, tuple[Pattern, ...]]  # What is read of each dataset that is stated for


def _gathered(file: h5py.File, request: _Request) -> _Gathered:
    try:
        return _gathered_by(file, request, native=True)
    except HDF5_ERRORS:
        # What HDF5 refuses, it has words for.
        return _gathered_by(file, request, native=False)


def _gathered_by(file: h5py.File, request: _Request, *, native: bool) -> _Gathered:
    dataset, access = request.dataset, request.access
    found = _collected(file, dataset, native=native)
    samples = _samples(found) if request.sample else {}
    aside = coordinates(found.datasets()) if access and dataset is None else {}
    stated = _stated(access, file, found.facts, aside) if access else {}
    signs = Reading(file)
    collected = (
        _completed(each, request, samples.get(each.path), stated.get(each.path, ()), signs)
        for each in found.facts
    )
    return _Gathered(tuple(collected), found.type_versions, stated)


def _stated(
    access: Sequence[StatedPattern],
    file: h5py.File,
    objects: Iterable[ObjectFacts],
    coordinates: Mapping[str, str],
) -> dict[str, tuple[Pattern, ...]]:
    """Read the patterns for each dataset that they fit."""
    found: dict[str, tuple[Pattern, ...]] = {}
    reasons: list[SelectionError] = []
    for one in objects:
        dataset = one.dataset
        if dataset is None or one.path in coordinates or not dataset.can_be_chunked:
            continue
        assert dataset.shape is not None
        try:
            found[one.path] = tuple(
                of_stored(
                    access,
                    dataset.shape,
                    dataset.itemsize,
                    dataset.maxshape,
                    f"'{printable(one.path)}'",
                    Surroundings(file, one.path),
                )
            )
        except SelectionError as wrong:
            reasons.append(wrong)
    if reasons and not found:
        raise reasons[0]
    return found


def _facts(
    path: str,
    nbytes: int,
    format_of: FormatFacts,
    known: _native.Metadata | None,
    gathered: _Gathered,
) -> FileFacts:
    return FileFacts(
        path=path,
        nbytes=nbytes,
        hdf5_version=h5py.version.hdf5_version,
        h5py_version=h5py.version.version,
        file_format=format_of,
        metadata=metadata_facts(known, format_of.free_nbytes),
        objects=gathered.objects,
    )


class _Collected(NamedTuple):
    """The objects of a file."""

    file: h5py.File
    facts: list[ObjectFacts]
    # Of datasets, as far as they are open or known, by path.
    identifiers: Mapping[str, h5d.DatasetID]
    type_versions: Mapping[str, int]

    def identifier(self, path: str) -> h5d.DatasetID:
        """Open a dataset."""
        found = self.identifiers.get(path)
        return h5o.open(self.file.id, encode_name(path)) if found is None else found

    def datasets(self) -> dict[str, h5d.DatasetID]:
        """Open all of them."""
        known = {one.path: self.identifier(one.path) for one in self.facts if one.dataset}
        return {**self.identifiers, **known}


def _collected(file: h5py.File, dataset: str | None, *, native: bool) -> _Collected:
    """Collect the facts about each object, by the file's own bytes where that can be."""
    found = listed(file) if native and dataset is None else None
    if found is not None:
        return _Collected(file, found.facts, {}, found.type_versions)
    if dataset is None:
        entries = list(walk(file))
    else:
        name = full_name(file, dataset)
        entries = [Entry("/" + name.strip("/"), 0, "dataset", find_dataset(file, name).id)]
    datasets = [each for each in entries if each.kind == "dataset"]
    # What names the datasets of a file by their addresses; of one dataset HDF5 does.
    known = {each.address: each.path for each in datasets if each.address is not None}
    paths = known if dataset is None else None
    facts = [object_facts(file, entry, paths) for entry in entries]
    return _Collected(file, facts, {each.path: each.identifier for each in datasets}, {})


def _samples(found: _Collected) -> dict[str, SampleFacts]:
    """Read samples of the datasets that matter most, as far as time allows."""
    deadline = time.monotonic() + SAMPLING_S
    chosen = {each.path for each in choose(found.facts)}
    library = f"HDF5 {h5py.version.hdf5_version}"
    file = os.fsdecode(found.file.filename)
    known, anew = kept_samples(file, library), {}
    samples = {}
    for each in found.facts:
        if each.dataset is None or each.path not in chosen:
            continue
        taken = None
        if each.path in known:
            taken = SampleFacts.of(known[each.path])
        elif time.monotonic() < deadline:
            taken = take_sample(found.identifier(each.path), each.dataset, deadline=deadline)
            if taken is not None and time.monotonic() < deadline:
                anew[each.path] = taken.as_list()
        if taken is not None:
            samples[each.path] = taken
    if anew:
        keep_samples(file, library, anew)
    return samples


def _completed(
    each: ObjectFacts,
    request: _Request,
    sample: SampleFacts | None,
    stated: tuple[Pattern, ...],
    signs: Reading,
) -> ObjectFacts:
    """Add to a dataset its sample, what it is read by, and what these reads cost."""
    facts = each.dataset
    if facts is None:
        return each
    facts = replace(facts, sample=sample, taken_for=tuple(one.words for one in stated))
    if not stated and facts.shape is not None and facts.can_be_chunked:
        # As far as the file and the layout say it.  Of small ones nothing takes long.
        small = (facts.logical_nbytes or 0) < _SMALL_NBYTES
        said = NO_SIGNS if small else signs.of(each.path, facts.dimensions)
        chunks = None if facts.chunks is None else facts.chunks.shape
        facts = replace(facts, purpose=purpose(facts.shape, chunks, facts.itemsize, said))
    if request.dataset is not None or sample is not None:
        facts = replace(facts, patterns=pattern_facts(facts, request.served, stated))
    return replace(each, dataset=facts)
