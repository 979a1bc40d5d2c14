"""Do the studies of what the papers leave open measure what they ask, and add up storage?"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chunkwise.errors import UsageError
from chunkwise.measure.space import Space
from chunkwise_lab.sample import write
from chunkwise_lab.studies import probes
from chunkwise_lab.studies.claims import judge_all
from chunkwise_lab.studies.context import Context
from chunkwise_lab.studies.load import load
from chunkwise_lab.studies.run import Options, run
from chunkwise_lab.studies.study import SCALES, Study

OURS = ("bandwidth", "two-ways", "selections")
FAR: dict[str, Any] = {"name": "far", "mb_per_s": 10, "latency_ms": 100}


def context(file: Path, space: Space, *places: dict[str, Any]) -> Context:
    folder = file.parent / "work"
    folder.mkdir()
    data: dict[str, tuple[str, str, dict[str, str]]] = {"x": (str(file), "/counts", {"data": "x"})}
    return Context(
        data, {"places": places}, 1, {}, folder, file.with_name("kept"), (), lambda _: None, space
    )


def test_what_storage_takes_is_added(tmp_path: Path) -> None:
    file = tmp_path / "x.h5"
    write("counts", file, shape=(60, 80), chunk=(20, 40))
    space = Space.of(access=["rows=1x80"], reader=["libhdf5"], filter=["none", "deflate:4"])
    found = {
        (point["filter"], point["place"]): records[0]
        for point, records in probes.other_storage(context(file, space, FAR))
    }
    assert set(found) == {
        ("none", "measured"), ("none", "far"),
        ("deflate:4", "measured"), ("deflate:4", "far"), ("deflate:4", "pays below"),
    }  # fmt: skip
    for name, requests in (("none", 60 * 2), ("deflate:4", 6)):
        here, there = found[name, "measured"], found[name, "far"]
        # Through its cache libhdf5 loads each chunk once, where it says how many it loads.
        assert here["requests"] == there["requests"] == requests
        assert here["storage_s"] == 0
        expected = there["moved_nbytes"] / 1e7 + requests * 0.1
        assert there["storage_s"] == pytest.approx(expected)
        assert there["total_s"] == pytest.approx(here["total_s"] + expected)
    assert found["none", "far"]["moved_nbytes"] == 120 * 20 * 40 * 4
    assert 0 <= found["deflate:4", "pays below"]["pays_below"] <= 1e6
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize(
    ("codec", "plain", "bandwidth"),
    [
        # 3 MB less for a second more.
        ({"memory_s": 2.0, "moved": 1e6}, {"memory_s": 1.0, "moved": 4e6}, 3.0),
        ({"memory_s": 1.0, "moved": 1e6}, {"memory_s": 1.0, "moved": 4e6}, 1e6),
        ({"memory_s": 2.0, "moved": 4e6}, {"memory_s": 1.0, "moved": 4e6}, 0.0),
    ],
)
def test_the_bandwidth_below_which_a_codec_pays(
    codec: dict[str, float], plain: dict[str, float], bandwidth: float
) -> None:
    assert probes._pays_below(codec, plain) == bandwidth
    if 0 < bandwidth < 1e6:
        whole = [one["memory_s"] + one["moved"] / 1e6 / bandwidth for one in (codec, plain)]
        assert whole[0] == pytest.approx(whole[1])


@pytest.mark.parametrize(
    "place", [{"name": "x"}, {"name": "x", "mb_per_s": 0}, {"name": "x", "mb_per_s": "fast"}]
)
def test_a_place_that_is_none_is_an_error(tmp_path: Path, place: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="places"):
        list(probes.other_storage(context(tmp_path / "x.h5", Space(), place)))


def tiny() -> Study:
    """The question of the cache on little data: one selection, two caches."""
    study = load("selections")
    (cache,) = (one for one in study.experiments if one.id == "cache")
    data = {
        key: replace(one, options=dict.fromkeys(SCALES, _less(one.options["quick"])))
        for key, one in study.data.items()
    }
    runs = []
    for one in cache.runs[:2]:
        axes = dict(one.spaces["quick"].axes, access=("cells:20:3",))
        if "cache" in axes:
            axes["cache"] = ("1MiB", "256MiB")
        runs.append(replace(one, spaces=dict.fromkeys(SCALES, Space(axes)), repeat=1))
    return replace(
        study,
        experiments=(replace(cache, runs=tuple(runs)),),
        data=data,
        disk_nbytes=dict.fromkeys(SCALES, 1 << 20),
    )


def _less(options: Any) -> dict[str, Any]:
    chunk = options["chunk"]
    chunk = chunk if chunk == "contiguous" else tuple(side // 10 for side in chunk)
    return {**options, "shape": (200, 150), "chunk": chunk}


def test_selections_of_chunks_are_read_through_every_cache(tmp_path: Path) -> None:
    study = tiny()
    results = run(study, Options("quick", tmp_path / "out", repeat=1))
    outcome = results.outcomes["cache"]
    assert (outcome.skipped, outcome.mismatches) == ([], [])
    caches = {(row.point["storage"], row.point["cache"]) for row in outcome.rows()}
    assert caches == {
        ("contiguous", "default"),
        *((f"chunks {n}x{n}", cache) for n in (50, 500) for cache in ("1MiB", "256MiB")),
    }
    words = {one.claim.id: one.verdict.word for one in judge_all(study, results)}
    # Everything at once is left out here.
    assert [name for name, word in words.items() if word == "not measured"] == ["not-of-all"]


@pytest.mark.parametrize("name", OURS)
def test_every_limit_says_that_it_is_ours(name: str) -> None:
    study = load(name)
    claims = [claim for experiment in study.experiments for claim in experiment.claims]
    assert claims
    assert all(claim.limit.startswith("Ours") for claim in claims)
    assert not any(one.published for one in study.experiments)


def test_both_ways_are_read_from_every_shape() -> None:
    study = load("two-ways")
    shape = study.data["cube"].options["paper"]["shape"]
    for experiment in study.experiments:
        (one,) = experiment.runs
        for scale in SCALES:
            axes = one.spaces[scale].axes
            assert [text.partition("=")[0] for text in axes["access"]] == ["map", "series"]
            for chunk in axes["chunk"]:
                sides = tuple(map(int, chunk.split("x")))
                assert all(side <= n for side, n in zip(sides, shape, strict=True))
                # Not so small that the index decides, nor larger than any default cache.
                assert 16 << 10 <= 4 * math.prod(sides) <= 1 << 20
