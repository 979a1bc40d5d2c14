"""Are the page's numbers those of `inspect`, and of the one model?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.model.chunk_cache import ChunkCache, slots
from chunkwise.model.cost import Stored, walk_cost
from chunkwise.model.followed import loads_of_walk
from chunkwise.model.layout import Layout
from chunkwise.model.readers import this_process
from chunkwise.model.seconds import Machine
from chunkwise.patterns import as_stated, parse
from chunkwise.viewing.chunkmap import SIDE, ChunkMap
from chunkwise.viewing.costs import NOTHING
from chunkwise.viewing.session import Session


@pytest.fixture
def session(path: Path) -> Session:
    return Session(str(path), chunkwise.inspect(path, sample=False, metadata=False))


def number(session: Session, name: str) -> str:
    return str([one.path for one in session.quick.objects].index(name))


def asked(session: Session, name: str, *reads: str, **more: str) -> dict[str, list[str]]:
    return {
        "dataset": [number(session, name)],
        "read": list(reads),
        **{key: [value] for key, value in more.items()},
    }


def test_the_tree_and_findings_are_those_of_inspect(session: Session, path: Path) -> None:
    facts = chunkwise.inspect(path, sample=False, metadata=False)
    first = session.first()
    assert [one["kind"] for one in first["objects"]] == [one.kind for one in facts.objects]
    for row, one in zip(first["objects"], facts.objects, strict=True):
        if one.dataset is not None:
            assert row["stored_nbytes"] == one.dataset.stored_nbytes
            assert row["ratio"] == one.dataset.ratio
    assert [one["code"] for one in first["findings"]] == [one.code for one in facts.findings]
    found = session.dataset_facts(asked(session, "/cube"))
    (own,) = (one for one in facts.as_dict()["objects"] if one["path"] == "/cube")
    assert found["chunks"] == own["dataset"]["chunks"]


def test_one_read_costs_what_inspect_says(session: Session, path: Path) -> None:
    facts = chunkwise.inspect(path, "/cube", sample=False)
    (one,) = facts.objects
    assert one.dataset is not None
    texts = ["line:0", "line:1", "plane:0", "plane:2"]
    reads = session.costs(asked(session, "/cube", *texts))["reads"]
    by_block = {pattern.block: pattern for pattern in one.dataset.patterns or ()}
    for text, read in zip(texts, reads, strict=True):
        expected = by_block[parse(text, (24, 60, 50), 4, "").block]
        now = read["now"]
        assert now["chunks"] == expected.chunks
        assert now["selected_nbytes"] == expected.selected_nbytes
        assert now["decoded_nbytes"] == expected.decoded_nbytes
        assert now["libhdf5_s"] is None


def test_a_loop_loads_as_often_as_the_model_says(session: Session) -> None:
    (read,) = session.costs(asked(session, "/cube", "line:0@walk", cache="12000"))["reads"]
    stored = Stored((24, 60, 50), (1, 30, 50), 4)
    small = replace(this_process(), cache_nbytes=12000)
    cost = walk_cost(stored, (24, 1, 1), small)
    assert read["then"]["reads"] == 3000
    assert read["then"]["loads"] == cost.decodes * 48 == 24 * 3000
    assert read["now"]["loads"] == 48


def test_a_box_costs_the_chunks_that_it_touches(session: Session) -> None:
    (read,) = session.costs(asked(session, "/cube", "box=[2:5, 20:40, 7]"))["reads"]
    assert read["now"]["chunks"] == 6
    assert read["now"]["selected_nbytes"] == 3 * 20 * 4
    assert read["now"]["decoded_nbytes"] == 6 * 30 * 50 * 4
    ((start, _, count, block),) = read["first"]
    assert (list(start), list(np.multiply(count, block))) == ([2, 20, 7], [3, 20, 1])


def test_seconds_are_those_of_advise(session: Session, known_machine: Machine) -> None:
    texts = ["line:0", "line:0@walk", "[0:3, 5]"]
    before = session.costs(asked(session, "/cube", *texts))
    assert before["measuring"]
    assert session.measure(asked(session, "/cube"))["obstacle"] == ""
    found = session.costs(asked(session, "/cube", *texts, chunk="24x10x10", filters="none"))
    assert not found["measuring"]
    problem = session.costs_of(asked(session, "/cube"))._problem
    assert problem is not None
    assert problem.machine == known_machine
    for text, read in zip(texts, found["reads"], strict=True):
        _, pattern = as_stated(parse(text, (24, 60, 50), 4, ""), (24, 60, 50))
        for key, layout in (
            ("now", Layout((1, 30, 50), "shuffle+deflate:4")),
            ("then", Layout((24, 10, 10), "none")),
        ):
            expected = problem.pattern_s(layout, pattern) / pattern.reads
            assert read[key]["libhdf5_s"] == pytest.approx(expected)
            assert read[key]["chunkwise_s"] > 0
    lines = [one["line"] for one in found["commands"]]
    assert any("repack --chunk /cube:24x10x10 --filter /cube:none" in one for one in lines)
    assert any("view" in one and "--access line:0@walk" in one for one in lines)


@pytest.mark.parametrize("cache", ["12000", "24000", ""])
def test_a_film_is_libhdf5_s_cache(session: Session, cache: str) -> None:
    words = asked(session, "/cube", cache=cache) | {"read": ["line:0@walk"]}
    found = session.film(words)
    frames, room = found["frames"], found["room"]
    assert len(frames) == 250 * 24
    grid = (24, 2, 1)
    places = slots(grid, (0, 0, 0), grid, found["nslots"]).tolist()
    # The same cache, followed by what the frames say alone.
    cache_now = ChunkCache(room, 0.75, 1 * 30 * 50 * 4)
    queue: list[int] = []
    for _, chunk, slot, is_load, dropped, behind in frames:
        assert slot == places[chunk]
        assert is_load == (chunk not in queue) == cache_now.access(chunk, slot, 4)
        queue = [one for one in queue if one not in (chunk, *dropped)]
        queue.insert(queue.index(behind) if behind >= 0 else len(queue), chunk)
        assert set(queue) == cache_now.held
        assert all(map(lambda a, b: cache_now.behind(a) == b, queue, [*queue[1:], -1]))
        assert len(queue) <= room
    loads = sum(frame[3] for frame in frames)
    assert loads == (6000 if cache else len({frame[1] for frame in frames}))


def test_two_chunks_of_one_slot_drop_each_other(session: Session) -> None:
    words = asked(session, "/cube") | {"read": ["line:0@walk"]}
    with pytest.MonkeyPatch.context() as patch:
        found = session.costs_of(words)
        usual = found.setting(NOTHING)
        few = replace(usual, reader=replace(usual.reader, nslots=7))
        patch.setattr(found, "setting", lambda _: few)
        frames = session.film(words)["frames"]
    for _, _, slot, is_load, dropped, _ in frames[7:24]:
        assert is_load
        assert len(dropped) == 1
        assert 0 <= slot < 7


def test_a_film_loads_what_the_model_counts(session: Session) -> None:
    stored = Stored((24, 60, 50), (1, 30, 50), 4)
    small = replace(this_process(), cache_nbytes=24_000)
    frames = session.film(asked(session, "/cube", cache="24000") | {"read": ["1x60x5@walk"]})[
        "frames"
    ]
    assert sum(frame[3] for frame in frames) == loads_of_walk(stored, (1, 60, 5), small)


@pytest.mark.parametrize("shown", [(0, 1), (1, 2), (0, 2), (None, 1)])
def test_tiles_hold_what_hdf5_says(path: Path, shown: tuple[int | None, int]) -> None:
    with h5py.File(path) as file:
        dataset = file["cube"]
        found = ChunkMap.of(dataset)
        at = (3, 1, 0)
        tile = found.tile(found.plane(*shown, at), "stored", (0, 0), (0, 0)).reshape(SIDE, SIDE)
        sizes = {}
        for i in range(dataset.id.get_num_chunks()):
            info = dataset.id.get_chunk_info(i)
            index = tuple(o // c for o, c in zip(info.chunk_offset, dataset.chunks, strict=True))
            sizes[index] = info.size
            one = found.one(index)
            assert (one["address"], one["stored_nbytes"]) == (info.byte_offset, info.size)
        for index, size in sizes.items():
            if all(i == at[axis] for axis, i in enumerate(index) if axis not in shown):
                row = 0 if shown[0] is None else index[shown[0]]
                assert tile[row, index[shown[1]]] == size
        assert np.isnan(tile[30:]).all()


def test_far_away_a_cell_is_the_mean_of_its_chunks(path: Path) -> None:
    with h5py.File(path) as file:
        found = ChunkMap.of(file["group/sparse"])
    plane = found.plane(0, 1, (0, 0))
    near = found.tile(plane, "place", (0, 0), (0, 0)).reshape(SIDE, SIDE)
    far = found.tile(plane, "place", (2, 1), (0, 0)).reshape(SIDE, SIDE)
    assert np.isfinite(near).sum() == 9
    for row in range(3):
        for column in range(4):
            part = near[row * 4 : row * 4 + 4, column * 2 : column * 2 + 2]
            if np.isfinite(part).any():
                assert far[row, column] == pytest.approx(np.nanmean(part), rel=1e-6)
            else:
                assert np.isnan(far[row, column])


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("costs", {"read": ["nonsense"]}),
        ("costs", {"read": ["line:7"]}),
        ("costs", {"read": ["line:0"], "chunk": ["25x1x1"]}),
        ("costs", {"read": ["line:0"], "chunk": ["auto"]}),
        ("costs", {"read": ["line:0"], "filters": ["nonsense"]}),
        ("costs", {"read": ["row append"]}),
        ("tile", {"at": ["0,0,0"], "vertical": ["5"], "horizontal": ["0"], "tile": ["0,0,0,0"]}),
        ("chunk", {"index": ["0,0,9"]}),
        ("chunk", {"index": ["x"]}),
        ("film", {"read": ["[0:2] | [5:9]"]}),
        ("costs", {"read": ["line:0"], "chunk": ["1x1"]}),
    ],
)
def test_what_makes_no_sense_is_refused(
    session: Session, what: str, words: dict[str, list[str]]
) -> None:
    with pytest.raises(ChunkwiseError):
        session.answers[what](asked(session, "/cube") | {"what": ["stored"]} | words)


def test_what_has_no_chunks(session: Session) -> None:
    (read,) = session.costs(asked(session, "/contiguous", "line:0"))["reads"]
    assert read["now"]["chunks"] == 24
    assert read["now"]["decoded_nbytes"] == read["now"]["selected_nbytes"]
    for name in ("/scalar", "/empty"):
        with pytest.raises(UsageError):
            session.costs(asked(session, name, "all"))
    with pytest.raises(UsageError):
        session.dataset_facts({"dataset": ["-1"]})
    assert ChunkCache(1, 0.75, 1).held == set()


def test_bytes_are_where_hdf5_put_them(session: Session, path: Path) -> None:
    nbytes = path.stat().st_size
    with h5py.File(path) as file:
        for name in ("/cube", "/contiguous", "/group/sparse", "/scalar", "/empty"):
            found = session.bytes_of(asked(session, name))
            stored = file[name].id.get_storage_size()
            assert sum(found["own"]) * nbytes / len(found["own"]) == pytest.approx(
                stored, rel=0.01
            )
        offset, length = file["contiguous"].id.get_offset(), file["contiguous"].nbytes
        own = session.bytes_of(asked(session, "/contiguous"))["own"]
        at = (np.arange(len(own)) + 0.5) * nbytes / len(own)
        inside = (at > offset) & (at < offset + length)
        assert np.abs(np.array(own) - inside).max() < 1
        assert (np.array(own)[inside] > 0.4).all()


def test_a_file_is_looked_at_in_processes_of_their_own(path: Path) -> None:
    session = Session.of(str(path), "sparse")
    assert session.first()["objects"][session.first()["chosen"]]["path"] == "/group/sparse"
    assert session.facts({})["metadata"]["list_requests"] > 0
    assert session.facts({})["nbytes"] == path.stat().st_size
    assert len(session.worst(session.full)) == 8
    with pytest.raises(ChunkwiseError):
        Session.of(str(path), "nothing")
    with pytest.raises(ChunkwiseError):
        Session.of(str(path.with_name("nothing.h5")))


def test_what_is_too_much_to_play_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (1 << 20, 1 << 20), "u1", chunks=(1, 1), maxshape=(None, None))
    session = Session(str(path), chunkwise.inspect(path, sample=False, metadata=False))
    words = asked(session, "/x", chunk="1x1") | {"read": ["all"]}
    with pytest.raises(UsageError, match="too many to play"):
        session.film(words)
    (read,) = session.costs(words)["reads"]
    assert read["now"]["loads"] >= 1 << 20
    tile = {"at": ["0,0"], "vertical": ["0"], "horizontal": ["1"], "what": ["stored"]}
    values = np.frombuffer(session.tile(words | tile | {"tile": ["12,12,0,0"]}), "f4")
    assert np.isnan(values).all()


def test_chunks_whose_filters_were_skipped_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        made = file.create_dataset("x", (6, 8), "i4", chunks=(2, 2), compression=1)
        made[:] = np.arange(48).reshape(6, 8)
        raw = np.arange(4, dtype="i4").tobytes()
        for origin in ((0, 2), (4, 6)):
            made.id.write_direct_chunk(origin, raw, filter_mask=1)
    session = Session(str(path), chunkwise.inspect(path, sample=False, metadata=False))
    words = asked(session, "/x")
    assert session.chunks(words)["ranges"]["mask"] == (0, 1)
    shown = {"at": ["0,0"], "vertical": ["0"], "horizontal": ["1"], "what": ["mask"]}
    near = np.frombuffer(session.tile(words | shown | {"tile": ["0,0,0,0"]}), "f4")
    grid = near.reshape(SIDE, SIDE)[:3, :4]
    assert np.argwhere(grid == 1).tolist() == [[0, 1], [2, 3]]
    assert np.argwhere(grid == 0).size == 20
    # From far away, a cell says which share of its chunks it is.
    far = np.frombuffer(session.tile(words | shown | {"tile": ["1,1,0,0"]}), "f4")
    assert far.reshape(SIDE, SIDE)[0, 0] == 0.25
    assert session.chunk(words | {"index": ["0,1"]})["filter_mask"] == 1
    assert session.chunk(words | {"index": ["0,0"]})["filter_mask"] == 0


def test_metadata_free_and_lost_space_are_inspect_s(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", fs_strategy="fsm", fs_persist=True) as file:
        for name in ("gone", "kept"):
            file.create_dataset(name, data=np.arange(500_000), chunks=(100_000,))
        text = h5py.string_dtype()
        file.create_dataset("words", data=["some words " * 50] * 5000, dtype=text)
        del file["gone"]
    session = Session(str(path), chunkwise.inspect(path, sample=False, metadata=False))
    facts = chunkwise.inspect(path, sample=False)
    assert facts.metadata is not None
    found = session.bytes_of(asked(session, "/kept"))
    assert found["metadata_nbytes"] == facts.metadata.nbytes
    assert found["free_nbytes"] == facts.file_format.free_nbytes > 3_000_000
    assert found["unaccounted_nbytes"] == facts.metadata.unaccounted_nbytes > 2_000_000
    each = facts.nbytes / len(found["metadata"])
    assert sum(found["metadata"]) * each == pytest.approx(facts.metadata.nbytes, rel=0.02)
    whole = np.array([found[name] for name in ("own", "others", "metadata")]).sum(0)
    assert whole.max() < 1.001
    # What was deleted is at neither.
    assert (whole < 0.01).sum() * each > 3_000_000
