"""What is found wrong with a file as a whole, and that the remedies help."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from chunkwise.files.native import damaged_metadata
from chunkwise.files.objects import walk
from chunkwise.files.unclosed import ReadOnlyFile, open_unclosed
from chunkwise.inspection.collect import object_facts
from chunkwise.inspection.facts import FileFacts, MetadataFacts
from chunkwise.inspection.finding import Finding
from chunkwise.inspection.findings.file import CHECKS
from chunkwise.inspection.format import format_facts, free_nbytes
from chunkwise.inspection.native import metadata_facts
from tests.inspect.test_format import crash
from tests.support.tools import paste
from tests.support.versions import HDF5, needs_sizes

MIB = 1 << 20


def facts_of(path: Path) -> FileFacts:
    with open_unclosed(path) or h5py.File(path) as file:
        objects = tuple(object_facts(file, entry) for entry in walk(file))
        return FileFacts(
            path=path.name,
            nbytes=path.stat().st_size,
            hdf5_version="",
            h5py_version="",
            file_format=format_facts(file, objects, path),
            metadata=metadata_facts(damaged_metadata(path), free_nbytes(file)),
            objects=objects,
        )


def findings_of(facts: FileFacts) -> dict[str, Finding]:
    return {finding.code: finding for check in CHECKS for finding in check(facts)}


def run(finding: Finding, folder: Path) -> None:
    """Run the first remedy as it would be pasted."""
    paste(finding.fixes[0].text, folder)


def make_days(path: Path, count: int, nbytes: int = 128 << 10, **options: Any) -> None:
    """Write one dataset after the other, each with its metadata before its data."""
    day = np.zeros(nbytes, "u1")
    with h5py.File(path, "w", **options) as file:
        for i in range(count):
            chunked = file.create_dataset(f"day {i:03d}", data=day, chunks=(nbytes // 2,))
            chunked.attrs["units"] = "K"


def metadata(**values: int) -> MetadataFacts:
    """Give the figures of an inconspicuous file, but for `values`."""
    names = MetadataFacts.__dataclass_fields__
    return MetadataFacts(**{name: values.get(name, 1) for name in names})


def plain_facts(tmp_path: Path) -> FileFacts:
    path = tmp_path / "plain.h5"
    make_days(path, 1, 1000)
    return facts_of(path)


SCATTERED = {"nbytes": MIB, "span_nbytes": 8 * MIB}
DENSE = {"nbytes": MIB, "span_nbytes": 8 * MIB - 1}


@pytest.mark.parametrize(
    ("code", "values", "severity"),
    [
        ("scattered-metadata", SCATTERED | {"extents": 99}, None),
        ("scattered-metadata", SCATTERED | {"extents": 100}, "note"),
        ("scattered-metadata", SCATTERED | {"extents": 999}, "note"),
        ("scattered-metadata", SCATTERED | {"extents": 1000}, "warning"),
        ("scattered-metadata", DENSE | {"extents": 1000}, None),
        ("cloud-unready", {"list_requests": 99, "blocks": 200}, None),
        ("cloud-unready", {"list_requests": 100, "blocks": 16}, None),
        ("cloud-unready", {"list_requests": 100, "blocks": 17}, "note"),
        ("cloud-unready", {"list_requests": 100, "blocks": 99}, "note"),
        ("cloud-unready", {"list_requests": 100, "blocks": 100}, "warning"),
        ("lost-space", {"unaccounted_nbytes": 0}, None),
        ("lost-space", {"unaccounted_nbytes": 99_999_999}, "note"),
        ("lost-space", {"unaccounted_nbytes": 100_000_000}, "warning"),
    ],
)
def test_how_bad_it_is(
    tmp_path: Path, code: str, values: dict[str, int], severity: str | None
) -> None:
    facts = replace(plain_facts(tmp_path), nbytes=256 * MIB, metadata=metadata(**values))
    found = {code: finding.severity for code, finding in findings_of(facts).items()}
    assert found == ({} if severity is None else {code: severity})


# --- not-closed ------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["write", "swmr"])
def test_not_closed(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "a file.h5"
    crash(path, mode)
    finding = findings_of(facts_of(path))["not-closed"]
    assert finding.severity == ("warning" if mode == "swmr" else "error")
    assert finding.evidence == {
        "flags": "write+swmr" if mode == "swmr" else "write",
        "unreadable_objects": 0,
    }
    if mode == "swmr":
        # Whoever says so may read it as it is, beside its writer.
        assert finding.fixes[0].text == "file = h5py.File('a file.h5', 'r', swmr=True)"
    # What they save is tested in files/test_unclosed.py.
    assert [fix.text for fix in finding.fixes][-2:] == [
        "chunkwise repack 'a file.h5' 'a file_repacked.h5'",
        "cp 'a file.h5' 'a file_cleared.h5' && h5clear -s --increment=0 'a file_cleared.h5'",
    ]


def test_a_name_that_looks_like_an_option(tmp_path: Path) -> None:
    path = tmp_path / "-s.h5"
    crash(path)
    assert findings_of(facts_of(path))["not-closed"].fixes[0].text == (
        "chunkwise repack ./-s.h5 ./-s_repacked.h5"
    )


# --- scattered-metadata ----------------------------------------------------------------


def test_scattered_metadata(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make_days(path, 105)
    facts = facts_of(path)
    finding = findings_of(facts)["scattered-metadata"]
    assert finding.severity == "note"
    assert facts.metadata is not None
    assert finding.evidence["extents"] == facts.metadata.extents
    assert 100 <= facts.metadata.extents <= 110
    assert finding.fixes[0].text == (
        "chunkwise repack --metadata-block 1048576 a.h5 a_repacked.h5"
    )


def test_a_writer_brings_metadata_together(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make_days(path, 105, meta_block_size=MIB)
    assert findings_of(facts_of(path)) == {}


# --- cloud-unready ---------------------------------------------------------------------


class Counting(ReadOnlyFile):
    """A file that counts its reads."""

    count = 0

    def readinto(self, buffer: Any) -> int:
        self.count += 1
        return super().readinto(buffer)


def requests(path: Path, **options: Any) -> int:
    """Count the requests of opening a file and each object in it."""
    with Counting(path) as stream, h5py.File(stream, "r", **options) as file:
        for name in file:
            assert file[name].id.get_num_chunks() == 2
        return stream.count


def test_cloud_unready(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make_days(path, 90, 256 << 10)
    facts = facts_of(path)
    finding = findings_of(facts)["cloud-unready"]
    assert finding.severity == "note"
    assert facts.metadata is not None
    assert finding.evidence["requests"] == facts.metadata.list_requests >= 100
    assert int(finding.evidence["requests"]) < requests(path)
    assert finding.evidence["paged_requests"] == 7
    command, other, reader = finding.fixes
    assert command.text == "chunkwise repack --paged 65536 a.h5 a_repacked.h5"
    assert other.text == "h5repack -S PAGE -G 65536 a.h5 a_repacked.h5"
    assert reader.text == "h5py.File('a_repacked.h5', page_buf_size=2097152)"
    run(finding, tmp_path)
    after = tmp_path / "a_repacked.h5"
    # HDF5 before 2.0 reads the superblock's first bytes alone.
    assert requests(after, page_buf_size=2097152) <= (7 if HDF5 >= (2, 0) else 8)
    assert findings_of(facts_of(after)) == {}


def many_groups(path: Path) -> None:
    """Make groups in the format that HDF5 writes if nobody asks for another."""
    with h5py.File(path, "w", libver="earliest") as file:
        for i in range(2000):
            file[f"cell{i}/size"] = i


def test_groups_in_the_oldest_format(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    many_groups(path)
    finding = findings_of(facts_of(path))["old-groups"]
    run(finding, tmp_path)
    saved = path.stat().st_size - (tmp_path / "a_repacked.h5").stat().st_size
    assert saved >= int(finding.evidence["saved_nbytes"]) > MIB


@pytest.mark.parametrize(("page_nbytes", "unready"), [(4096, True), (65536, False)])
def test_pages_may_be_too_small(tmp_path: Path, page_nbytes: int, unready: bool) -> None:
    path = tmp_path / "a.h5"
    make_days(path, 1, 1000, fs_strategy="page", fs_page_size=page_nbytes)
    found = metadata(list_requests=5000, blocks=20, nbytes=MIB)
    facts = replace(facts_of(path), metadata=found)
    assert ("cloud-unready" in findings_of(facts)) is unready


@pytest.mark.parametrize(
    ("chunk_nbytes", "metadata_nbytes", "page_nbytes"),
    [
        # A small page serves, and a small file stays small.
        (1000, 20_000, 64 << 10),
        (1536 << 10, 20_000, 64 << 10),
        # More metadata needs larger ones, if the chunks do not waste them.
        (5 * MIB, 3 * MIB, 256 << 10),
        (1536 << 10, 20 * MIB, 128 << 10),
    ],
)
def test_pages_fit_the_chunks(
    tmp_path: Path, chunk_nbytes: int, metadata_nbytes: int, page_nbytes: int
) -> None:
    path = tmp_path / "a.h5"
    make_days(path, 2, 2 * chunk_nbytes)
    facts = facts_of(path)
    assert facts.metadata is not None
    unready = replace(facts.metadata, list_requests=500, blocks=20, nbytes=metadata_nbytes)
    finding = findings_of(replace(facts, metadata=unready))["cloud-unready"]
    assert finding.evidence["page_nbytes"] == page_nbytes
    run(finding, tmp_path)
    after = (tmp_path / "a_repacked.h5").stat().st_size
    # Pages at the ends of metadata and data, and hardly more.
    assert after <= 1.05 * facts.nbytes + 2 * page_nbytes


# --- lost-space ------------------------------------------------------------------------


def make_lost(path: Path, lost_nbytes: int, kept_nbytes: int = MIB, **options: Any) -> None:
    with h5py.File(path, "w", **options) as file:
        file["kept"] = np.zeros(kept_nbytes // 2, "u1")
        file["lost"] = np.zeros(lost_nbytes, "u1")
        file["kept too"] = np.zeros(kept_nbytes // 2, "u1")
    # Of what is deleted in a later session, no record remains.
    with h5py.File(path, "r+") as file:
        del file["lost"]


@needs_sizes
def test_lost_space(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make_lost(path, 2 * MIB)
    facts = facts_of(path)
    finding = findings_of(facts)["lost-space"]
    assert finding.severity == "note"
    assert 2 * MIB <= finding.waste_nbytes <= 2 * MIB + 8192
    assert finding.fixes[0].text == "chunkwise repack a.h5 a_repacked.h5"
    run(finding, tmp_path)
    after = (tmp_path / "a_repacked.h5").stat().st_size
    assert facts.nbytes - after == pytest.approx(finding.waste_nbytes, abs=8192)


def test_little_lost_space(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make_lost(path, MIB - 8192)
    assert findings_of(facts_of(path)) == {}
    path = tmp_path / "b.h5"
    make_lost(path, MIB + 8192, 12 * MIB)
    assert findings_of(facts_of(path)) == {}


def test_space_on_record_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make_lost(path, 2 * MIB, fs_strategy="fsm", fs_persist=True)
    facts = facts_of(path)
    assert facts.file_format.free_nbytes >= 2 * MIB
    assert findings_of(facts) == {}


def test_heaps_and_unreadable_objects_may_explain_it(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make_lost(path, 2 * MIB)
    facts = facts_of(path)
    with h5py.File(path, "r+") as file:
        file["strings"] = ["a", "b"]
    assert findings_of(facts_of(path)) == {}
    unreadable = replace(facts.objects[-1], kind="unreadable", dataset=None)
    assert findings_of(replace(facts, objects=(*facts.objects, unreadable))) == {}


@pytest.mark.parametrize(
    ("nbytes", "chunk_nbytes"), [(12 * MIB, 3 * MIB), (15 * MIB, 5 * MIB), (3 * MIB, None)]
)
def test_ends_of_pages_are_not_lost(tmp_path: Path, nbytes: int, chunk_nbytes: int | None) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", fs_strategy="page", fs_page_size=4 * MIB) as file:
        for name in "ab":
            data = np.zeros(nbytes, "u1")
            chunks = None if chunk_nbytes is None else (chunk_nbytes,)
            file.create_dataset(name, data=data, chunks=chunks)
    facts = facts_of(path)
    assert facts.metadata is not None
    lost = facts.metadata.unaccounted_nbytes
    assert lost is None or lost > 0.1 * facts.nbytes
    assert findings_of(facts) == {}


@needs_sizes
def test_lost_in_pages(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make_lost(path, 2 * MIB, fs_strategy="page")
    assert "lost-space" in findings_of(facts_of(path))


@needs_sizes
def test_no_h5repack_where_it_cannot_be_trusted(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make_lost(path, 2 * MIB)
    with h5py.File(path, "r+") as file:
        file.create_dataset("x", data=range(100), compression="lzf")
    finding = findings_of(facts_of(path))["lost-space"]
    assert [fix.text for fix in finding.fixes] == ["chunkwise repack a.h5 a_repacked.h5"]


def test_without_metadata_nothing_is_found(tmp_path: Path) -> None:
    assert findings_of(replace(plain_facts(tmp_path), metadata=None)) == {}
