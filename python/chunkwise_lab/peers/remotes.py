"""How long does it take to open a file behind HTTP, and to read a part of it?"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import h5py
import numpy as np

import chunkwise
import chunkwise.file
from chunkwise_lab.peers.task import Sample, Task, imported, timed

# Reads a part of a dataset behind a URL.
Reading = Callable[[str, str], Any]
POINTS: Final = 500
# The front of the file, the nodes of its index, its chunks: each says where the next ones lie.
ROUNDS: Final = 3
FRONT_NBYTES: Final = 256 << 10
CONNECTIONS: Final = 8


@contextmanager
def served(file: str, latency_s: float, rate: float) -> Iterator[str]:
    """The URL of a file that a process of its own serves, at most at ``rate`` bytes a second."""
    server_path = str(Path(__file__).with_name("web.py"))
    command = [sys.executable, server_path, file, str(latency_s), str(rate)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        try:
            yield f"http://127.0.0.1:{port}/{Path(file).name}"
        finally:
            server.terminate()


def rounds(file: str = "", folder: str = "", latency_s: float = 0.05) -> Task:
    """Open a file by xarray, its coordinates read: how often are answers waited for?"""
    xr = imported("xarray", "fsspec", "aiohttp")
    from chunkwise.remote.source import RemoteBytes

    def measure() -> Sample:
        # The front comes when the object is made.
        count, fetch = 1, RemoteBytes._fetch

        def counted(self: RemoteBytes, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
            nonlocal count
            count += 1
            return fetch(self, ranges)

        try:
            RemoteBytes._fetch = counted  # type: ignore[method-assign]
            with xr.open_dataset(url, engine="chunkwise"):
                return Sample(float(count))
        finally:
            RemoteBytes._fetch = fetch  # type: ignore[method-assign]

    with served(file or str(min(Path(folder).iterdir())), latency_s, 0) as url:
        yield measure


def opened_and_read(
    reader: str, file: str, dataset: str, kind: str, latency_s: float = 0.05, rate: float = 0
) -> Task:
    """Open a file and read some of it: 60 ``maps`` in a row, or ``points`` anywhere."""
    imported("fsspec", "aiohttp")
    points, ranges = _wanted(file, dataset)
    read = _READERS[reader](kind, points, ranges)
    with served(file, latency_s, rate) as url:
        yield lambda: timed(lambda: read(url, dataset))


def three_rounds(
    file: str, dataset: str, kind: str, latency_s: float = 0.05, rate: float = 0
) -> Task:
    """The latency of three rounds, and the time that all their bytes take by bare sockets."""
    points, ranges = _wanted(file, dataset)
    chunks = sum(stop - start for start, stop in _needed(kind, points, ranges))
    share = min(FRONT_NBYTES + chunks, Path(file).stat().st_size) // CONNECTIONS
    with served(file, latency_s, rate) as url, ExitStack() as opened:
        address = urlsplit(url)
        lines = [
            opened.enter_context(socket.create_connection((address.hostname, address.port)))
            for _ in range(CONNECTIONS)
        ]

        def receive(line: socket.socket, number: int) -> None:
            span = f"bytes={number * share}-{(number + 1) * share - 1}"
            line.sendall(f"GET {address.path} HTTP/1.1\r\nRange: {span}\r\n\r\n".encode())
            room = bytearray(1 << 20)
            begin = b""
            while b"\r\n\r\n" not in begin:
                begin += line.recv(1 << 16)
            head, _, body = begin.partition(b"\r\n\r\n")
            left = int(head.lower().partition(b"content-length: ")[2].split()[0]) - len(body)
            while left > 0:
                left -= line.recv_into(room, min(len(room), left))

        def measure() -> Sample:
            begun = time.perf_counter()
            threads = [
                threading.Thread(target=receive, args=(line, number))
                for number, line in enumerate(lines)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            transfer_s = time.perf_counter() - begun - latency_s
            details = {"rounds": ROUNDS, "nbytes": CONNECTIONS * share, "transfer_s": transfer_s}
            return Sample(ROUNDS * latency_s + transfer_s, details=details)

        yield measure


def _wanted(file: str, dataset: str) -> tuple[Any, list[tuple[int, int]]]:
    """The points, and where each map's chunk lies."""
    with h5py.File(file) as opened:
        shape = opened[dataset].shape
        points = np.sort(np.random.default_rng(0).integers(shape, size=(POINTS, 3)), axis=0)
        return points, _ranges(opened[dataset])


def _needed(kind: str, points: Any, ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Where the chunks lie that are needed."""
    if kind == "maps":
        return ranges[_some((len(ranges),))]
    return [ranges[step] for step in sorted({*points[:, 0].tolist()})]


def _some(shape: tuple[int, ...]) -> slice:
    """A sixth of the maps: 60 of 365."""
    return slice(shape[0] // 4, shape[0] // 4 + max(shape[0] // 6, 1))


def _ranges(dataset: h5py.Dataset) -> list[tuple[int, int]]:
    """Where each map's chunk lies."""
    found = []
    for step in range(dataset.shape[0]):
        chunk = dataset.id.get_chunk_info_by_coord((step, 0, 0))
        found.append((chunk.byte_offset, chunk.byte_offset + chunk.size))
    return found


def _by_chunkwise(kind: str, points: Any, _: Any) -> Reading:
    selection = chunkwise.points(points.tolist())

    def read(url: str, dataset: str) -> Any:
        chunkwise.cache_clear()
        with chunkwise.open(url) as file:
            found = file[dataset]
            return found[_some(found.shape)] if kind == "maps" else found.read(selection)

    return read


def _by_h5py(**options: Any) -> Callable[[str, Any, Any], Reading]:
    def reader(kind: str, points: Any, _: Any) -> Reading:
        import fsspec

        def read(url: str, dataset: str) -> Any:
            with fsspec.open(url, **options) as stream, h5py.File(stream) as file:
                found = file[dataset]
                if kind == "maps":
                    return found[_some(found.shape)]
                return np.array([found[tuple(point)] for point in points.tolist()])

        return read

    return reader


def _by_ranges(kind: str, points: Any, ranges: list[tuple[int, int]]) -> Reading:
    import fsspec

    wanted = _needed(kind, points, ranges)

    def read(url: str, _: str) -> Any:
        web = fsspec.filesystem("http")
        begins, ends = zip(*wanted, strict=True)
        web.cat_ranges([url] * len(wanted), list(begins), list(ends))

    return read


_READERS: Final[dict[str, Callable[[str, Any, Any], Reading]]] = {
    "chunkwise": _by_chunkwise,
    "fsspec": _by_h5py(),
    "blocks": _by_h5py(cache_type="blockcache", block_size=4 << 20),
    "ranges": _by_ranges,
}
