"""Which small files claim much, or lead where reading never ends?

Each of a few kilobytes.  A program that reads them does work in proportion to what they hold, and
not to what they claim.  `CASES` writes them, by name, into a folder of their own.
"""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

Write = Callable[[Path], Path]
NAME: Final = "hostile.h5"

# Bytes of each file, but where a number of attributes is the point.
MOST_NBYTES: Final = 64 << 10


def _file(folder: Path, **options: Any) -> h5py.File:
    return h5py.File(folder / NAME, "w", **options)


def _unwritten(
    shape: tuple[int, ...], dtype: Any, chunk: tuple[int, ...] | None = None, **options: Any
) -> Write:
    def write(folder: Path) -> Path:
        with _file(folder) as file:
            file.create_dataset("x", shape, dtype, chunks=chunk, **options)
            file["y"] = np.arange(10)
        return folder / NAME

    return write


def _one_chunk(shape: tuple[int, ...], chunk: tuple[int, ...], dtype: Any = "f4") -> Write:
    """One element was written, in the midst."""

    def write(folder: Path) -> Path:
        with _file(folder) as file:
            made = file.create_dataset("x", shape, dtype, chunks=chunk, compression=9)
            made[tuple(n // 2 for n in shape)] = b"a" if made.dtype.hasobject else 1
        return folder / NAME

    return write


def _fill_undefined(folder: Path) -> Path:
    with _file(folder) as file:
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_fill_time(h5d.FILL_TIME_NEVER)
        space = h5s.create_simple((2**40,))
        h5d.create(file.id, b"x", h5t.NATIVE_INT32, space, dcpl)
    return folder / NAME


def _external(make: Callable[[Path], object], nbytes: int = 10) -> Write:
    """External data in what `make` puts at a path."""

    def write(folder: Path) -> Path:
        other = folder / "other"
        make(other)
        with _file(folder) as file:
            file.create_dataset("x", (nbytes,), "u1", external=[("other", 0, nbytes)])
        return folder / NAME

    return write


def _virtual(make: Callable[[Path], object], shape: tuple[int, ...] = (10,)) -> Write:
    """A virtual dataset whose source is in what `make` puts at a path."""

    def write(folder: Path) -> Path:
        make(folder / "other")
        layout = h5py.VirtualLayout(shape, "u1")
        layout[:] = h5py.VirtualSource("other", "x", shape)
        texts = h5py.VirtualLayout(shape, h5py.string_dtype())
        texts[:] = h5py.VirtualSource("other", "t", shape)
        with _file(folder) as file:
            file.create_virtual_dataset("x", layout)
            file.create_virtual_dataset("texts", texts)
        return folder / NAME

    return write


def _linked(make: Callable[[Path], object]) -> Write:
    """External links, also behind soft ones and in a virtual dataset, to what `make` makes."""

    def write(folder: Path) -> Path:
        make(folder / "other")
        layout = h5py.VirtualLayout((10,), "u1")
        layout[:] = h5py.VirtualSource(".", "/away/x", (10,))
        with _file(folder) as file:
            file["away"] = h5py.ExternalLink("other", "/")
            file["soft"] = h5py.SoftLink("/away/x")
            file["colon"] = h5py.ExternalLink(f"{folder}/other", "/a:b")
            file.create_virtual_dataset("x", layout)
        return folder / NAME

    return write


def _attributes(libver: str, count: int) -> Write:
    def write(folder: Path) -> Path:
        with _file(folder, libver=libver) as file:
            made = file.create_dataset("x", data=np.arange(10), chunks=(10,))
            for number in range(count):
                made.attrs.create(f"a{number}", number, dtype="i4")
        return folder / NAME

    return write


def _large_attribute(folder: Path) -> Path:
    """An attribute of text, each element of which is the same long one on the heap."""
    with _file(folder, libver="latest") as file:
        file.attrs["a"] = np.array(["b" * 1000] * 30, object)
        file["x"] = np.arange(10)
    return folder / NAME


def _loops(folder: Path) -> Path:
    """Groups that hold each other, and soft links without end."""
    with _file(folder) as file:
        here = file
        for _ in range(20):
            made = here.create_group("a")
            here["b"] = made
            here = made
        here["top"] = file["/"]
        for number in range(20):
            file[f"s{number}"] = h5py.SoftLink(f"/s{(number + 1) % 20}")
    return folder / NAME


def _socket(path: Path) -> None:
    # Its name has room for 108 bytes.
    before = os.open(".", os.O_RDONLY)
    try:
        os.chdir(path.parent)
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.fchdir(before)
        os.close(before)


def _symlink_to(target: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(target)


def _unwritten_source(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (2**44,), "u1")
        file.create_dataset("t", (2**44,), h5py.string_dtype())


def _mkfifo(path: Path) -> None:
    os.mkfifo(path)


def _nothing(_path: Path) -> None:
    pass


def _short(path: Path) -> None:
    path.write_bytes(b"short")


_TEXT: Final = h5py.string_dtype()
_SPECIAL: Final[dict[str, Callable[[Path], object]]] = {
    "fifo": _mkfifo,
    "zero": _symlink_to("/dev/zero"),
    "tty": _symlink_to("/dev/tty"),
    "socket": _socket,
    "folder": Path.mkdir,
    "nothing": _nothing,
}

CASES: Final[dict[str, Write]] = {
    "unwritten-contiguous-2-50": _unwritten((2**50,), "u1"),
    "unwritten-chunked-2-50": _unwritten((2**50,), "f8", (2**16,)),
    "unwritten-plane-2-50": _unwritten((2**25, 2**25), "f4", (1024, 1024), compression=1),
    "unwritten-small-chunks": _unwritten((2**40,), "f4", (1,)),
    "unwritten-chunk-of-2-gib": _unwritten((2**40,), "u1", (2**31,)),
    "unwritten-texts-2-34": _unwritten((2**34,), _TEXT),
    "unwritten-texts-chunked-2-34": _unwritten((2**34,), _TEXT, (2**20,)),
    "unwritten-sequences-2-34": _unwritten((2**34,), h5py.vlen_dtype("i4"), (2**20,)),
    "unwritten-references-2-34": _unwritten((2**34,), h5py.ref_dtype),
    "unwritten-fill-undefined": _fill_undefined,
    "one-chunk-of-2-50": _one_chunk((2**25, 2**25), (64, 64)),
    "one-chunk-of-2-36": _one_chunk((2**18, 2**18), (64, 64)),
    "one-text-of-2-34": _one_chunk((2**34,), (1000,), _TEXT),
    "one-chunk-of-64-mib": _one_chunk((2**12, 2**12), (2**12, 2**12)),
    "external-too-short": _external(_short, 2**44),
    "virtual-source-unwritten": _virtual(_unwritten_source, (2**44,)),
    "virtual-source-missing": _virtual(_nothing, (2**44,)),
    "attributes-earliest": _attributes("earliest", 2000),
    "attributes-latest": _attributes("latest", 4000),
    "large-attribute": _large_attribute,
    "loops": _loops,
    **{f"external-{name}": _external(make) for name, make in _SPECIAL.items()},
    **{f"virtual-{name}": _virtual(make) for name, make in _SPECIAL.items()},
    **{f"linked-{name}": _linked(make) for name, make in _SPECIAL.items()},
}
