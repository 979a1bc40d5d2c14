"""Facts about files that do not exist, and how they are shown, for tests of that."""

import io
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console

from chunkwise.inspection.facts import (
    ChunkFacts,
    DatasetFacts,
    Encoding,
    FileFacts,
    FormatFacts,
    MetadataFacts,
    ObjectFacts,
    PatternFacts,
    SampleFacts,
    Source,
    Survival,
)
from chunkwise.inspection.finding import Finding
from chunkwise.inspection.render import print_file, print_one_dataset
from chunkwise.remedy.fix import Fix

CHUNKS = ChunkFacts(
    shape=(1, 100, 200),
    nbytes=80_000,
    grid=1_234,
    allocated=1_200,
    index="v1 B-tree",
    smallest_nbytes=1_111,
    median_nbytes=22_222,
    largest_nbytes=33_333,
    unfiltered=17,
    masked=0,
    edge_nbytes=4_321,
    pairs=1_199,
    adjacent=987,
    backward=65,
    span_nbytes=7_654_321,
    order_known=True,
)
SAMPLE = SampleFacts(
    chunks=3,
    raw_nbytes=240_000,
    stored_nbytes=66_000,
    read_s=0.0042,
    encodings=(Encoding("shuffle+deflate:4", 240_000, 48_000),),
)


def survival(reader: str, decodes: float = 1.0, **fields: Any) -> Survival:
    return replace(Survival(reader, 0, 0, decodes, 2.5 * decodes), **fields)


PATTERNS = (
    PatternFacts(
        name="line along 0",
        block=(1_234, 1, 1),
        chunks=1_234,
        selected_nbytes=4_936,
        decoded_nbytes=98_720_000,
        amplification=20_000.0,
        read_s=1.8,
        survival=(
            survival("libhdf5-1.10", 1_080.0, reloads=1_234, collisions=713),
            survival("libhdf5-2", 300.0, reloads=234),
            survival("netcdf-c"),
            survival("this process"),
        ),
    ),
    PatternFacts("all", (1_234, 100, 200), 1_234, 98_720_000, 98_720_000, 1.0, 1.8, ()),
)
DATASET = DatasetFacts(
    shape=(1_234, 100, 200),
    maxshape=(None, 100, 400),
    dimensions=("time", "lat", None),
    is_scale=False,
    dtype="float32",
    byte_order="little",
    itemsize=4,
    variable_length=False,
    layout="chunked",
    sources=None,
    mappings=None,
    chunks=CHUNKS,
    filters="shuffle+deflate:4",
    unavailable_filters=(),
    fill_value="-9999.0",
    fill_time="if set",
    allocation_time="incremental",
    logical_nbytes=98_720_000,
    stored_nbytes=20_000_000,
    ratio=4.936,
    sample=SAMPLE,
    patterns=PATTERNS,
)
VIRTUAL = replace(
    DATASET,
    layout="virtual",
    chunks=None,
    filters="none",
    sources=(
        Source("2001.h5", "/t", None),
        Source(".", "/spare", None),
        Source("2002.h5", "/t", "no such file"),
        Source("2003.h5", "/t", None),
    ),
    mappings=4,
    stored_nbytes=None,
    ratio=None,
    sample=None,
    patterns=None,
)
FORMAT = FormatFacts(
    superblock_version=2,
    oldest_reader="1.8",
    userblock_nbytes=0,
    space_strategy="fsm_aggr",
    space_persistent=False,
    page_nbytes=4_096,
    free_nbytes=0,
    flags=(),
)
METADATA = MetadataFacts(
    open_requests=3,
    open_nbytes=700,
    list_requests=1_210,
    list_nbytes=345_678,
    index_requests=97,
    index_nbytes=87_654,
    nbytes=456_789,
    extents=43,
    span_nbytes=19_000_000,
    blocks=18,
    raw_nbytes=20_000_000,
    unaccounted_nbytes=12_345,
)


@dataclass(frozen=True, slots=True)
class Said(Finding):
    """A finding whose remedies are said by these lines."""

    fixes: tuple[Fix, ...] = ()


def finding(
    path: str | None = "/t2m", code: str = "chunk-exceeds-cache", **fields: Any
) -> Finding:
    made = Said(
        code=code,
        severity="warning",
        path=path,
        summary=(
            "Reading a line along time decodes each chunk 1,080 times, since the chunks of "
            "one line, 94.1 MiB, are more than the cache of libhdf5 before 2.0 holds."
        ),
        evidence={"cache_nbytes": 1_048_576, "decodes": 1_080.0},
        source="'NetCDF-4 Performance Report' (2008), section 4",
        fixes=(
            Fix("h5py", "file = h5py.File('model.nc', rdcc_nbytes=128 * 1024**2)"),
            Fix("nccopy", "nccopy -c time/365,lat/10,lon/10 model.nc model_rechunked.nc"),
        ),
        waste_nbytes=98_720_000,
    )
    return replace(made, **fields)


def dataset(path: str = "/t2m", facts: DatasetFacts = DATASET, **fields: Any) -> ObjectFacts:
    return replace(ObjectFacts(path, path.count("/"), "dataset", 2, dataset=facts), **fields)


def file_facts(*objects: ObjectFacts, **fields: Any) -> FileFacts:
    """Make a file of a root group and these objects."""
    members = objects or (dataset(),)
    made = FileFacts(
        path="model.nc",
        nbytes=21_000_000,
        hdf5_version="2.0.0",
        h5py_version="3.16.0",
        file_format=FORMAT,
        metadata=METADATA,
        objects=(ObjectFacts("/", 0, "group", 3), *members),
    )
    return replace(made, **fields)


def shown(facts: FileFacts, *, columns: int = 80, single: bool = False, **options: Any) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=columns)
    (print_one_dataset if single else print_file)(facts, console, **options)
    return stream.getvalue()


def one(**changes: Any) -> FileFacts:
    """Facts as they come for a single dataset."""
    entry = dataset(facts=replace(DATASET, **changes))
    return file_facts(objects=(entry,), metadata=None)
