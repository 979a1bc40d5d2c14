"""Do the values of the result equal those of the source, or of a manifest?

Copying takes other checksums, of chunks.  These are of values, independent of how they are stored,
also of attributes and of data on heaps, and can be kept.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from pathlib import Path

import h5py

from chunkwise.errors import AlreadyExistsError, CorruptDataError, UsageError
from chunkwise.files.opening import open_h5
from chunkwise.names import printable
from chunkwise.repacking.options import Options
from chunkwise.repacking.progress import Moment, Watch
from chunkwise.verifying import manifest as manifests
from chunkwise.verifying.api import expected_of
from chunkwise.verifying.records import Damage
from chunkwise.verifying.summing import sum_values
from chunkwise.words import counted


@dataclass(frozen=True)
class Proof:
    """What must be proved about a result.

    Attributes
    ----------
    manifest
        A manifest that has its values; None for none.
    write_manifest
        Where one is written of them; None for nowhere.
    force
        Whether a manifest that exists is replaced.
    """

    manifest: str | None = None
    write_manifest: str | None = None
    force: bool = False

    @property
    def asked(self) -> bool:
        """Whether anything is."""
        return self.manifest is not None or self.write_manifest is not None

    def require_possible(self, options: Options) -> None:
        """Refuse what cannot be proved, before anything is done.

        Raises
        ------
        UsageError
            The manifest cannot be read; or another option makes other values.
        AlreadyExistsError
            Something already has the name of the new manifest.
        """
        if not self.asked:
            return
        for said, given in (("--salvage", options.salvage), ("--shards", options.shards)):
            if given:
                raise UsageError(
                    f"a manifest and {said}: give one of them; `chunkwise verify` writes and "
                    "compares manifests of files that are there"
                )
        if self.manifest is not None:
            manifests.read(self.manifest)
        path = self.write_manifest
        if path is not None and os.path.lexists(path) and not self.force:
            raise AlreadyExistsError(
                f"{printable(path)}: exists; remove it, or give another name or --force"
            )


def prove(
    proof: Proof,
    source: h5py.File,
    made: Path,
    said: str,
    rounded: Container[str],
    total_nbytes: int,
    watch: Watch,
) -> Callable[[], None]:
    """Read the values of source and result, and compare them.

    Parameters
    ----------
    proof
        What must be proved.
    source
        The open source.
    made
        The closed result.
    said
        The result's name, for messages.
    rounded
        Datasets whose values need not be those of the source.
    total_nbytes
        Bytes of values.
    watch
        Told about progress; may raise to end it.

    Returns
    -------
    callable
        Writes the manifest that was asked for, when the result is in place.

    Raises
    ------
    CorruptDataError
        The first difference, by name.
    """
    passes = 1 + (proof.write_manifest is not None)
    beat = _beating(watch, passes * total_nbytes)
    with open_h5(made) as file:
        sums = sum_values(file, beat)
    if proof.manifest is not None:
        expected = expected_of(manifests.read(proof.manifest), said, proof.manifest)
        _require_none(manifests.differences(expected, sums), said, "the manifest")
    if proof.write_manifest is None:
        return lambda: None
    differences = manifests.differences(sum_values(source, beat), sums)
    _require_none((one for one in differences if one.path not in rounded), said, "the source")
    known = {Path(said).name: sums}
    target = proof.write_manifest
    return lambda: manifests.write(target, known, force=proof.force)


def _require_none(damages: Iterable[Damage], said: str, other: str) -> None:
    found = list(damages)
    if not found:
        return
    first = found[0]
    more = f", and {counted(len(found) - 1, 'other difference')}" if len(found) > 1 else ""
    raise CorruptDataError(
        f"{printable(said)}: is not what {other} has: '{printable(first.path or '')}': "
        f"{printable(first.reason)}{more}; the result was dropped, the source is untouched"
    )


def _beating(watch: Watch, total_nbytes: int) -> Callable[[int], None]:
    begun = time.monotonic()
    done = 0

    def beat(nbytes: int) -> None:
        nonlocal done
        done += nbytes
        elapsed_s = time.monotonic() - begun
        moment = Moment(
            "verifying",
            total_done_nbytes=min(done, total_nbytes),
            total_nbytes=total_nbytes,
            elapsed_s=elapsed_s,
        )
        watch(moment)

    return beat
