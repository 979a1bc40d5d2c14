"""Are filters that do not earn their cost found, and those that do left alone?"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
import pytest

import chunkwise
from chunkwise.inspection.collect import dataset_facts
from chunkwise.inspection.doctor import plugin_folders
from chunkwise.inspection.facts import DatasetFacts, Encoding
from chunkwise.inspection.finding import Finding
from chunkwise.inspection.findings.filters import (
    CHECKS,
    filter_unavailable,
    filters_left_out,
    shuffle_missing,
    shuffle_useless,
    uncompressed,
    weak_compression,
)
from chunkwise.inspection.findings.subject import DatasetCheck, Subject
from chunkwise.inspection.sampling import take_sample
from tests.support.processes import ran

RNG = np.random.default_rng(0)
ROWS, COLUMNS = 300, 1000  # 1.2 MB of 4-byte values
NOISE = np.frombuffer(RNG.bytes(ROWS * COLUMNS * 4), "<u4").reshape(ROWS, COLUMNS)
# A random walk: its high bytes repeat, its low bytes do not, and shuffle sorts them.
WALK = np.cumsum(RNG.integers(-50, 51, (ROWS, COLUMNS)), axis=1).astype("<u4") + 10**6
# All four bytes of a value are alike: shuffle tears apart what repeats.
ALIKE = RNG.integers(0, 256, (ROWS, COLUMNS), "<u4") * 0x01010101

GZIP: dict[str, Any] = {"compression": "gzip", "compression_opts": 1}
# Filters that libhdf5 leaves out of chunks, and one that keeps their length.
OPTIONS: dict[str, dict[str, Any]] = {
    "lzf": {"compression": "lzf"},
    "szip": {"compression": "szip"},
    "blosc": dict(hdf5plugin.Blosc()),
    "shuffle": {"shuffle": True},
}


def bits(count: int) -> Any:
    """Values with so many random bits in each byte: deflate takes about that share."""
    mask = np.uint32(((1 << count) - 1) * 0x01010101)
    return NOISE & mask


def write(path: Path, data: Any, **options: Any) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=data, **({"chunks": (50, COLUMNS)} | options))
    return path


def subject_of(path: Path, sample: bool = True) -> Subject:
    with h5py.File(path, "r", rdcc_nbytes=0) as file:
        dataset = file["x"].id
        facts = dataset_facts(dataset)
        if sample:
            facts = replace(facts, sample=take_sample(dataset, facts))
    return Subject(str(path), "/x", facts, ())


def offered(found: Finding) -> str | None:
    """The filters of the layout that mends it; `tests/model/test_every_fix.py` writes it."""
    layouts = (fix.layout for fix in found.fixes)
    return next(one.datasets[0].filters for one in layouts if one is not None)


def codes(subject: Subject) -> list[str]:
    return [found.code for check in CHECKS for found in check(subject)]


# --- weak-compression ------------------------------------------------------------------


def test_weak_compression(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", NOISE, compression="gzip", compression_opts=6)
    (found,) = weak_compression(subject_of(path, sample=False))
    assert (found.code, found.severity, found.path) == ("weak-compression", "note", "/x")
    assert found.summary.startswith("deflate:6 saves ")
    assert found.evidence["raw_nbytes"] == NOISE.nbytes == found.waste_nbytes
    assert "decode_s" not in found.evidence
    (found,) = weak_compression(subject_of(path))
    assert float(found.evidence["decode_s"]) > 0
    assert "of one core" in found.summary
    assert offered(found) == "none"


@pytest.mark.parametrize(
    ("bits_of_noise", "options"),
    [
        (7, GZIP),  # Seven of eight bits are random: a little over 10% is saved.
        # Edge chunks are half empty; without compression they would be stored whole.
        (8, GZIP | {"chunks": (2 * ROWS, COLUMNS), "maxshape": (None, None)}),
        # Without compression none is weak.
        *((8, one) for one in ({}, {"shuffle": True}, {"fletcher32": True}, {"chunks": None})),
        (8, {"chunks": (1, 1000)}),
    ],
)
def test_compression_that_pays_or_is_not_there(
    tmp_path: Path, bits_of_noise: int, options: dict[str, Any]
) -> None:
    path = write(tmp_path / "a.h5", bits(bits_of_noise), **options)
    assert not list(weak_compression(subject_of(path)))


def test_weakness_is_that_of_the_chunks_stored(tmp_path: Path) -> None:
    """Chunks never written take no space, and are not what compression saved."""
    path = write(tmp_path / "a.h5", NOISE, compression="gzip", maxshape=(None, COLUMNS))
    with h5py.File(path, "r+") as file:
        file["x"].resize(10 * ROWS, 0)
    subject = subject_of(path)
    assert subject.facts.ratio is not None
    assert subject.facts.ratio > 9
    assert codes(subject)[0] == "weak-compression"


def test_what_else_the_pipeline_has_stays(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", NOISE, compression="gzip", shuffle=True, fletcher32=True)
    (found,) = weak_compression(subject_of(path))
    assert offered(found) == "fletcher32"


def test_small_data_and_filters_that_are_there_are_left_alone(tmp_path: Path) -> None:
    small = write(tmp_path / "a.h5", NOISE[:250], compression="gzip")
    assert codes(subject_of(small)) == []
    path = write(tmp_path / "b.h5", WALK, compression="lzf", shuffle=True, fletcher32=True)
    assert codes(subject_of(path)) == []


# Of four bytes three are random; the other is that of the row before.
BUT_ONE_BYTE = (NOISE & 0x00FFFFFF) | (NOISE[:1] & 0x1F000000)


@pytest.mark.parametrize(
    ("data", "shuffle", "word", "saving", "filters"),
    [
        (BUT_ONE_BYTE, False, "with", 0.1, "shuffle+deflate:1"),
        (ALIKE, True, "without", 0.5, "deflate:1"),
    ],
)
def test_shuffle_may_be_what_weak_compression_lacks_or_has(
    tmp_path: Path, data: Any, shuffle: bool, word: str, saving: float, filters: str
) -> None:
    path = write(tmp_path / "a.h5", data, shuffle=shuffle, **GZIP)
    (found,) = weak_compression(subject_of(path))
    assert f"{word.capitalize()} shuffle before it" in found.summary
    assert float(found.evidence[f"sample_saving_{word}_shuffle"]) > saving
    assert offered(found) == filters


# --- shuffle ---------------------------------------------------------------------------


def test_shuffle_missing(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", WALK, compression="gzip", compression_opts=4)
    (found,) = shuffle_missing(subject_of(path))
    assert (found.code, found.severity) == ("shuffle-missing", "note")
    assert offered(found) == "shuffle+deflate:4"
    saved = float(found.evidence["saved_nbytes"])
    assert before_less_after(path, "shuffle+deflate:4") == pytest.approx(saved, rel=0.1)


def before_less_after(path: Path, filters: str) -> int:
    """By how much a copy with other filters is smaller."""
    (done,) = chunkwise.repack(path, path.with_name("copy.h5"), filters=filters).datasets
    return done.stored_nbytes_before - done.stored_nbytes


def test_shuffle_useless(tmp_path: Path) -> None:
    """All bytes of a value are alike: shuffle tears apart what repeats."""
    data = np.repeat(RNG.integers(0, 256, ROWS * COLUMNS, "u1"), 4).view("<u4")
    path = write(tmp_path / "a.h5", data.reshape(ROWS, COLUMNS), compression="gzip", shuffle=True)
    (found,) = shuffle_useless(subject_of(path))
    assert (found.code, found.severity) == ("shuffle-useless", "note")
    assert offered(found) == "deflate:4"


@pytest.mark.parametrize("options", [{"shuffle": True}, {"shuffle": False}])
def test_shuffle_is_not_judged_without_a_sample(tmp_path: Path, options: dict[str, Any]) -> None:
    subject = subject_of(write(tmp_path / "a.h5", WALK, compression="gzip", **options), False)
    assert codes(subject) == []


def with_sample(facts: DatasetFacts, plain_nbytes: int, shuffled_nbytes: int) -> DatasetFacts:
    """Put other sizes in the place of those found, to stand exactly at a threshold."""
    assert facts.sample is not None
    encodings = (
        Encoding("deflate:4", 10_000, plain_nbytes),
        Encoding("shuffle+deflate:4", 10_000, shuffled_nbytes),
    )
    return replace(facts, sample=replace(facts.sample, encodings=encodings))


@pytest.mark.parametrize(
    ("check", "shuffled", "sizes", "found"),
    [
        (shuffle_missing, False, (5000, 4500), True),
        (shuffle_missing, False, (5000, 4501), False),
        (shuffle_missing, True, (5000, 4500), False),
        (shuffle_useless, True, (5000, 5000), True),
        (shuffle_useless, True, (5001, 5000), False),
        (shuffle_useless, False, (5000, 5000), False),
        # What is next to nothing with shuffle and without is not worth a word.
        (shuffle_missing, False, (499, 100), False),
        (shuffle_useless, True, (100, 499), False),
    ],
)
def test_thresholds_of_shuffle(
    tmp_path: Path, check: DatasetCheck, shuffled: bool, sizes: tuple[int, int], found: bool
) -> None:
    path = write(tmp_path / "a.h5", WALK, compression="gzip", shuffle=shuffled)
    subject = subject_of(path)
    subject = replace(subject, facts=with_sample(subject.facts, *sizes))
    assert bool(list(check(subject))) is found


@pytest.mark.parametrize(
    ("filters", "after"),
    [
        ("deflate:6", "shuffle+deflate:6"),
        ("fletcher32+lzf", "fletcher32+shuffle+lzf"),
        ("zstd:3+fletcher32", "shuffle+zstd:3+fletcher32"),
        ("lz4", "shuffle+lz4"),
        # These rearrange bytes or bits themselves, or do not look for repeated bytes.
        ("blosc:lz4:5", None),
        ("bitshuffle:lz4", None),
        ("bitshuffle+deflate:4", None),
        ("szip:nn:8", None),
        ("scaleoffset:in:0+deflate:4", None),
        ("bzip2:9", None),
        ("none", None),
    ],
)
def test_where_shuffle_belongs(tmp_path: Path, filters: str, after: str | None) -> None:
    subject = subject_of(write(tmp_path / "a.h5", WALK, compression="gzip"))
    subject = replace(subject, facts=replace(subject.facts, filters=filters))
    found = list(shuffle_missing(subject))
    assert bool(found) is (after is not None)
    if after is not None:
        assert any("shuffle" in fix.text.lower() for fix in found[0].fixes)


# --- uncompressed ----------------------------------------------------------------------


def large(path: Path, data: Any, **options: Any) -> Subject:
    """16 MiB of the same values over and over, further apart than deflate looks."""
    rows = -(-(16 << 20) // data[:1].nbytes)
    return subject_of(write(path, np.resize(data, (rows, COLUMNS)), **options))


@pytest.mark.parametrize("chunks", [(50, COLUMNS), None])
def test_uncompressed(tmp_path: Path, chunks: tuple[int, ...] | None) -> None:
    subject = large(tmp_path / "a.h5", WALK, chunks=chunks)
    (found,) = uncompressed(subject)
    assert (found.code, found.severity) == ("uncompressed", "note")
    assert (" in chunks a sample" in found.summary) is (chunks is None)
    assert offered(found) == found.evidence["filters"]
    saved = before_less_after(tmp_path / "a.h5", str(found.evidence["filters"]))
    assert saved >= float(found.evidence["saved_nbytes"]) * 0.9


@pytest.mark.parametrize(
    ("nbytes", "changes", "expected"),
    [
        (5000, {}, False),
        (4999, {}, True),
        (4999, {"stored_nbytes": (16 << 20) - 1}, False),
        *((4999, {"filters": one}, True) for one in ("shuffle", "fletcher32")),
        *((4999, {"filters": one}, False) for one in ("nbit", "filter-32123", "deflate:1")),
    ],
)
def test_half_is_not_under_half(
    tmp_path: Path, nbytes: int, changes: dict[str, Any], expected: bool
) -> None:
    subject = subject_of(write(tmp_path / "a.h5", WALK, chunks=None))
    facts = replace(with_sample(subject.facts, nbytes, 6000), stored_nbytes=16 << 20)
    changed = replace(subject, facts=replace(facts, **changes))
    assert bool(list(uncompressed(changed))) is expected


# --- filter-unavailable ----------------------------------------------------------------


def lacking(path: Path, filter_id: int, written: bool = True) -> Subject:
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset(
            "x", (4,), "i4", chunks=(4,), compression=filter_id, allow_unknown_filter=True
        )
        if written:
            dataset.id.write_direct_chunk((0,), b"0123456789abcdef")
    return subject_of(path)


def test_filter_unavailable(tmp_path: Path) -> None:
    (found,) = filter_unavailable(lacking(tmp_path / "a.h5", 32027))
    assert (found.code, found.severity, found.path) == ("filter-unavailable", "error", "/x")
    assert "FLAC (number 32027)" in found.summary
    assert h5py.version.hdf5_version in found.summary
    assert found.evidence["filter_id"] == 32027
    # None where HDF5_PLUGIN_PATH led to netCDF4's plugins alone.
    folders = [str(folder) for folder in plugin_folders()]
    assert found.evidence["plugin_folders"] == ("; ".join(folders) or "none")


READ_ELSEWHERE = """
import chunkwise, h5py, json, sys
from chunkwise.model.readers import reader
from chunkwise.inspection import inspect
for names in sys.argv[2:]:
    readers = tuple(map(reader, names.split())) or None
    found = [
        [finding.severity, finding.summary, [fix.text for fix in finding.fixes]]
        for finding in inspect(sys.argv[1], readers=readers, sample=False).findings
        if finding.code == "filter-unavailable"
    ]
    print(json.dumps(found))
