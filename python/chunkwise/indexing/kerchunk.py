"""How are references written as Kerchunk writes them: one JSON file, or a folder of Parquet?

See https://fsspec.github.io/kerchunk/spec.html, and fsspec's `LazyReferenceMapper`.
"""

from __future__ import annotations

import base64
import importlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from chunkwise.errors import UsageError
from chunkwise.grammar.boxes import chunk_counts
from chunkwise.indexing.arrays import Variable
from chunkwise.indexing.contents import Contents, as_text
from chunkwise.words import installing

# References written at a time, and in one file of Parquet.
_AT_ONCE: Final = 1 << 16
_IN_A_FILE: Final = 100_000
_ENGINES: Final = ("fastparquet", "pyarrow")

# Called with the number of references written so far.
Progress = Callable[[int], None]


def write_json(path: Path, contents: Contents, url: str, report: Progress) -> None:
    """Write one JSON file."""
    quoted = json.dumps(url).encode()
    done = 0
    with path.open("xb") as stream:
        stream.write(b'{"version":1,"refs":{\n')
        for key, value in contents.metadata.items():
            if key != ".zgroup":
                stream.write(_line(key, as_text(value)))
        stream.write(_line(".zmetadata", as_text(_consolidated(contents))))
        for variable in contents.variables:
            for lines, count in _lines(variable, quoted):
                stream.write(lines)
                done += count
                report(done)
        # The one that is always there has no comma behind it.
        stream.write(_line(".zgroup", as_text(contents.metadata[".zgroup"]))[:-2])
        stream.write(b"\n}}\n")


def _consolidated(contents: Contents) -> dict[str, Any]:
    """All metadata together: zarr lists no members of groups by references alone."""
    return {"zarr_consolidated_format": 1, "metadata": contents.metadata}


def _line(key: str, value: str) -> bytes:
    return f"{json.dumps(key)}:{json.dumps(value)},\n".encode()


def _lines(variable: Variable, url: bytes) -> Iterator[tuple[bytes, int]]:
    """Give the lines of an array's chunks, and how many they are."""
    prefix = json.dumps(f"{variable.path}/")[1:-1].encode()
    if variable.listing is not None:
        for begin in range(0, variable.listing.written, _AT_ONCE):
            count = min(_AT_ONCE, variable.listing.written - begin)
            yield variable.listing.references(begin, count, prefix, url), count
    for key, address, nbytes in variable.pieces:
        yield b'"%b%b":[%b,%d,%d],\n' % (prefix, key.encode(), url, address, nbytes), 1
    for key, content in variable.inlined.items():
        text = base64.standard_b64encode(content).decode("ascii")
        yield _line(f"{variable.path}/{key}", f"base64:{text}"), 0


def write_parquet(path: Path, contents: Contents, url: str, report: Progress) -> None:
    """Write a folder of Parquet files; parameters as of `write_json`."""
    engine, pandas = parquet_engine()
    path.mkdir()
    record = {**_consolidated(contents), "record_size": _IN_A_FILE}
    (path / ".zmetadata").write_text(json.dumps(record), "utf-8")
    done = 0
    for variable in contents.variables:
        folder = path / variable.path
        folder.mkdir(parents=True)
        for number, columns in _tables(variable, url):
            frame = pandas.DataFrame(columns, copy=False)
            # A category that is missing is read as NaN, which fsspec takes for a path.
            if columns["path"].all():
                frame["path"] = frame["path"].astype("category")
            options: dict[str, Any] = {}
            if engine == "fastparquet":
                options["object_encoding"] = {"raw": "bytes", "path": "utf8"}
                options["has_nulls"] = ["path", "raw"]
                options["stats"] = False
            file = folder / f"refs.{number}.parq"
            frame.to_parquet(file, engine=engine, compression="zstd", index=False, **options)
            done += int(np.count_nonzero(columns["size"]))
            report(done)


def parquet_engine() -> tuple[str, Any]:
    """Find what writes Parquet: its name as pandas has it, and pandas."""
    for engine in _ENGINES:
        try:
            importlib.import_module(engine)
            return engine, importlib.import_module("pandas")
        except ImportError:
            continue
    raise UsageError(
        "writing Parquet needs pandas and fastparquet: install them "
        f"({installing('index')}), or write JSON (-o OUT.json)"
    )


def _tables(variable: Variable, url: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Give the columns of each file of an array, and the file's number."""
    grid = chunk_counts(variable.array["shape"], variable.array["chunks"])
    all_chunks = math.prod(grid)
    if variable.listing is not None:
        positions, addresses, sizes = variable.listing.columns()
        written = chunk_counts(variable.written, variable.array["chunks"])
        if written != grid and len(positions):
            places = np.unravel_index(positions.astype(np.intp), written)
            positions = np.ravel_multi_index(places, grid).astype(np.uint64)
    else:
        columns = np.array([piece[1:] for piece in variable.pieces], np.uint64).reshape(-1, 2)
        addresses, sizes = columns[:, 0], columns[:, 1]
        positions = np.arange(len(columns), dtype=np.uint64)
    raws = {_position(key, grid): content for key, content in variable.inlined.items()}
    for number, begin in enumerate(range(0, all_chunks, _IN_A_FILE)):
        # fsspec counts on files of one length.
        length = min(_IN_A_FILE, all_chunks)
        rows = slice(*np.searchsorted(positions, np.array([begin, begin + length], np.uint64)))
        at = (positions[rows] - np.uint64(begin)).astype(np.intp)
        inline = {place - begin: raw for place, raw in raws.items() if 0 <= place - begin < length}
        if not len(at) and not inline:
            continue
        offset, size = np.zeros(length, np.int64), np.zeros(length, np.int64)
        path, raw = np.full(length, None, object), np.full(length, None, object)
        offset[at], size[at], path[at] = addresses[rows], sizes[rows], url
        for place, content in inline.items():
            raw[place] = content
        yield number, {"path": path, "offset": offset, "size": size, "raw": raw}


def _position(key: str, grid: Sequence[int]) -> int:
    """Return the row-major number of a chunk from its key."""
    number = 0
    for place, count in zip(map(int, key.split(".")), grid or (1,), strict=True):
        number = number * count + place
    return number
