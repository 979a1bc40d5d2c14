"""Is something wrong with a file as a whole: its metadata, its space, its closing?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from chunkwise.grammar import format_size
from chunkwise.inspection.facts import DatasetFacts, FileFacts, MetadataFacts
from chunkwise.inspection.finding import Finding
from chunkwise.inspection.findings.subject import OCCAM, FileCheck, by_cost
from chunkwise.model.layout import AS_IT_IS, FileLayout, metadata_block
from chunkwise.model.readability import FORMAT_OF_LOW, SMALLER_LOW
from chunkwise.remedy import records
from chunkwise.remedy.records import Copy, Remedy
from chunkwise.verdicts import FileVerdict
from chunkwise.words import counted, format_seconds

# A request to object storage, without the bytes: what users of public clouds see, from
# 20 ms in the same region to 200 ms from elsewhere.
_REQUEST_S: Final = 0.05
# Judged is what even the nearest wait for.
_NEAR_REQUEST_S: Final = 0.02
# Five seconds of waiting for requests; who opens a file waits for that before any data.
_MANY_REQUESTS: Final = 100
# Readers of object storage fetch and keep blocks of 1 MiB or more, and libhdf5's own
# (ros3, since 1.14.3) the first 16 MiB: up to there, few fetches give all the metadata.
_FEW_BLOCKS: Final = 16

# A disk seeks in 10 ms, a parallel file system in 1 to 5: judged by what most have at least.
_SEEK_S: Final = 0.002
_MANY_EXTENTS: Final = 100
# Metadata that takes an eighth of the bytes among which it lies can be read through.
_SPREAD: Final = 8

# Less is within what blocks and pages leave at their ends, and not worth a copy.
_LOST_NBYTES: Final = 1 << 20
_LOST_SHARE: Final = 0.1

# What a group takes less in the format of HDF5 1.10, at the least, and few enough of them.
_OLD_GROUP_NBYTES: Final = 600
_MANY_GROUPS: Final = 1_000

# Page sizes to choose from, the smallest first: up to the largest that h5repack's users take.
_PAGES: Final = tuple(1 << power for power in range(16, 23))
# The most that pages may add to a file; beyond that, smaller pages are better.
_SLACK_SHARE: Final = 0.05
# Signature, superblock and its extension are read before there are any pages (measured).
_BEFORE_PAGES: Final = 3
# A page buffer is memory: 64 of the largest pages are 256 MiB.
_MOST_PAGES: Final = 64


def not_closed(facts: FileFacts) -> Iterator[Finding]:
    """Find a file that its writer has not closed."""
    flags = facts.file_format.flags
    if not flags:
        return
    unreadable = sum(entry.kind == "unreadable" for entry in facts.objects)
    lost = f"; objects in it that cannot be read: {unreadable:,}" if unreadable else ""
    swmr = "swmr" in flags
    # What cannot be read cannot be repacked.
    copies = () if unreadable else (Copy(facts.path, by_us=True),)
    saved = (*copies, records.ClearCopy(facts.path))
    yield Finding(
        code="not-closed",
        severity="warning" if swmr else "error",
        path=None,
        summary=(
            "A program is writing this file for others to follow (SWMR), or was killed before it "
            f"closed it: HDF5 opens it only for readers that say so{lost}. While it is written, "
            "read along; if no program writes it any more, make a copy that opens."
            if swmr
            else "The program that wrote this file did not close it, or is still writing: HDF5 "
            f"refuses to open it, and what was not flushed is missing{lost}. If no program "
            "is writing it any more, make a copy that opens."
        ),
        evidence={"flags": "+".join(flags), "unreadable_objects": unreadable},
        source="H5Fopen, H5Fstart_swmr_write; HDF5 file format specification, superblock 3",
        remedies=(records.FollowWriter(facts.path), *saved) if swmr else saved,
        verdict=FileVerdict.BUSY if facts.file_format.being_written else FileVerdict.LOOSE,
    )


def early_end(facts: FileFacts) -> Iterator[Finding]:
    """Find a file whose superblock states its end before that of its data."""
    stated = facts.file_format.early_end
    if stated is None:
        return
    yield Finding(
        code="early-end",
        severity="error",
        path=None,
        summary=(
            f"The superblock states that the file ends at byte {stated:,}, and it goes on to byte "
            f"{facts.nbytes:,}. HDF5 refuses what lies beyond the stated end; inspect reads it. "
            "Make a copy that opens."
        ),
        evidence={"stated_end": stated},
        source="H5Fopen; HDF5 file format specification, end of file address",
        remedies=(Copy(facts.path, by_us=True),),
        verdict=FileVerdict.LOOSE,
    )


def refused_here(facts: FileFacts) -> Iterator[Finding]:
    """Find a file that the format allows, and HDF5 of this process refuses in part."""
    said = facts.file_format.refused
    if said is None:
        return
    yield Finding(
        code="refused-here",
        severity="error",
        path=None,
        summary=f"{said}. Nothing is wrong with it, and inspect reads it. Make a copy that opens.",
        evidence={},
        source="HDF5 file format specification, data layout message, version 4",
        remedies=(Copy(facts.path, by_us=True),),
    )


def scattered_metadata(facts: FileFacts) -> Iterator[Finding]:
    """Find metadata that lies in many small pieces among the data."""
    found = facts.metadata
    if found is None or found.extents < _MANY_EXTENTS:
        return
    if found.span_nbytes < _SPREAD * found.nbytes:
        return
    yield Finding(
        code="scattered-metadata",
        severity=by_cost(seconds=_SEEK_S * found.extents),
        path=None,
        summary=(
            f"The file's metadata ({format_size(found.nbytes)}: names, types, where the chunks "
            f"are) lies in {counted(found.extents, 'place')} spread over "
            f"{format_size(found.span_nbytes)}: "
            "as many seeks of a disk, or up to as many requests to a server, before the data "
            "can be read."
        ),
        evidence={
            "metadata_nbytes": found.nbytes,
            "extents": found.extents,
            "span_nbytes": found.span_nbytes,
            "blocks_of_1MiB": found.blocks,
        },
        source=(
            f"H5Pset_meta_block_size, H5Pset_file_space_strategy; {OCCAM}, section 5.8.2 and "
            "Figure 21, found no effect of the block size on writing: it is reading that gains"
        ),
        remedies=_in_blocks(facts, found),
    )


def cloud_unready(facts: FileFacts) -> Iterator[Finding]:
    """Find a file that takes long to open and list from object storage."""
    found = facts.metadata
    if found is None or found.blocks <= _FEW_BLOCKS:
        return
    requests = found.list_requests
    if facts.file_format.space_strategy == "page":
        requests = min(requests, _paged_requests(found, facts.file_format.page_nbytes))
    if requests < _MANY_REQUESTS:
        return
    severity = by_cost(seconds=_NEAR_REQUEST_S * found.blocks)
    page_nbytes = page_that_serves(facts, found)
    paged = _paged_requests(found, page_nbytes)
    slack = _slack_of_all(facts, page_nbytes)
    yield Finding(
        code="cloud-unready",
        severity=severity,
        path=None,
        summary=(
            "From object storage, opening and listing this file takes "
            f"{counted(requests, 'request')}, "
            f"{_wait(requests)} at {1000 * _REQUEST_S:.0f} ms each; a reader that fetches 1 MiB "
            f"blocks and keeps them needs {found.blocks:,} to find all data ({_wait(found.blocks)}"
            f"). Stored in pages of {format_size(page_nbytes)} and read by pages, it would take "
            f"about {paged:,}; the pages add about {format_size(slack)} to the file, and need "
            f"HDF5 {FORMAT_OF_LOW} or later."
        ),
        evidence={
            "requests": requests,
            "blocks_of_1MiB": found.blocks,
            "seconds_per_request": _REQUEST_S,
            "metadata_nbytes": found.nbytes,
            "page_nbytes": page_nbytes,
            "paged_requests": paged,
            "page_slack_nbytes": slack,
        },
        source="H5Pset_file_space_strategy (H5F_FSPACE_STRATEGY_PAGE), H5Pset_page_buffer_size",
        remedies=_in_pages(facts, found, page_nbytes),
    )


def lost_space(facts: FileFacts) -> Iterator[Finding]:
    """Find a file with much unused space."""
    found = facts.metadata
    # Heaps and unreadable objects take space that nobody counts.
    unknown = any(entry.kind == "unreadable" for entry in facts.objects)
    if found is None or unknown or any(one.variable_length for one in _datasets(facts)):
        return
    # Space that a writer has taken and not yet linked looks like lost space.
    if facts.file_format.flags:
        return
    lost = found.unaccounted_nbytes - _page_ends(facts)
    if lost < max(_LOST_NBYTES, _LOST_SHARE * facts.nbytes):
        return
    must = max(1, facts.nbytes - lost)
    yield Finding(
        code="lost-space",
        severity=by_cost(nbytes=lost, times=facts.nbytes / must, filtered=False),
        path=None,
        summary=(
            f"{format_size(lost)} of the file's {format_size(facts.nbytes)} "
            f"({lost / facts.nbytes:.0%}) are in no use: what was deleted, or rewritten at "
            "another size, leaves its space behind. A copy is that much smaller."
        ),
        evidence={
            "lost_nbytes": lost,
            "file_nbytes": facts.nbytes,
            "share": round(lost / facts.nbytes, 4),
        },
        source="H5Ldelete, H5Pset_file_space_strategy; `h5stat -S` calls it unaccounted space",
        remedies=(_copy(facts),),
        waste_nbytes=lost,
    )


def old_groups(facts: FileFacts) -> Iterator[Finding]:
    """Find many groups that each have a B-tree and a heap of their own."""
    groups = sum(entry.kind == "group" for entry in facts.objects)
    saved = groups * _OLD_GROUP_NBYTES
    if facts.file_format.superblock_version > 1 or groups < _MANY_GROUPS:
        return
    if saved < max(_LOST_NBYTES, _LOST_SHARE * facts.nbytes):
        return
    yield Finding(
        code="old-groups",
        severity=by_cost(nbytes=saved, times=1 + saved / facts.nbytes, filtered=False),
        path=None,
        summary=(
            f"{counted(groups, 'group')} in the oldest format take a B-tree and a heap each. In "
            f"the format of HDF5 {FORMAT_OF_LOW}, a copy is at least {format_size(saved)} smaller "
            f"than {format_size(facts.nbytes)}; older HDF5 cannot read it."
        ),
        evidence={"groups": groups, "saved_nbytes": saved, "file_nbytes": facts.nbytes},
        source="H5Pset_libver_bounds; HDF5 file format specification, III.A and IV.A.2.g",
        remedies=(_copy(facts, FileLayout(low=SMALLER_LOW)),),
        waste_nbytes=saved,
    )


# --- remedies --------------------------------------------------------------------------


def _in_blocks(facts: FileFacts, found: MetadataFacts) -> tuple[Remedy, ...]:
    """Bring the metadata together."""
    if facts.file_format.space_strategy == "page":
        # A copy keeps the strategy, under which blocks have no effect.
        return _in_pages(facts, found, page_that_serves(facts, found))
    nbytes = metadata_block(found.nbytes)
    gathered = FileLayout(metadata_block_nbytes=nbytes)
    return _copy(facts, gathered), records.GatherMetadata(nbytes)


def _in_pages(facts: FileFacts, found: MetadataFacts, page_nbytes: int) -> tuple[Remedy, ...]:
    """Page a file, and then read it by pages."""
    # Room for all pages of metadata and some of data; libhdf5 wants a power of two.
    pages = min(_MOST_PAGES, 1 << math.ceil(found.nbytes / page_nbytes).bit_length() + 2)
    paged = FileLayout(page_nbytes=page_nbytes)
    return _copy(facts, paged), records.ReadPaged(facts.path, pages * page_nbytes)


def _copy(facts: FileFacts, rest: FileLayout = AS_IT_IS) -> Copy:
    pipelines = frozenset(one.filters for one in _datasets(facts))
    return Copy(facts.path, rest=rest, pipelines=pipelines)


def _paged_requests(found: MetadataFacts, page_nbytes: int) -> int:
    # Pages of metadata hold nothing else; a page buffer fetches each of them once.
    return _BEFORE_PAGES + math.ceil(found.nbytes / page_nbytes)


def _wait(requests: int) -> str:
    return format_seconds(requests * _REQUEST_S)


# --- space -----------------------------------------------------------------------------


def _datasets(facts: FileFacts) -> Iterator[DatasetFacts]:
    return (entry.dataset for entry in facts.objects if entry.dataset is not None)


def _page_ends(facts: FileFacts) -> int:
    """Count at most what the ends of pages leave empty, which is not lost but paged."""
    if facts.file_format.space_strategy != "page":
        return 0
    page = facts.file_format.page_nbytes
    # The last pages of metadata and of small data, and twice what is lost on average.
    return 2 * page + 2 * sum(_slack(dataset, page) for dataset in _datasets(facts))


def page_that_serves(facts: FileFacts, found: MetadataFacts) -> int:
    """Choose the smallest page by which opening takes few requests and data wastes little space.

    If no page does both, the largest of those in which it wastes little.
    """
    able = [p for p in _PAGES if _slack_of_all(facts, p) <= _SLACK_SHARE * found.raw_nbytes]
    few = (page for page in able if _paged_requests(found, page) <= _FEW_BLOCKS)
    return next(few, able[-1] if able else _PAGES[0])


def _slack_of_all(facts: FileFacts, page: int) -> int:
    """Estimate what pages add to a file."""
    return 2 * page + sum(_slack(dataset, page) for dataset in _datasets(facts))


def _slack(dataset: DatasetFacts, page: int) -> int:
    """Estimate what the data of one dataset leaves empty in pages."""
    if dataset.chunks is not None and dataset.chunks.allocated:
        pieces, nbytes = dataset.chunks.allocated, dataset.chunks.median_nbytes or 1
        uniform = dataset.chunks.smallest_nbytes == dataset.chunks.largest_nbytes
    elif dataset.layout == "contiguous" and dataset.stored_nbytes:
        pieces, nbytes, uniform = 1, dataset.stored_nbytes, True
    else:
        return 0
    if nbytes >= page:
        return pieces * (-nbytes % page if uniform else page // 2)
    rest = page % nbytes if uniform else nbytes // 2
    return pieces * rest // (page // nbytes)


CHECKS: Final[tuple[FileCheck, ...]] = (
    not_closed,
    early_end,
    refused_here,
    scattered_metadata,
    cloud_unready,
    lost_space,
    old_groups,
)
