"""What is compared?  `comparisons.toml` says it, group by group, an entry a comparison.

``name``, ``title``, ``unit``, ``repeat``, ``note``, ``patience_s``  as of a `Comparison`
``file``     a name of ``[files]``, or such a table: ``of`` is a method of `Store`, which gives it
``task``     what each reader runs; it gets the file's arguments, ``arguments``, and the reader's
             name as ``key`` (``reader``; empty for none)
``readers``  names, or tables: ``name``; ``with``, arguments of its own; what a `Reader` has
``limit``    one of `_limit`, which is put behind the readers
``faster``   how many times as fast as another chunkwise has to be; ``within``: how many times as
             long it may take; ``most``: what its figure may be; ``others``: ``faster``, of others
``sizes``    the files that were written are compared, too: ``title``, and ``within``
``each``     an entry is as many comparisons as there are tables here, each with these values; of
             several lists, all combinations

What the entries of a group have in common is in ``[usual.GROUP]``.

In texts ``$NAME`` is a value of the entry, alone of any type.  There are also ``$folder`` and
``$small``; ``$path``, ``$stem``, ``$dataset`` and ``$variable`` of the file; ``$chunk``, no larger
than the array, ``$chunk_x`` and ``$chunk_commas``; and ``$slug``, a reader's name for files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.resources import files
from itertools import product
from string import Template
from typing import Any, Final

import h5py

from chunkwise._native import thread_count
from chunkwise.grammar import format_shape
from chunkwise_lab.peers.boxes import random_boxes, runs
from chunkwise_lab.peers.files import Data, Store
from chunkwise_lab.peers.spec import Comparison, Goal, Reader

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Values = Mapping[str, Any]
_DESCRIBED: Final[dict[str, Any]] = tomllib.loads(
    files("chunkwise_lab.peers").joinpath("comparisons.toml").read_text("utf-8")
)
_FILES: Final[Values] = _DESCRIBED.pop("files")
_USUAL: Final[Mapping[str, Values]] = _DESCRIBED.pop("usual")
# Not of peers: these run if they are named alone.
APART: Final = ("c", "trace", "mpi")
_OF_ALL: Final = ("unit", "repeat", "note", "patience_s")
_OF_A_READER: Final = ("limit", "compared", "most")


def comparisons(group: str, store: Store) -> Iterator[Comparison]:
    """Give a group's comparisons, and make the files of one before it is given."""
    usual = _USUAL.get(group, {})
    for own in _DESCRIBED[group]:
        entry = {**usual, **own}
        entry["arguments"] = {**usual.get("arguments", {}), **own.get("arguments", {})}
        each = entry.get("each", [{}])
        for values in product(*(each if isinstance(each[0], list) else [each])):
            one = dict(entry)
            for more in values:
                one |= more
            yield from _made(store, group, one)


GROUPS: Final[dict[str, Callable[[Store], Iterator[Comparison]]]] = {
    group: partial(comparisons, group) for group in _DESCRIBED
}


def _made(store: Store, group: str, entry: dict[str, Any]) -> Iterator[Comparison]:
    names: dict[str, Any] = {**entry, "folder": str(store.folder), "small": store.small}
    data = _data(store, entry["file"], names) if "file" in entry else None
    arguments: Values = {}
    if data is not None:
        arguments = data.arguments
        names |= {"path": str(data.path), "stem": data.path.stem, "dataset": data.name}
        names["variable"] = data.name.strip("/")
    contiguous = data
    if "contiguous" in entry:
        contiguous = _data(store, entry["contiguous"], names)
        names["contiguous"] = str(contiguous.path)
    if "chunk" in entry and data is not None:
        chunk = tuple(map(min, entry["chunk"], data.shape))
        names |= {"chunk": chunk, "chunk_x": format_shape(chunk)}
        names["chunk_commas"] = ",".join(map(str, chunk))
    readers = [_reader(entry, one, arguments, names) for one in entry["readers"]]
    if "limit" in entry and data is not None and contiguous is not None:
        readers.append(_limit(store, entry["limit"], data, contiguous))
    made = Comparison(
        _filled(entry["name"], names),
        group,
        _filled(entry["title"], names),
        tuple(readers),
        tuple(_targets(entry)),
        **{name: _filled(entry[name], names) for name in _OF_ALL if name in entry},
    )
    yield made
    if "sizes" in entry:
        left = [
            Reader(one.name, "programs:size", {"target": one.arguments["target"]})
            for one in readers
        ]
        title = _filled(entry["sizes"]["title"], names)
        targets = tuple(_targets(entry["sizes"]))
        yield Comparison(f"{made.name}-size", group, title, tuple(left), targets, "bytes", 1)


