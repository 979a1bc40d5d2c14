"""Which bytes are fetched with those that libhdf5 asks for, and kept?

`inspect` shows how files are built.  Most have their structures at the front.  The others have
a few hundred bytes here and there between the data, or a long run of them.  Files that were
written in pages have their structures in separate pages.
"""

from __future__ import annotations

import threading
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


class Blocks:
    """The front of a file, and the blocks of it that were used last."""

    def __init__(
        self, size: int, front: bytes, fetch: Callable[[Sequence[Range]], list[bytes]]
    ) -> None:
        self._size, self._front, self._fetch = size, front, fetch
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

    def held(self, start: int, stop: int) -> bytes | None:
        """The bytes, if the front holds them."""
        return self._front[start:stop] if stop <= len(self._front) else None

    def read(self, start: int, stop: int) -> bytes:
        """The bytes from `start` to `stop`, which lie in the file; raises as `fetch`."""
        found = self.held(start, stop)
        if found is not None:
            return found
        if stop - start > max(_MOST_KEPT_NBYTES, 2 * self._block_nbytes):
            return self._fetch([(start, stop)])[0]
        nbytes = self._block_nbytes
        blocks = self._blocks_of(start, stop)
        known = self._known(blocks)
        if len(known) < len(blocks):
            known |= self._add([block for block in blocks if block not in known])
        if self._block_nbytes != nbytes:
            return self.read(start, stop)
        joined = b"".join(known[block] for block in blocks)
        begin = blocks[0] * nbytes
        return joined[start - begin : stop - begin]

    def expect(self, ranges: Iterable[Range]) -> None:
        """Fetch, together, what is missing of ranges that will be read one after the other."""
        wanted: dict[int, None] = {}
        for start, stop in ranges:
            if stop > len(self._front):
                wanted |= dict.fromkeys(self._blocks_of(start, stop))
        blocks = sorted(wanted)
        room = _BUDGET_NBYTES // 2 // self._block_nbytes
        known = self._known(blocks)
        missing = [block for block in blocks if block not in known][:room]
        if missing:
            self._add(missing, ahead=False)

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
