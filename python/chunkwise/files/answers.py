"""What did measurements on this machine answer, so that the same question has the same answer?

`advise` keeps the layout that it measured to be best for stated reads; `inspect` and `fix` look it
up.  `inspect` keeps its samples for an hour.  Both lie in the user's cache folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
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
# So long a sample says how fast this machine is.
_SESSION_S: Final = 3600.0


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


def about(file: str | os.PathLike[str], kind: str = "answers") -> Answers:
    """Return all answers about a file as it is."""
    key = _key(file)
    return {} if key is None else _all(kind).get(key, {})


def carry(found: Answers, copy: str | os.PathLike[str], kind: str = "answers") -> None:
    """Let the answers about a file hold for a copy of it, however that is stored."""
    key = _key(copy)
    if found and key is not None:
        _write(_all(kind) | {key: found}, kind)


def kept_samples(file: str | os.PathLike[str], library: str) -> dict[str, list[Any]]:
    """Return the samples of a file that this session took by a library, by dataset."""
    with contextlib.suppress(AttributeError, IndexError, TypeError, ValueError):
        known = about(file, "samples").items()
        found = {path: one[library] for path, one in known if library in one}
        since = time.time() - _SESSION_S
        return {path: values for path, (taken_s, values) in found.items() if taken_s >= since}
    return {}


def keep_samples(
    file: str | os.PathLike[str], library: str, samples: dict[str, list[Any]]
) -> None:
    """Keep the samples of datasets that were taken by a library, in place of older ones."""
    now = time.time()
    taken: Answers = {path: {library: [now, one]} for path, one in samples.items()}
    carry(about(file, "samples") | taken, file, "samples")


def _key(file: str | os.PathLike[str]) -> str | None:
    """Name a file as it is; None for what is no local file, of which no change is noticed."""
    try:
        status = Path(file).stat()
    except (OSError, ValueError):
        return None
    return f"{os.path.realpath(file)}:{status.st_size}:{status.st_mtime_ns}"


def _all(kind: str) -> dict[str, Answers]:
    try:
        found = json.loads(cache_file(kind).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(known: dict[str, Answers], kind: str) -> None:
    path, newest = cache_file(kind), list(known.items())[-_MOST_FILES:]
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(dict(newest)).encode())
