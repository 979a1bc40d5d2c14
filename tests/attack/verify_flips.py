"""Flipped bits and cuts anywhere in files of every codec and index: verified, never a miss.

Where every byte has a checksum (new formats, Fletcher-32), whatever is not found changes nothing
that h5py reads; elsewhere, whatever h5py refuses to read is found.
"""

import random
import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import chunkwise
from tests.support import verifying

SHORT = 6
# Files that one attempt makes of one.
_EACH = 25


def attempt(seed: int, folder: Path) -> None:
    rng = random.Random(seed)
    path = folder / "a.h5"
    checked = rng.random() < 0.5
    sealed = _write(path, rng, checked=checked)
    sound = path.read_bytes()
    assert verifying.apart([path])[0].verdict == "sound"
    contents = [_damaged(sound, rng) for _ in range(_EACH)]
    paths = [folder / f"{number}.h5" for number in range(_EACH)]
    for one, content in zip(paths, contents, strict=True):
        one.write_bytes(content)
    found = verifying.apart(paths)
    read = verifying.read_each([sound, *contents], folder / "theirs.h5")
    assert read[0] is not None
    for verified, content, theirs in zip(found, contents, read[1:], strict=True):
        told = f"{verified.path}: {verified.damages[:2]}, {verified.notes[:2]}"
        if theirs is None and len(content) == len(sound):
            # A number that no HDF5 has used so far may be a newer one's, and where only the end
            # is stated too early, all is there.
            too_early = any("it states its end" in note.reason for note in verified.notes)
            seen = verified.verdict in ("damaged", "cannot be judged here") or too_early
            assert seen or _is_a_reserved_code(path, Path(verified.path)), told
        elif len(content) < len(sound) or (sealed and theirs != read[0]):
            assert verified.verdict == "damaged", told


def _is_a_reserved_code(sound: Path, damaged: Path) -> bool:
    """Whether all values are right, and zlib alone refuses their codes (docs/verify.md)."""
    refused = 0
    with h5py.File(sound) as mine, h5py.File(damaged) as theirs, chunkwise.open(damaged) as ours:
        for name in mine["g"]:
            if not np.array_equal(ours["g"][name][...], mine["g"][name][...]):
                return False
            dataset = theirs["g"][name]
            for number in range(dataset.id.get_num_chunks()):
                origin = dataset.id.get_chunk_info(number).chunk_offset
                try:
                    zlib.decompressobj().decompress(dataset.id.read_direct_chunk(origin)[1])
                except zlib.error as error:
                    if "invalid literal/length code" not in str(error) and (
                        "invalid distance code" not in str(error)
                    ):
                        return False
                    refused += 1
    return refused > 0


def _write(path: Path, rng: random.Random, *, checked: bool) -> bool:
    """Write a file; tell whether each of its bytes that matters has a checksum."""
    libver = "latest" if checked else rng.choice(["earliest", "latest"])
    codec = rng.choice(list(verifying.CODECS))
    with h5py.File(path, "w", libver=libver, userblock_size=rng.choice([0, 512])) as file:
        group = file.create_group("g", track_order=rng.random() < 0.5)
        for number in range(rng.choice([1, 12])):
            group.attrs[f"a{number}"] = np.arange(number)
        for number in range(rng.randrange(1, 4)):
            shape = rng.randrange(20, 50), rng.randrange(32, 60)
            options: dict[str, Any] = dict(verifying.CODECS[codec])
            # h5py puts no checksum behind what may round.
            options["fletcher32"] = codec != "scaleoffset" and (checked or rng.random() < 0.3)
            options["maxshape"] = rng.choice([None, (None, shape[1]), (None, None)])
            options["chunks"] = (rng.randrange(4, 20), 32)
            made = group.create_dataset(
                f"d{number}", data=verifying.field(number, shape), **options
            )
            # Of fixed length: text of variable length lies in a heap, which has no checksum.
            made.attrs["units"] = np.bytes_("K")
    return checked and codec != "scaleoffset"


def _damaged(sound: bytes, rng: random.Random) -> bytes:
    content = bytearray(sound)
    kind = rng.randrange(10)
    if kind == 0:
        return bytes(content[: rng.randrange(len(content))])
    begin = rng.randrange(len(content))
    if kind == 1:
        # A block that was lost, as by a disk.
        length = min(rng.choice([16, 512, 4096]), len(content) - begin)
        content[begin : begin + length] = bytes(length)
        return bytes(content)
    verifying.flip(content, rng.randrange(8 * len(content)))
    return bytes(content)