def _data(store: Store, given: str | Values, names: Values) -> Data:
    said = dict(_FILES[given] if isinstance(given, str) else given)
    if "data" in said:
        said["data"] = _data(store, said["data"], names)
    make = getattr(store, said.pop("of"))
    found: Data = make(**{name: _filled(value, names) for name, value in said.items()})
    return found


def _reader(entry: Values, given: str | Values, arguments: Values, names: Values) -> Reader:
    said: Values = {"name": given} if isinstance(given, str) else given
    name = _filled(said["name"], names)
    task, key = said.get("task", entry["task"]), said.get("key", entry.get("key", "reader"))
    given = {key: name} if key else {}
    given |= {**entry["arguments"], **said.get("with", {})}
    known = {**names, "name": name, "slug": name.replace(" ", "-")}
    others = {key: _filled(said[key], names) for key in _OF_A_READER if key in said}
    return Reader(name, task, {**arguments, **_filled(given, known)}, **others)


def _targets(entry: Values) -> Iterator[Goal]:
    if "most" in entry:
        yield Goal(entry["most"])
    yield from (Goal(times, other) for other, times in entry.get("faster", {}).items())
    yield from (Goal(1 / times, other) for other, times in entry.get("within", {}).items())
    for by, faster in entry.get("others", {}).items():
        yield from (Goal(times, other, by) for other, times in faster.items())


def _filled(value: Any, names: Values) -> Any:
    """Put values of an entry into texts, at any depth; lists become tuples."""
    if isinstance(value, str):
        whole = value[1:] if value.startswith("$") else ""
        if whole not in names:
            return Template(value).substitute(names)
        found = names[whole]
        return tuple(found) if isinstance(found, list) else found
    if isinstance(value, list):
        return tuple(_filled(one, names) for one in value)
    if isinstance(value, dict):
        return {name: _filled(one, names) for name, one in value.items()}
    return value


def _limit(store: Store, kind: str, data: Data, contiguous: Data) -> Reader:
    """Return what the machine allows, as a compiled program measures it on as many threads."""
    threads = str(thread_count())
    if kind == "copy-boxes":
        with h5py.File(contiguous.path) as file:
            offset = file[contiguous.name].id.get_offset()
        rows, columns = contiguous.shape
        found = runs((rows, columns), 4, random_boxes((rows, columns)), offset)
        path = store.numbers(f"{contiguous.path.stem}-runs", found)
        argv = ["copy", str(contiguous.path), path, threads]
        return Reader("plain copy", "limits", {"argv": argv}, limit=True)
    wanted: Mapping[str, Callable[[tuple[int, ...]], bool]] = {
        "decode": lambda _: True,
        "decode-strided": lambda origin: origin[0] % 10 == 0,
        "decode-boxes": _touched(data),
    }
    # In the order of the file, and of all chunks: other bytes than a reader's.
    argv = [*store.chunks(data, wanted[kind]), threads]
    return Reader("bare decoding", "limits", {"argv": argv}, limit=True, compared=False)


def _touched(data: Data) -> Callable[[tuple[int, ...]], bool]:
    """Return a function: does the chunk that begins at an element hold some of the boxes?"""
    with h5py.File(data.path) as file:
        chunk = file[data.name].chunks

    def touched(origin: tuple[int, ...]) -> bool:
        return any(
            all(
                at < first + side and first < at + count
                for first, side, at, count in zip(origin, chunk, start, counts, strict=True)
            )
            for start, counts in boxes
        )

    boxes = random_boxes(data.shape) if len(data.shape) == 2 else []
    return touched
