"""What did measurements on this machine answer, so that the same question has the same answer?

`chunkwise.advise` keeps which layout it measured to be best for stated reads of a dataset;
`inspect` and `fix` look it up before they ask the model.  Answers lie in the user's cache folder,
and hold for the file as it was.  If they cannot be read or kept, nothing is said.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from chunkwise.files.durable import write_whole


def cache_folder() -> Path:
    """Return chunkwise's folder in ``XDG_CACHE_HOME``, or ``~/.cache``."""
    # As the XDG base directory specification has it.
    root = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(root) if Path(root).is_absolute() else Path.home() / ".cache"
    return base / "chunkwise"


# By dataset and question, as JSON has them.
Answers: TypeAlias = dict[str, dict[str, list[Any]]]
# Of the newest files.
_MOST_FILES: Final = 200


class Answer(NamedTuple):
    """The layout that was measured to be best."""

    chunks: tuple[int, ...] | None  # None for contiguous data
    filters: str
    times: float  # How many times as fast it reads as what was there


def cache_file(kind: str) -> Path:
    """Return a file in which this machine's figures are kept."""
    # One for each host, as home folders are shared.
    host = "".join(c if c.isalnum() or c in "-." else "-" for c in platform.node())
    return cache_folder() / f"{kind}-{host or 'this'}.json"


def kept(file: str | os.PathLike[str], dataset: str, question: str) -> Answer | None:
    """Return what was answered to a question about a dataset of a file."""
    try:
        found = about(file).get("/" + dataset.strip("/"), {}).get(question)
        return None if found is None else Answer(found[0] and tuple(found[0]), *found[1:])
    except (AttributeError, IndexError, TypeError):
        return None


def kept_chunks(
    file: str | os.PathLike[str], dataset: str, question: str
) -> tuple[int, ...] | None:
    """Return the chunks that were measured to be best for a question; None if none were."""
    found = kept(file, dataset, question)
    return None if found is None else found.chunks


def keep(file: str | os.PathLike[str], dataset: str, question: str, answer: Answer) -> None:
    """Keep an answer."""
    found = about(file)
    found.setdefault("/" + dataset.strip("/"), {})[question] = list(answer)
    carry(found, file)


def about(file: str | os.PathLike[str]) -> Answers:
    """Return all answers about a file as it is."""
    key = _key(file)
    return {} if key is None else _all().get(key, {})


def carry(found: Answers, copy: str | os.PathLike[str]) -> None:
    """Let the answers about a file hold for a copy of it, however that is stored."""
    key = _key(copy)
    if found and key is not None:
        _write(_all() | {key: found})


def _key(file: str | os.PathLike[str]) -> str | None:
    """Name a file as it is; None for what is no local file, of which nobody tells a change."""
    try:
        status = Path(file).stat()
    except (OSError, ValueError):
        return None
    return f"{os.path.realpath(file)}:{status.st_size}:{status.st_mtime_ns}"


def _all() -> dict[str, Answers]:
    try:
        found = json.loads(cache_file("answers").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(known: dict[str, Answers]) -> None:
    path, newest = cache_file("answers"), list(known.items())[-_MOST_FILES:]
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(dict(newest)).encode())
