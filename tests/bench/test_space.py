"""Which combinations does a space come to, and what of it is refused?"""

from collections.abc import Mapping
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwise.errors import UsageError
from chunkwise.measure.axes import AXES
from chunkwise.measure.planning import Plan, check, spell_out
from chunkwise.measure.space import Space
from chunkwise.measure.target import look
from chunkwise.trials.readers import READERS
from tests.support.golden import assert_golden, refused

VALUES: dict[str, tuple[str, ...]] = {
    "operation": ("read", "write"),
    "format": ("netcdf4", "classic"),
    "chunk": ("stored", "contiguous", "auto"),
    "page-cache": ("warm", "cold"),
    "reader": tuple(READERS),
    "threads": ("default", "1", "2"),
    "cache": ("default", "1MiB", "16MiB"),
    "w0": ("default", "0", "0.5", "1"),
    "sieve": ("default", "0", "1MiB"),
    "alloc-time": ("default", "early"),
}


@st.composite
def axes(draw: st.DrawFn) -> dict[str, tuple[str, ...]]:
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True, max_size=4))
    return {
        name: tuple(draw(st.lists(st.sampled_from(VALUES[name]), min_size=1, unique=True)))
        for name in names
    }


def points(design: str, given_axes: Mapping[str, tuple[str, ...]]) -> list[dict[str, str]] | None:
    """Spell a space out; None where something of it concerns nobody."""
    try:
        return Space(given_axes, design).points(("step", "all"))
    except UsageError:
        return None


@settings(max_examples=40, deadline=None)
@given(axes(), st.sampled_from(["product", "each"]))
def test_every_point_is_whole_and_unique(
    given_axes: dict[str, tuple[str, ...]], design: str
) -> None:
    found = points(design, given_axes)
    for point in found or ():
        assert list(point) == list(AXES)
        for name, text in point.items():
            concerned = AXES[name].concerns(point)
            assert concerned or text == AXES[name].default
    assert found is None or len({tuple(p.items()) for p in found}) == len(found)


@settings(max_examples=40, deadline=None)
@given(axes())
def test_nothing_asked_for_is_left_out(given_axes: dict[str, tuple[str, ...]]) -> None:
    for point_list in (points("product", given_axes), points("each", given_axes)):
        for name, texts in given_axes.items() if point_list is not None else ():
            got = {point[name] for point in point_list or ()}
            assert {text for text in texts if text != AXES[name].default} <= got


@settings(max_examples=40, deadline=None)
@given(axes())
def test_each_differs_from_the_standard_in_one_axis(
    given_axes: dict[str, tuple[str, ...]],
) -> None:
    found = points("each", given_axes) or []
    for point in found[1:]:
        standard = found[0]
        differ = [name for name in AXES if point[name] != standard[name]]
        # A reader, an operation or a format takes along what makes no difference to it.
        told = [n for n in differ if AXES[n].concerns({**point, n: "1"})]
        apart = {"reader", "operation", "format"} & set(differ)
        assert len(differ) == 1 or (apart and set(told) <= set(differ))


def test_a_product_spells_out_the_last_axis_fastest() -> None:
    space = Space.of(access=["all"], reader=["libhdf5"], cache=["1MiB", "2MiB"], w0=["0", "1"])
    found = space.points(())
    assert [(p["cache"], p["w0"]) for p in found] == [
        ("1MiB", "0"), ("1MiB", "1"), ("2MiB", "0"), ("2MiB", "1"),
    ]  # fmt: skip


def test_a_list_is_what_it_says() -> None:
    trials = ({"cache": "2MiB"}, {"reader": "h5py", "access": "line:0"}, {"cache": "2MiB"})
    space = Space({"reader": ("libhdf5",), "access": ("all",)}, "list", trials)
    found = [(p["reader"], p["access"], p["cache"]) for p in space.points(())]
    assert found == [("libhdf5", "all", "2MiB"), ("h5py", "line:0", "default")]


def test_what_makes_no_difference_is_measured_once() -> None:
    space = Space.of(
        access=["all"], reader=["libhdf5", "chunkwise"], cache=["default", "1MiB"],
        threads=["1", "2"], page_cache=["warm", "cold"], operation=["read", "write"],
    )  # fmt: skip
    found = space.points(())
    # libhdf5: 2 caches, warm and cold, and 2 caches written; chunkwise: threads, warm and
    # cold, and threads that write.
    assert len(found) == 4 + 2 + 4 + 2
    assert {p["threads"] for p in found if p["reader"] == "libhdf5"} == {"default"}


