"""Does one diagnosis name the cause that was made, and remedies that help?"""

import pytest

from chunkwise.diagnosis.reads import Cause, Reads, cause, decodes
from chunkwise.model.cost import Stored
from chunkwise.model.held import Cache
from chunkwise.model.readers import LIBHDF5_1, LIBHDF5_2, NETCDF_C, UNCACHED, Reader
from chunkwise.model.traffic import Pattern
from chunkwise.remedy.records import OpenNatively, SetCache

DAILY = Stored((365, 600, 600), (1, 600, 600), 4)  # Chunks of 1.4 MiB
STEPS = Stored((60, 100, 100), (1, 100, 100), 4)  # Of 39 KiB
LINES = Stored((400, 100, 100), (1, 10, 10), 4)  # Of 400 bytes
PLAIN = Stored((365, 600, 600), (1, 600, 600), 4, filtered=False)
WHOLE = Stored.of((365, 600, 600), None, 4)
FEW_SLOTS = Reader("few", "few", 64 << 20, 7, 0.75)
SERIES, ROWS = Pattern("series", (365, 1, 1)), Pattern("rows", (1, 1, 600))
PLACES = Pattern("places", (1, 1, 1), scattered=True, operations=10_000)
LISTED = Pattern(
    "listed", (1, 1, 1), operations=4,
    selections=tuple((((step, 0, 0), (1, 1, 1), (1, 1, 1), (1, 1, 1)),) for step in (0, 7, 0, 7)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("stored", "pattern", "who", "expected"),
    [
        (DAILY, Pattern("steps", (1, 600, 600)), LIBHDF5_1, Cause.HELD),
        (DAILY, ROWS, LIBHDF5_2, Cause.HELD),
        (DAILY, ROWS, LIBHDF5_1, Cause.CHUNK),
        (DAILY, SERIES, LIBHDF5_2, Cause.WALK),
        (STEPS, Pattern("series", (60, 1, 1)), NETCDF_C, Cause.HELD),
        (LINES, Pattern("series", (400, 1, 1)), LIBHDF5_2, Cause.HELD),
        (LINES, Pattern("series", (400, 1, 1)), FEW_SLOTS, Cause.SLOTS),
        (DAILY, PLACES, LIBHDF5_2, Cause.NO_ORDER),
        (STEPS, PLACES, LIBHDF5_2, Cause.HELD),
        (DAILY, LISTED, LIBHDF5_2, Cause.HELD),
        (DAILY, LISTED, UNCACHED, Cause.NO_ORDER),
        (PLAIN, SERIES, LIBHDF5_1, Cause.PIECES),
        (PLAIN, SERIES, LIBHDF5_2, Cause.WALK),
        (WHOLE, SERIES, LIBHDF5_1, Cause.PIECES),
    ],
)
def test_the_cause_is_named(
    stored: Stored, pattern: Pattern, who: Reader, expected: Cause
) -> None:
    assert cause(stored, pattern, who) is expected
    lost = expected not in (Cause.HELD, Cause.PIECES)
    assert (decodes(stored, pattern, who) >= 2) == lost


def test_reads_in_no_order_lose_what_the_cache_has_no_room_for() -> None:
    many, few = (
        Pattern("", (1, 1, 1), scattered=True, operations=number) for number in (3650, 100)
    )
    assert decodes(DAILY, many, LIBHDF5_1) == pytest.approx(10.0, rel=1e-3)
    assert decodes(DAILY, few, NETCDF_C) == pytest.approx(1.0, abs=0.15)


def reads(stored: Stored, *patterns: Pattern, filters: str = "deflate:1") -> Reads:
    return Reads("a.h5", "/x", stored, filters, patterns, (LIBHDF5_1,))


def test_the_cache_that_is_offered_loses_nothing() -> None:
    found = reads(DAILY, ROWS)
    assert found.causes() == {Cause.CHUNK}
    assert found.cache is not None
    (remedy,) = found.with_cache(found.cache, "netCDF4")
    assert remedy == SetCache("a.h5", "/x", 2 << 20, 521, "deflate:1", "netCDF4")
    given = Reader("given", "given", remedy.nbytes, remedy.nslots, 0.75)
    assert cause(DAILY, ROWS, given) is Cause.HELD


def test_no_reader_gets_less_than_it_has() -> None:
    both = Reads("a.h5", "/x", DAILY, "none", (ROWS,), (LIBHDF5_1, LIBHDF5_2))
    assert both.cache is not None
    assert both.cache.nbytes >= LIBHDF5_2.cache_nbytes
    assert both.cache.nslots >= (LIBHDF5_2.nslots or 0)


def test_without_chunks_there_is_no_cache() -> None:
    found = reads(WHOLE, SERIES)
    assert found.cache is None
    assert found.with_cache(found.cache) == ()
    assert len(found.with_cache(Cache(1, 521))) == 1


def test_chunkwise_is_a_remedy_if_its_own_cache_holds_the_chunks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for held, helps in ((400, True), (100, False)):
        ours = Reader("chunkwise", "chunkwise", held * DAILY.chunk_nbytes, None, None)
        monkeypatch.setattr("chunkwise.diagnosis.reads.reader", lambda _, ours=ours: ours)
        expected = (OpenNatively("a.h5", "/x"),) if helps else ()
        assert reads(DAILY, SERIES).natively == expected
        assert reads(DAILY, SERIES, filters="blosc:snappy:5").natively == ()
    single = Pattern("places", (1, 1, 1), scattered=True, of_one_read=True)
    assert reads(DAILY, single).natively
