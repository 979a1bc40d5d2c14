"""How is the page saved in one file, with all answers that it asks for by itself?"""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any, Final

import numpy as np

from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.files.durable import require_free, write_whole
from chunkwise.inspection.records import plain
from chunkwise.names import printable
from chunkwise.viewing.chunkmap import SIDE, VALUES
from chunkwise.viewing.costs import NOTHING
from chunkwise.viewing.document import document
from chunkwise.viewing.session import Session, usual_reads

# Datasets that are saved, the worst and largest; measuring each takes some seconds.
_MOST_DATASETS: Final = 5
# Cells along each side of a saved drawing.
_CELLS: Final = 128


def check_name(page: str, *, force: bool) -> None:
    """Refuse a name that no page should have, or that is taken."""
    if Path(page).suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{printable(page)}: the page is HTML: name it PAGE.html")
    require_free(page, force=force)


def save(session: Session, page: str) -> None:
    """Write the page of a session into a file."""
    if session.drawn.colour == "values":
        raise UsageError("--colour values: a saved page has none of the values")
    try:
        write_whole(Path(page), saved_page(session).encode())
    except OSError as error:
        raise CannotWriteError(f"{printable(page)}: cannot be written: {error.strerror}") from None


def saved_page(session: Session) -> str:
    """Write the page of a session, for which nobody needs chunkwise or the file."""
    first = session.first() | session.facts({})
    chosen = session.worst(session.full)[:_MOST_DATASETS]
    if session.dataset is not None:
        chosen = [session.chosen] if session.chosen is not None else []
    first["chosen"] = next(iter(chosen), None)
    saved: dict[str, Any] = {"views": {}, "answers": {}}
    for number in chosen:
        _save(session, number, saved)
    return document(first | {"sampled": True}, saved)


def _save(session: Session, number: int, saved: dict[str, Any]) -> None:
    is_first = session.quick.objects[number].path == session.dataset
    reads = list(session.access) if is_first or session.dataset is None else []
    facts = session.quick.objects[number].dataset
    assert facts is not None
    query: dict[str, Any] = {"dataset": number}
    _answer(session, saved, "dataset", query)
    _answer(session, saved, "bytes", query)
    if not facts.is_placed:
        return
    shape = facts.shape or ()
    reads = reads or usual_reads(shape)
    session.measure(_words(query))
    costs = {**query, "read": reads, **plain(session.tried if is_first else NOTHING)}
    _answer(session, saved, "costs", costs)
    view: dict[str, Any] = {"reads": reads}
    saved["views"][number] = view
    if facts.chunks is None:
        return
    _answer(session, saved, "chunks", query)
    place = saved["answers"][_key("costs", costs)]["reads"][0]["first"][0][0]
    grid = session.chunks(_words(query))["grid"]
    axes = sorted(range(len(grid)), key=lambda d: (shape[d] > 1, grid[d]))[-2:]
    vertical, horizontal = (-1, axes[0]) if len(axes) < 2 else sorted(axes)
    stated = {"vertical": vertical, "horizontal": horizontal, **session.view_of(number)}
    vertical, horizontal, place = stated["vertical"], stated["horizontal"], stated.get("at", place)
    at = [i // c for i, c in zip(place, facts.chunks.shape, strict=True)]
    along = [1 if vertical < 0 else grid[vertical], grid[horizontal]]
    levels = [max(0, math.ceil(math.log2(n / _CELLS))) for n in along]
    view |= {"at": place, **stated, "levels": levels}
    for what in VALUES:
        words = {
            **query, "vertical": vertical, "horizontal": horizontal, "at": ",".join(map(str, at)),
            "what": what, "tile": ",".join(map(str, [*levels, 0, 0])),
        }  # fmt: skip
        whole = np.frombuffer(session.tile(_words(words)), np.float32).reshape(SIDE, SIDE)
        tile = whole[: -(-along[0] >> levels[0]) or 1, : -(-along[1] >> levels[1]) or 1]
        found = {
            "columns": tile.shape[1],
            "values": base64.b64encode(np.ascontiguousarray(tile).tobytes()).decode(),
        }
        saved["answers"][_key("tile", words)] = found


def _words(query: dict[str, Any]) -> dict[str, list[str]]:
    return {
        name: list(map(str, value)) if isinstance(value, list) else [str(value)]
        for name, value in query.items()
    }


def _key(what: str, query: dict[str, Any]) -> str:
    """Name a question as the page does."""
    return json.dumps([what, query], separators=(",", ":"), ensure_ascii=False)


def _answer(session: Session, saved: dict[str, Any], what: str, query: dict[str, Any]) -> None:
    saved["answers"][_key(what, query)] = plain(session.answers[what](_words(query)))
