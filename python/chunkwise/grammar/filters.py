"""How is a filter pipeline written, and what is it in HDF5 and to other tools?"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from chunkwise.errors import UsageError
from chunkwise.grammar import codecs
from chunkwise.grammar.numbered import given

if TYPE_CHECKING:
    import h5py

_NUMBERED: Final = re.compile(r"filter-([0-9]{1,5})", re.ASCII)
_LARGEST_ID: Final = 65535  # H5Z_FILTER_MAX
_MOST_FILTERS: Final = 32  # H5Z_MAX_NFILTERS
_NUMBER: Final = re.compile(r"-?[0-9]{1,10}", re.ASCII)

# How hard an encoder tries: for what its level promises, or to be done soon.  No file says it.
Effort: TypeAlias = Literal["as-stated", "fast"]
# The filter that can be fast, and the level that it then has in the file.
_FAST: Final = ("deflate", (1,))


@dataclass(frozen=True)
class Filter:
    """One filter of a pipeline, with its options in full."""

    # Making one checks it and completes it: ``Filter("gzip")`` is ``Filter("deflate", (4,))``.

    name: str  # ``deflate`` and its like, or ``filter-32123`` for a filter that has no name here
    # As written after the name: ``("nn", 32)``; without a name, its cd_values.
    options: codecs.Options = ()
    # ``fast`` (``deflate:fast``): level 1, by the fastest encoder; otherwise ``as-stated``.
    effort: Effort = "as-stated"

    def __post_init__(self) -> None:
        fast = codecs.ALIASES.get(self.name, self.name) == _FAST[0] and self.options == ("fast",)
        name, options = _FAST if fast else _checked(self.name, self.options)
        if fast:
            object.__setattr__(self, "effort", "fast")
        elif self.effort != "as-stated" and (name, options) != _FAST:
            raise UsageError(f"filter {name!r} has no effort to choose: write deflate:fast")
        # A frozen dataclass is completed this way; nothing changes it afterwards.
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "options", options)

    @classmethod
    def parse(cls, text: str) -> Filter:
        """Parse one filter, such as ``szip:nn:32``; see `Pipeline.parse`."""
        name, *written = (part.strip().lower() for part in text.split(":"))
        if _NUMBERED.fullmatch(name) and len(written) == 1:
            written = [part.strip() for part in written[0].split(",")]
        return cls(name, tuple(int(w) if _NUMBER.fullmatch(w) else w for w in written))

    @classmethod
    def from_cd(cls, filter_id: int, cd_values: codecs.CdValues) -> Filter:
        """Make a filter from what a file stores."""
        codec = codecs.CODECS_BY_ID.get(filter_id)
        options = codec.from_cd(cd_values) if codec else None
        if codec is None or options is None:
            return cls(f"filter-{filter_id}", given(filter_id, cd_values))
        return cls(codec.name, options)

    @property
    def filter_id(self) -> int:
        """HDF5's number for the filter (``H5Z_filter_t``)."""
        codec = codecs.CODECS.get(self.name)
        return codec.filter_id if codec else int(self.name.partition("-")[2])

    @property
    def cd_values(self) -> codecs.CdValues:
        """Client data values to give to ``H5Pset_filter``."""
        codec = codecs.CODECS.get(self.name)
        return codec.to_cd(self.options) if codec else tuple(map(int, self.options))

    @property
    def compresses(self) -> bool:
        """Whether it compresses; a filter without a name does not."""
        codec = codecs.CODECS.get(self.name)
        return codec is not None and codec.compresses(self.options)

    def __str__(self) -> str:
        if self.effort == "fast":
            return f"{self.name}:fast"
        if self.name in codecs.CODECS:
            return ":".join((self.name, *map(str, self.options)))
        return ":".join(filter(None, (self.name, ",".join(map(str, self.options)))))


def _checked(name: str, options: codecs.Options) -> tuple[str, codecs.Options]:
    """A name and its options in full, or a UsageError that says how to write them."""
    name = codecs.ALIASES.get(name, name)
    codec = codecs.CODECS.get(name)
    if codec is not None:
        full = codec.canonical(options)
        if full is None:
            written = ":".join((name, *map(str, options)))
            raise UsageError(f"filter {written!r} is not understood: write {codec.usage}")
        return name, full
    numbered = _NUMBERED.fullmatch(name)
    if numbered is None:
        known = [*codecs.CODECS, *codecs.ALIASES]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are none, {', '.join(known)}"
        raise UsageError(f"unknown filter {name!r}: {hint}")
    if not 1 <= int(numbered[1]) <= _LARGEST_ID:
        raise UsageError(f"{name!r}: filters are numbered from 1 to {_LARGEST_ID}")
    if not all(isinstance(value, int) and 0 <= value < 2**32 for value in options):
        raise UsageError(
            f"{name!r}: its values are whole numbers from 0 to 2**32 - 1, as in {name}:1,2,3"
        )
    return f"filter-{int(numbered[1])}", options


