"""Do patterns that name dimensions, and their weights, mean what they say, everywhere?"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.cli.main import main
from chunkwise.errors import SelectionError, UsageError
from chunkwise.files.around import Surroundings
from chunkwise.measure.planning import spell_out
from chunkwise.measure.space import Space
from chunkwise.measure.target import look
from chunkwise.model.chunk_shape import default_chunk
from chunkwise.patterns import Access, parse, stated, weight
from tests.support.golden import assert_golden, refused

SHAPE = (365, 20, 30)


class Known:
    """Names that nobody had to read from a file."""

    dimensions: Sequence[str | None] = ("time", "/grid/y", "x")


def read(text: str, shape: tuple[int, ...] = SHAPE, around: Any = Known()) -> Access:  # noqa: B008
    return parse(text, shape, 4, "'/t' in a.h5", around)


# --- names of dimensions ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "block"),
    [
        ("time=all,y=1,x=1", "time=all,y=1,x=1", (365, 1, 1)),
        ("time=1", "time=1", (1, 20, 30)),
        ("x=10,time=1", "x=10,time=1", (1, 20, 10)),
        ("y=:,x=1", "y=:,x=1", (365, 20, 1)),
        ("map=time=1,y=all,x=all", "map", (1, 20, 30)),
        ("series=y=1,x=1", "series", (365, 1, 1)),
        # A name before a block is a name, whatever it says.
        ("time=1x20x30", "time", (1, 20, 30)),
        ("row=1x1x30", "row", (1, 1, 30)),
    ],
)
def test_dimensions_by_their_names(text: str, name: str, block: tuple[int, ...]) -> None:
    found = read(text)
    assert (found.name, found.block, found.order, found.slabs) == (name, block, None, None)


def test_an_order_goes_with_names() -> None:
    found = read("map=time=1@random:3")
    assert (found.block, found.seed) == ((1, 20, 30), 3)
    assert read("time=1@f").order == (2, 1, 0)


def test_a_file_without_names() -> None:
    class Nameless(Known):
        dimensions = ()

    for around in (Nameless(), None):
        with pytest.raises(
            SelectionError, match=r"no dimension scales.*write lengths such as 365x1x1"
        ):
            read("time=all,y=1", around=around)


REFUSED: list[tuple[str, tuple[int, ...]]] = [
    *((text, SHAPE) for text in ("tyme=all,y=1", "map=time=1,z=1", "y=1,y=2", "time=400"))
]


def test_words_that_do_not_fit() -> None:
    assert_golden("access-words-refused", refused(lambda one: read(*one), REFUSED))


# --- weights ----------------------------------------------------------------------------


def test_weights() -> None:
    assert weight("map=1x20x30 weight 3") == 3.0
    assert weight("1x20x30") == 1.0
    assert read("map=time=1 weight 2.5") == read("map=time=1")
    for text in ("row weight 0", "row weight -1", "row weight much", "row weight nan"):
        with pytest.raises(UsageError, match="a weight is a number more than 0"):
            weight(text)


def test_a_weight_counts_in_the_choice_of_chunks() -> None:
    found = stated(("1x20x30 weight 3", "365x1x1 weight 0.5 "), SHAPE, 4, None, "/t")
    weights = [(one.block, round(one.weight * one.reads, 9)) for one in found]
    assert weights == [((1, 20, 30), 3.0), ((365, 1, 1), 0.5)]
    maps, series = (
        default_chunk((365, 600, 600), 4, None, stated(texts, (365, 600, 600), 4, None, "/t"))
        for texts in (("1x600x600 weight 1e6", "line:0"), ("1x600x600", "line:0 weight 1e6"))
    )
    assert maps[0] < series[0]


# --- everywhere -------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with named dimensions."""
    found = tmp_path / "a.h5"
    with h5py.File(found, "w") as file:
        shape = (120, 100, 110)
        values = np.arange(np.prod(shape), dtype="<f4").reshape(shape)
        file.create_dataset("g/t", data=values, chunks=(1, 100, 110), compression=1)
        for axis, name in enumerate(("time", "y", "x")):
            file[f"g/{name}"] = np.arange(shape[axis])
            file[f"g/{name}"].make_scale(name)
            file["g/t"].dims[axis].attach_scale(file[f"g/{name}"])
    return found


def test_a_file_tells_names(path: Path) -> None:
    around = Surroundings(path, "/g/t")
    assert [str(name).rpartition("/")[2] for name in around.dimensions] == ["time", "y", "x"]
    assert Surroundings(path, "/g/time").dimensions == ()


def test_auto_in_bench_is_what_repack_takes_for_the_same_patterns(path: Path) -> None:
    target = look(path, "g/t")
    shape = (120, 100, 110)
    for accesses in (("time=all,y=1,x=1",), ("row", "plane:0"), ()):
        named = {"chunk": ("auto",), "access": accesses}
        space = Space({name: values for name, values in named.items() if values})
        (variant,) = {one.variant for one in spell_out(target, space).planned}
        plan = chunkwise.plan_repack(path, chunk={"/g/t": "auto"}, access=accesses)
        (step,) = [step for step in plan.steps if step.source.path == "/g/t"]
        assert variant.chunks == step.wanted.chunk
    assert variant.chunks != default_chunk(shape, 4, shape, [(120, 1, 1)])


def test_bench_takes_them(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(path), "/g/t", "--access", "series=y=1,x=1", "--reader", "libhdf5,chunkwise"]
    more = ["--repeat", "1", "--budget", "20s", "--json"]
    monkeypatch.setattr("sys.argv", ["chunkwise", "bench", *arguments, *more])
    with pytest.raises(SystemExit) as left:
        main()
    told = capsys.readouterr()
    assert left.value.code in (0, None), told.err
    records = json.loads(told.out)["records"]
    reads = {one["access"]: one["total_operations"] for one in records}
    assert reads == {"series": 11_000}
