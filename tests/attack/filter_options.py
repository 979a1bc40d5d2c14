"""One option of one filter set to another number, in the header: read as by h5py, or refused.

Both read in a child process, as in `damaged`.  Where the file says options that libhdf5 reads with
memory that nobody has set (nbit), nothing follows from its values: there is no nbit here.
"""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tests.attack._sealed import seal_again
from tests.attack.damaged import CODECS, compare

SHORT = 12

SMALL = (0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 32, 33, 64, 255, 1000, 2**16)
# With these, a filter that takes an option for a size asks for memory that a child has not.
LARGE = (2**24, 2**31 - 1, 2**31, 2**32 - 1)


def attempt(seed: int, folder: Path) -> None:
    rng = random.Random(seed)
    path = folder / "d.h5"
    options: dict[str, Any] = rng.choice([codec for codec in CODECS if codec])
    dtype = rng.choice(["<i4", ">u2", "<f4", "<f8", "i1"])
    if "scaleoffset" in options and dtype[1] == "f":
        options = {"scaleoffset": rng.randrange(4)}
    data = (np.arange(1200) // rng.randrange(1, 9) % 100).astype(dtype).reshape(30, 40)
    with h5py.File(path, "w", libver=rng.choice(["earliest", "latest"])) as f:
        fill = rng.choice([None, 7])
        d = f.create_dataset("d", data=data, chunks=(15, 16), fillvalue=fill, **options)
        plist = d.id.get_create_plist()
        filters = [plist.get_filter(n) for n in range(plist.get_nfilters())]
    said = [(values, n) for _, _, values, _ in filters for n in range(len(values))]
    if not said:
        return
    values, n = rng.choice(said)
    # A row of numbers found once in the file is that filter's; of several, none is known to be.
    content = bytearray(path.read_bytes())
    packed = struct.pack(f"<{len(values)}I", *values)
    at = content.find(packed) + 4 * n
    if content.count(packed) != 1:
        return
    changed = rng.choice([*SMALL, *LARGE, values[n] ^ 1, values[n] ^ 1 << rng.randrange(16)])
    sound = bytes(content)
    content[at : at + 4] = struct.pack("<I", changed)
    seal_again(content, sound, at)
    path.write_bytes(content)
    told = f"{options}, {dtype}: option {n} of {values} as {changed}"
    compare(path, told, may_lack_memory=changed in LARGE)