"""


def unavailable(path: Path, *readers: str, plugin: bool = True) -> list[list[list[Any]]]:
    """Inspect in a process that has not imported hdf5plugin, or cannot: once for each readers."""
    hidden = "" if plugin else "import sys; sys.modules['hdf5plugin'] = None\n"
    environment = {k: v for k, v in os.environ.items() if k != "HDF5_PLUGIN_PATH"}
    done = ran(
        [sys.executable, "-c", hidden + READ_ELSEWHERE, path, *readers],
        check=True,
        env=environment,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_what_another_installed_reader_reads_is_a_note(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", WALK, **hdf5plugin.Bitshuffle())
    (((severity, summary, fixes),),) = unavailable(path, "")
    assert severity == "note"
    assert "read here by chunkwise.open and by h5py after 'import hdf5plugin'" in summary
    assert fixes[0].startswith("import hdf5plugin")
    # As pasted, where libhdf5 lacks the filter.
    paste = f"import chunkwise; print(int({fixes[-1]}[...].sum()))"
    done = ran([sys.executable, "-c", paste], check=True)
    assert int(done.stdout) == int(WALK.sum(dtype="i8"))
    (((severity, summary, _),),) = unavailable(path, "", plugin=False)
    assert severity == "note"
    assert "by chunkwise.open;" in summary


def test_the_reader_that_is_named_decides(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", WALK, **hdf5plugin.Bitshuffle())
    libraries = [f"chunkwise {one}" for one in ("libhdf5-2", "libhdf5-1.10", "netcdf-c")]
    alone, *others = unavailable(path, "chunkwise", *libraries)
    assert alone == []
    for ((severity, summary, fixes),) in others:
        assert severity == "error"
        assert "cannot be read by libhdf5 alone" in summary
        assert fixes


def test_what_nothing_installed_reads_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", WALK.astype("f4"), **hdf5plugin.Zfp(rate=16))
    ((found,),) = unavailable(path, "")
    assert found[0] == "note"
    for ((severity, summary, _),) in unavailable(path, "", "chunkwise", "libhdf5-2", plugin=False):
        assert severity == "error"
        assert "It cannot be read here" in summary


def test_nothing_written_needs_no_filter(tmp_path: Path) -> None:
    subject = lacking(tmp_path / "a.h5", 32027, written=False)
    assert subject.facts.unavailable_filters == (32027,)
    assert codes(subject) == []


# --- all of them -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda file: file.create_dataset("x", data="text"),
        lambda file: file.create_dataset("x", data=h5py.Empty("f4")),
        lambda file: file.create_dataset("x", (0, 5), "f4", chunks=(4, 5), maxshape=(None, 5)),
        lambda file: file.create_dataset("x", (500, 1000), "f4", compression="gzip", chunks=True),
        lambda file: file.create_dataset("x", data=7),
        lambda file: file.create_dataset("x", (10,), h5py.vlen_dtype("i4"), compression="gzip"),
    ],
)
def test_datasets_of_other_kinds(tmp_path: Path, make: Callable[[h5py.File], Any]) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        make(file)
    assert codes(subject_of(tmp_path / "a.h5")) == []


# --- chunks without their filters ---------------------------------------------------------


def test_chunks_without_their_filters(tmp_path: Path) -> None:
    # LZF leaves out what does not shrink; of 6 chunks, 3 are noise.
    data = np.where(np.arange(ROWS)[:, None] < ROWS // 2, WALK & 0xFF, NOISE)
    path = write(tmp_path / "some.h5", data, compression="lzf", fletcher32=True)
    (found,) = filters_left_out(subject_of(path, sample=False))
    assert found.severity == "note"
    assert found.evidence == {"filters": "lzf+fletcher32", "chunks": 6, "chunks_masked": 3}
    (fix,) = found.fixes
    assert fix.text == f"chunkwise repack --filter /x:lzf+fletcher32 {path} some_repacked.h5"


def test_what_filters_that_keep_a_chunks_length_lead_to(tmp_path: Path) -> None:
    path = tmp_path / "one.h5"
    with h5py.File(path, "w") as file:
        made = file.create_dataset("x", WALK.shape, "<u4", chunks=(50, COLUMNS), shuffle=True)
        # First: of a chunk that is there libhdf5 would keep the mask here, too.
        made.id.write_direct_chunk((50, 0), WALK[50:100].tobytes(), 1)
        made[:50], made[100:] = WALK[:50], WALK[100:]
    (found,) = filters_left_out(subject_of(path, sample=False))
    assert found.severity == "warning"
    assert found.summary.startswith("1 of 6 chunks were stored without")
    # It is as the finding says: read right, and wrong once libhdf5 has stored it again.
    with h5py.File(path, "r+") as file:
        assert np.array_equal(file["x"], WALK)
        file["x"][50:100] = WALK[50:100]
    with h5py.File(path) as file:
        assert not np.array_equal(file["x"][50:100], WALK[50:100])


@pytest.mark.parametrize("filters", ["lzf", "szip", "blosc", "shuffle"])
def test_nothing_is_left_out_of_files_of_ours(filters: str, tmp_path: Path) -> None:
    plain = write(tmp_path / "plain.h5", NOISE)
    assert not list(filters_left_out(subject_of(plain, sample=False)))
    chunkwise.repack(plain, tmp_path / "ours.h5", filters=filters)
    assert not list(filters_left_out(subject_of(tmp_path / "ours.h5", sample=False)))
    written = write(tmp_path / "written.h5", NOISE, **OPTIONS[filters])
    with chunkwise.open(written, "r+") as file:
        dataset = file["x"]
        assert isinstance(dataset, chunkwise.Dataset)
        dataset[...] = NOISE
    assert not list(filters_left_out(subject_of(written, sample=False)))


def test_a_checksum_alone_is_never_in_danger(tmp_path: Path) -> None:
    path = write(tmp_path / "sum.h5", WALK, fletcher32=True)
    with h5py.File(path, "r+") as file:
        file["x"].id.write_direct_chunk((0, 0), WALK[:50].tobytes(), 1)
    subject = subject_of(path, sample=False)
    assert subject.facts.chunks is not None
    assert subject.facts.chunks.masked == 1
    assert not list(filters_left_out(subject))
    with h5py.File(path, "r+") as file:
        file["x"][:50] = NOISE[:50]
    with h5py.File(path) as file:
        assert np.array_equal(file["x"][:50], NOISE[:50])
