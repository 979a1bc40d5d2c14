"""Does the tally of a libhdf5's own filters count the chunks that it loads?

As `observe_loads`, run as a program of its own for each libhdf5: beside the filter that
counts its calls itself there are two of libhdf5's, whose calls chunkwise counts.
"""

import json
import sys
from ctypes import c_int64

from chunkwise import _native
from tests.support.observe_loads import FILTER, Observer

SHUFFLE, FLETCHER32 = 2, 3


class Tallied(Observer):
    """A libhdf5 whose filters are counted in both ways."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.bound = _native.Library.from_path(path)

    def add_filters(self, dcpl: c_int64) -> None:
        self("H5Pset_shuffle", dcpl)
        self("H5Pset_fletcher32", dcpl)

    def count(self) -> int:
        tallied = self.bound.tally([SHUFFLE, FLETCHER32, FILTER])
        # The function of a filter that a program registers itself cannot be found.
        assert FILTER not in tallied
        counts = {tally["decode"][0] for tally in tallied.values()}
        if counts != {self.decoded}:
            raise RuntimeError(f"{counts} tallied, {self.decoded} decoded")
        return self.decoded


if __name__ == "__main__":
    observer = Tallied(sys.argv[1])
    json.dump([observer.loads(case) for case in json.load(sys.stdin)], sys.stdout)
