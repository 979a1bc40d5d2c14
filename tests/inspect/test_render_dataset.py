"""Is each fact about one dataset shown, and what reading it costs?"""

from dataclasses import fields, replace
from typing import Any

import pytest

from chunkwise.inspection.facts import FileFacts
from chunkwise.inspection.render import patterns
from chunkwise.model.purpose import Purpose, Use
from chunkwise.model.readers import LIBHDF5_1, LIBHDF5_2
from tests.support import inspect_fakes
from tests.support.inspect_fakes import CHUNKS, DATASET, PATTERNS, SAMPLE, VIRTUAL, one, survival


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process have the defaults of libhdf5 2, whichever it has."""
    own = replace(LIBHDF5_2, name="this process")
    monkeypatch.setattr(patterns, "this_process", lambda: own)


def shown(facts: FileFacts, *, columns: int = 80) -> str:
    return inspect_fakes.shown(facts, columns=columns, single=True)


# A value that differs from that of the fake, for each field.
OTHERS: dict[str, Any] = {
    "shape": (1_234, 100, 201),
    "maxshape": (1_234, 100, 400),
    "dimensions": None,
    "is_scale": True,
    "dtype": "float64",
    "byte_order": "big",
    "itemsize": 8,
    "variable_length": True,
    "layout": "compact",
    "sources": VIRTUAL.sources,
    "mappings": 4,
    "chunks": None,
    "filters": "none",
    "unavailable_filters": (32_123,),
    "fill_value": "default",
    "fill_time": "never",
    "allocation_time": "early",
    "logical_nbytes": None,
    "stored_nbytes": 20_000_001,
    "ratio": 5.1,
    "sample": None,
    "patterns": None,
    "purpose": Purpose((Use("maps", (1, 100, 201)),), "each chunk is one of them"),
    "unlisted": "bad index",
    "taken_for": ("'all' was taken for 1 block.",),
}


def test_each_fact_about_a_dataset_is_shown() -> None:
    assert set(OTHERS) == {field.name for field in fields(DATASET)}
    usual = shown(one())
    for name, other in OTHERS.items():
        changes = {name: other}
        if name in ("sources", "mappings"):
            changes["layout"] = "virtual"
            before = shown(one(layout="virtual"))
        else:
            before = usual
        assert shown(one(**changes)) != before, name


def test_each_fact_about_chunks_is_shown() -> None:
    usual = shown(one())
    for field in fields(CHUNKS):
        value = getattr(CHUNKS, field.name)
        other: Any
        match value:
            case bool():
                other = not value
            case int():
                other = 3 * value + 1
            case str():
                other = "fixed array"
            case _:
                other = (2, 100, 200)
        changed = one(chunks=replace(CHUNKS, **{field.name: other}))
        assert shown(changed) != usual, field.name


def test_each_fact_about_a_sample_is_shown() -> None:
    usual = shown(one())
    others: dict[str, Any] = {
        "chunks": 5,
        "raw_nbytes": 250_000,
        "stored_nbytes": 77_000,
        "read_s": 0.01,
        "encodings": (),
    }
    for name, other in others.items():
        changed = one(sample=replace(SAMPLE, **{name: other}))
        assert shown(changed) != usual, name
    assert "shuffle+deflate:4 makes 46.9 KiB of 234.4 KiB (20%)" in usual


# --- patterns --------------------------------------------------------------------------


def test_reader_of_this_process_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    own = replace(LIBHDF5_1, name="this process")
    monkeypatch.setattr(patterns, "this_process", lambda: own)
    text = shown(one())
    assert "libhdf5-1.10 (here)" in text
    assert text.count("(here)") == 2  # with its explanation
    # It has a row of its own where it is like none of the libraries.
    monkeypatch.setattr(patterns, "this_process", lambda: replace(own, cache_nbytes=12_345))
    assert "(here)" not in shown(one())


def test_little_that_is_lost_is_not_rounded_away() -> None:
    pattern = replace(PATTERNS[0], chunks=10_000, survival=(survival("libhdf5-2", reloads=1),))
    assert " 99% " in shown(one(patterns=(pattern,)))


@pytest.mark.parametrize("columns", [80, 60, 20])
def test_figures_are_never_cut(columns: int) -> None:
    huge = replace(
        PATTERNS[0],
        block=(1_234_567, 1_234_567, 1_234_567),
        chunks=1_234_567_890,
        selected_nbytes=10**15,
        decoded_nbytes=10**18,
        amplification=123_456_789.0,
        survival=(survival("libhdf5-1.10", 1e7, reloads=1_234_567_890, collisions=12_345_678),),
    )
    text = shown(one(patterns=(huge,)), columns=columns)
    assert "…" not in text
    for figure in ("1,234,567,890", "888.2 PiB", "123,000,000", "12,345,678", "10,000,000"):
        assert figure in text