@dataclass(frozen=True)
class Pipeline:
    """The filters that a chunk passes when it is written, in that order."""

    # The filters; none for data stored as they are.  HDF5 allows 32.
    filters: tuple[Filter, ...] = ()

    def __post_init__(self) -> None:
        if len(self.filters) > _MOST_FILTERS:
            raise UsageError(f"{len(self.filters)} filters: HDF5 allows {_MOST_FILTERS}")

    @classmethod
    def parse(cls, text: str) -> Pipeline:
        """Parse a pipeline."""
        if text.strip().lower() == "none":
            return cls()
        parts = [part.strip() for part in text.split("+")]
        if "" in parts:
            raise UsageError(
                f"filters {text!r}: a name is missing; write none, deflate:6 or shuffle+deflate:4"
            )
        if "none" in (part.lower() for part in parts):
            raise UsageError(f"filters {text!r}: none stands alone")
        return cls(tuple(Filter.parse(part) for part in parts))

    @classmethod
    def from_dcpl(cls, dcpl: h5py.h5p.PropDCID) -> Pipeline:
        """Read the pipeline that a dataset has."""
        stored = (dcpl.get_filter(position) for position in range(dcpl.get_nfilters()))
        return cls(tuple(Filter.from_cd(code, tuple(values)) for code, _, values, _ in stored))

    def __str__(self) -> str:
        return "+".join(map(str, self.filters)) or "none"

    @property
    def effort(self) -> Effort:
        """``fast`` if a filter should be; no file keeps it."""
        return "fast" if any(one.effort == "fast" for one in self.filters) else "as-stated"

    @property
    def as_stated(self) -> Pipeline:
        """The same as a file keeps it: ``deflate:1`` for ``deflate:fast``."""
        return Pipeline(tuple(Filter(one.name, one.options) for one in self.filters))

    def apply(self, dcpl: h5py.h5p.PropDCID) -> None:
        """Append the filters to a property list from which a dataset will be made."""
        from h5py import h5z

        for one in self.filters:
            _require_encoder(one)
            if one.name == "szip":
                # H5Pset_szip adds the bits of the mask that H5Pset_filter does not know.
                dcpl.set_szip(*one.cd_values)
            else:
                # As h5py gives to unknown filters, too.
                codec = codecs.CODECS.get(one.name)
                is_optional = codec is None or codec.optional
                flag = h5z.FLAG_OPTIONAL if is_optional else h5z.FLAG_MANDATORY
                dcpl.set_filter(one.filter_id, flag, one.cd_values)

    def h5repack(self, dataset: str = "") -> tuple[str, ...] | None:
        """Give the arguments that make h5repack write this pipeline."""
        if ":" in dataset or "," in dataset:
            return None
        words = [_h5repack_word(one) for one in self.filters] or ["NONE"]
        prefix = f"{dataset}:" if dataset else ""
        arguments: list[str] = []
        for word in words:
            if word is None:
                return None
            arguments += ["-f", prefix + word]
        return tuple(arguments)

    def nccopy(self) -> str | None:
        """Give the arguments that make nccopy write this pipeline to every variable."""
        if not self.filters:
            return "-F none"
        last = self.filters[-1]
        # To nccopy level 0 means no filter at all.
        if last.name != "deflate" or last.options == (0,):
            return None
        before = [one.name for one in self.filters[:-1]]
        if before not in ([], ["shuffle"]):
            return None
        return f"-d {last.options[0]}{' -s' if before else ''}"


def _h5repack_word(one: Filter) -> str | None:
    """What h5repack calls a filter with its options."""
    codec = codecs.CODECS.get(one.name)
    if codec is not None and codec.h5repack is not None:
        return codec.h5repack(one.options)
    # h5repack must find the plugin (``HDF5_PLUGIN_PATH``), or it leaves the dataset as it was.
    # 1: the filter is optional, as in `Codec.optional`.
    values = one.cd_values
    return "UD=" + ",".join(map(str, (one.filter_id, 1, len(values), *values)))


def _can_encode(filter_id: int) -> bool:
    """Whether h5py's libhdf5 has the filter, and not for decoding only."""
    from h5py import h5z  # only here: names of filters are known without HDF5

    if not h5z.filter_avail(filter_id):
        return False
    return bool(h5z.get_filter_info(filter_id) & h5z.FILTER_CONFIG_ENCODE_ENABLED)


def _require_encoder(one: Filter) -> None:
    """Raise UsageError if libhdf5 cannot encode the filter, with or without hdf5plugin."""
    if _can_encode(one.filter_id):
        return
    installed = False
    with contextlib.suppress(ImportError):
        importlib.import_module("hdf5plugin")  # registers its filters with h5py's libhdf5
        installed = True
    if _can_encode(one.filter_id):
        return
    if one.name in codecs.CODECS and not installed:
        remedy = "pip install hdf5plugin"
    else:
        remedy = "put the folder of its plugin in HDF5_PLUGIN_PATH"
    raise UsageError(
        f"filter {one.name} (number {one.filter_id}) is not available to libhdf5: {remedy}"
    )
