"""Points, lists, masks and strides, from cube and from copies that are not compressed."""

from __future__ import annotations

from collections.abc import Iterator

from chunkwise_lab.peers.comparisons.whole import bare
from chunkwise_lab.peers.files import Data, Store
from chunkwise_lab.peers.picks import KINDS
from chunkwise_lab.peers.spec import Comparison, Reader, Target, alike

MAP = (1, 600, 600)
SHAPE = (365, 600, 600)
# Whose indexes know these; others are asked and say that they do not.
OTHERS = ("netCDF4", "hidefix", "pyfive")


def selections(store: Store) -> Iterator[Comparison]:
    """Each kind of index, compressed and not."""
    cube = store.sampled("cube", SHAPE, MAP, "shuffle+deflate:4")
    for kind, title in KINDS.items():
        step = 10 if kind == "strided" else 1

        def wanted(origin: tuple[int, ...], step: int = step) -> bool:
            return origin[0] % step == 0

        limit = bare(store.chunks(cube, wanted))
        others = OTHERS if kind in ("series", "strided") else ()
        yield Comparison(
            f"cube-{kind}",
            "selections",
            f"cube: {title}",
            (*_readers(cube, kind, others), limit),
            (Target(4, "h5py"),),
            repeat=3,
        )
    for stored, chunk in (("chunked", MAP), ("contiguous", None)):
        plain = store.sampled("cube", SHAPE, chunk, "none")
        for kind, title in KINDS.items():
            yield Comparison(
                f"plain-{stored}-{kind}",
                "selections",
                f"cube, not compressed, {stored}: {title}",
                _readers(plain, kind),
                (Target(1, "h5py"),),
                repeat=5,
            )


def _readers(data: Data, kind: str, others: tuple[str, ...] = ()) -> tuple[Reader, ...]:
    names = ("h5py", "chunkwise", *others)
    return alike("peers:picked", names, {**data.arguments, "kind": kind})


def single_points(store: Store) -> Iterator[Comparison]:
    """200 points of cube, a call each."""
    data = store.sampled("cube", SHAPE, MAP, "shuffle+deflate:4")
    for again, title, factor in (
        (False, "the first time", 2),
        (True, "where the chunk is cached", 100),
    ):
        yield Comparison(
            f"points-{'again' if again else 'first'}",
            "points",
            f"cube: 200 single points, one call each, {title} (a call)",
            alike(
                "peers:single_points",
                ("h5py", "chunkwise"),
                {**data.arguments, "again": again},
            ),
            (Target(factor, "h5py"),),
            repeat=3,
        )