def test_what_only_chunkwise_makes_fast_is_deflate_1_to_the_others() -> None:
    space = Space.of(
        access=["all"], reader=["libhdf5", "chunkwise", "chunkwise-py"],
        filter=["deflate:1", "deflate:fast"], operation=["write"],
    )  # fmt: skip
    assert [(p["filter"], p["reader"]) for p in space.points(())] == [
        ("deflate:1", "libhdf5"), ("deflate:1", "chunkwise"), ("deflate:1", "chunkwise-py"),
        ("deflate:fast", "chunkwise"), ("deflate:fast", "chunkwise-py"),
    ]  # fmt: skip


OF_NOBODY: list[dict[str, list[str]]] = [
    {"reader": ["chunkwise"], "cache": ["1MiB"]},
    {"reader": ["h5py"], "threads": ["4"]},
    {"reader": ["h5py"], "alloc_time": ["early"]},
    {"reader": ["h5py"], "conversion": ["1MiB"]},
    {"reader": ["h5py"], "libhdf5": ["/a/libhdf5.so"]},
    {"reader": ["libhdf5"], "operation": ["write"], "filter": ["shuffle+deflate:fast"]},
    {"reader": ["chunkwise"], "filter": ["deflate:fast"]},
    {"operation": ["write"], "page_cache": ["cold"]},
]
BAD = """
operation=delete cache=1.5 conversion=0 nslots=-1 threads=-1 threads=² w0=1.1 w0=nan
alloc-time=sometimes reader=netcdf colour=red
"""


def test_what_is_refused() -> None:
    def of_nobody(values: dict[str, list[str]]) -> None:
        Space.of("product", access=["all"], **values).points(())

    def bad(text: str) -> None:
        name, _, value = text.partition("=")
        Space({name: (value,)})

    assert_golden(
        "bench-refused",
        refused(of_nobody, OF_NOBODY),
        refused(bad, BAD.split()),
        refused(lambda design: Space({}, design), ["all", "list"]),
        refused(lambda name: Space({name: ()}), ["cache"]),
    )


# --- for a dataset ------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=np.zeros((8, 6), "i4"), chunks=(4, 6), compression=4)
        f.create_dataset("grow", data=np.zeros((8, 6)), chunks=(16, 6), maxshape=(None, 6))
    return path


def plan(path: Path, name: str = "x", /, **values: list[str]) -> Plan:
    target = look(path, name)
    axes: dict[str, tuple[str, ...]] = {"access": ("all",), "reader": ("libhdf5",)}
    axes |= {axis.replace("_", "-"): tuple(texts) for axis, texts in values.items()}
    made = spell_out(target, Space(axes))
    check(target, made)
    return made


@pytest.mark.parametrize(
    "values",
    [
        {"chunk": ["stored", "4x6", "4 x 6"]},
        {"filter": ["stored", "deflate", "deflate:6", "gzip"], "chunk": ["4x6"]},
        {"cache": ["1MiB", "1048576", "1024KiB"]},
        {"w0": ["0.5", ".5", "0.50"]},
    ],
)
def test_two_spellings_of_one_value_are_measured_once(
    file: Path, values: dict[str, list[str]]
) -> None:
    found = plan(file, **values).planned
    expected = 2 if "filter" in values else 1  # deflate:4 as stored, and deflate:6
    assert len({(p.variant, tuple(p.parameters.items())) for p in found}) == len(found)
    assert len(found) == expected


def test_zero_is_a_value(file: Path) -> None:
    found = plan(file, w0=["default", "0"], sieve=["default", "0"]).planned
    given_ = [(p.parameters.get("cache_w0"), p.parameters.get("sieve_nbytes")) for p in found]
    assert given_ == [(None, None), (None, 0), (0.0, None), (0.0, 0)]


def test_chunks_may_be_longer_than_what_may_grow(file: Path) -> None:
    assert [p.variant.chunks for p in plan(file, "grow", chunk=["32x6"]).planned] == [(32, 6)]
    for name, chunk in (("grow", "8x7"), ("x", "9x6")):
        with pytest.raises(UsageError, match="larger than"):
            plan(file, name, chunk=[chunk])


@pytest.mark.parametrize(
    "values", [{"nslots": ["9" * 20]}, {"chunk": ["stored"], "cache": ["8EiB"]}]
)
def test_too_little_memory_is_known_before(
    file: Path, values: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chunkwise.measure.planning.free_nbytes", lambda: 300)
    with pytest.raises(UsageError, match="of memory for one read and its chunk cache"):
        plan(file, **values)
