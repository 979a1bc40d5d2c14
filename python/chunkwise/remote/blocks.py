"""Which bytes are fetched with those that libhdf5 requests, and kept?

Most files have their structures at the front; others between the data, or in separate pages.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from chunkwise.remote.requests import Range

# Fetched when a file is opened.
FRONT_NBYTES: Final = 256 << 10
# Fetched around what lies elsewhere; twice as many where what lies before was wanted before.
_BLOCK_NBYTES: Final = 32 << 10
_MOST_BLOCK_NBYTES: Final = 4 << 20
# Files up to this size are fetched whole once more than the front is wanted.
_WHOLE_NBYTES: Final = 1 << 20
# More than this is data: it is given, and not kept.
_MOST_KEPT_NBYTES: Final = 256 << 10
_BUDGET_NBYTES: Final = 32 << 20
# Bytes a second of a network, until a fetch of this many or more shows that it is slower.
NBYTES_PER_S: Final = 100_000_000
_TELLING_NBYTES: Final = 256 << 10
# The rest of a file comes whole once it takes less time than this many rounds.
_ROUNDS: Final = 2
# So often is looked for blocks around those that are wanted, as some are here already.
_WIDENED: Final = 4


class Blocks:
    """The front of a file, and the blocks of it that were used last."""

    def __init__(
        self,
        size: int,
        front: bytes,
        fetch: Callable[[Sequence[Range]], list[bytes]],
        latency_s: float = 0.0,
    ) -> None:
        self._size, self._front, self._fetch = size, front, fetch
        self._latency_s, self._nbytes_per_s = latency_s, NBYTES_PER_S
        # How many rounds have brought what was expected, and more; None if they bring no more.
        self._rounds: int | None = None
        self._block_nbytes = _BLOCK_NBYTES
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        # Where the last fetched run ended, and how many blocks it had.
        self._end, self._run = -1, 1
        self._lock = threading.Lock()

    def forked(self) -> None:
        """Make a new lock, because another thread may have held the old one."""
        self._lock = threading.Lock()

    def of_pages(self, page_nbytes: int) -> None:
        """Fetch by pages from now on: the file was written so."""
        with self._lock:
            self._block_nbytes = min(max(page_nbytes, 4096), _MOST_BLOCK_NBYTES)
            self._kept.clear()

    def look_around(self, yes: bool) -> None:
        """Also fetch the bytes beside expected ones: the next requests are often there."""
        self._rounds = 0 if yes else None

    def _ahead_nbytes(self) -> float:
        """How many bytes come with those that are expected."""
        if self._rounds is None:
            return 0
        in_a_round = self._latency_s * self._nbytes_per_s
        if self._rounds and self._missing_nbytes() <= _ROUNDS * in_a_round:
            return self._size + self._block_nbytes
        # It takes a quarter of the time of another round at first, and then up to all of it.
        return in_a_round / 4 * min(1 << self._rounds, 4)

    def _missing_nbytes(self) -> int:
        with self._lock:
            here = len(self._kept) * self._block_nbytes
        return self._size - len(self._front) - here

    def held(self, start: int, stop: int) -> bytes | None:
        """The bytes, if they are here."""
        if stop <= len(self._front):
            return self._front[start:stop]
        return None if self._is_long(start, stop) else self._joined(start, stop, fetches=False)

    def read(self, start: int, stop: int) -> bytes:
        """The bytes from `start` to `stop`, which lie in the file; raises as `fetch`."""
        if stop <= len(self._front):
            return self._front[start:stop]
        if self._is_long(start, stop):
            return self._fetch([(start, stop)])[0]
        found = self._joined(start, stop, fetches=True)
        return self.read(start, stop) if found is None else found

    def _is_long(self, start: int, stop: int) -> bool:
        return stop - start > max(_MOST_KEPT_NBYTES, 2 * self._block_nbytes)

    def _joined(self, start: int, stop: int, *, fetches: bool) -> bytes | None:
        """The bytes of blocks; None where some are not here, or all have another size by now."""
        nbytes, blocks = self._block_nbytes, self._blocks_of(start, stop)
        known = self._known(blocks)
        if fetches and len(known) < len(blocks):
            known |= self._add([block for block in blocks if block not in known])
        if len(known) < len(blocks) or self._block_nbytes != nbytes:
            return None
        begin = blocks[0] * nbytes
        return b"".join(known[block] for block in blocks)[start - begin : stop - begin]

    def expect(self, ranges: Iterable[Range]) -> None:
        """Fetch together the missing parts of ranges that will be read one after the other."""
        wanted: dict[int, None] = {}
        for start, stop in ranges:
            if stop > len(self._front):
                wanted |= dict.fromkeys(self._blocks_of(start, stop))
        blocks = sorted(wanted)
        room = _BUDGET_NBYTES // 2 // self._block_nbytes
        known = self._known(blocks)
        missing = [block for block in blocks if block not in known][:room]
        if not missing:
            return
        fetched = self._with_neighbours(missing, room)
        begin = time.perf_counter()
        self._add(fetched, ahead=False)
        sent_s = time.perf_counter() - begin - self._latency_s
        nbytes = len(fetched) * self._block_nbytes
        if nbytes >= _TELLING_NBYTES and sent_s > nbytes / NBYTES_PER_S:
            self._nbytes_per_s = int(nbytes / sent_s)
        if self._rounds is not None:
            self._rounds += 1

    def _with_neighbours(self, missing: list[int], room: int) -> list[int]:
        """Add blocks around those that are fetched, as many around each, and the last of all."""
        last = -(-self._size // self._block_nbytes) - 1
        ahead = int(self._ahead_nbytes() // self._block_nbytes)
        if last <= ahead:
            whole = range(len(self._front) // self._block_nbytes, last + 1)
            rest = sorted({*missing, *whole}.difference(self._known(whole)))
            if len(rest) <= room:
                return rest
        more = max(min(ahead, room - len(missing)), 0)
        wanted = {last} if more else set()
        reach = 0
        # Where some are here already, the others reach farther.
        for _ in range(_WIDENED):
            left = more + len(missing) - len(wanted.union(missing))
            if left < 2 * len(missing):
                break
            reach += left // len(missing) // 2
            for block in missing:
                wanted.update(range(max(block - reach, 0), min(block + reach, last) + 1))
            wanted.difference_update(self._known(wanted))
        return sorted(wanted.union(missing).difference(self._known(wanted)))

    def _blocks_of(self, start: int, stop: int) -> range:
        return range(start // self._block_nbytes, -(-stop // self._block_nbytes))

    def _known(self, blocks: Iterable[int]) -> dict[int, bytes]:
        found = {}
        with self._lock:
            for block in blocks:
                if block in self._kept:
                    self._kept.move_to_end(block)
                    found[block] = self._kept[block]
        return found

    def _add(self, missing: list[int], ahead: bool = True) -> dict[int, bytes]:
        """Fetch these blocks, in ascending order, and those that will be wanted next."""
        nbytes, last = self._block_nbytes, -(-self._size // self._block_nbytes)
        if self._size <= _WHOLE_NBYTES:
            missing = list(range(last))
        elif ahead:
            self._run = (
                min(2 * self._run, _MOST_BLOCK_NBYTES // nbytes)
                if (missing[0] == self._end)
                else 1
            )
            more = range(missing[-1] + 1, min(missing[-1] + self._run, last))
            with self._lock:
                missing = missing + [block for block in more if block not in self._kept]
            self._end = missing[-1] + 1
        runs: list[list[int]] = []
        for block in missing:
            if runs and runs[-1][1] == block:
                runs[-1][1] = block + 1
            else:
                runs.append([block, block + 1])
        ranges = [(begin * nbytes, min(end * nbytes, self._size)) for begin, end in runs]
        found = {}
        for (begin, end), piece in zip(runs, self._fetch(ranges), strict=True):
            for block in range(begin, end):
                at = (block - begin) * nbytes
                found[block] = piece[at : at + nbytes]
        with self._lock:
            if self._block_nbytes == nbytes:
                self._kept |= found
                while len(self._kept) > max(1, _BUDGET_NBYTES // nbytes):
                    self._kept.popitem(last=False)
        return found
