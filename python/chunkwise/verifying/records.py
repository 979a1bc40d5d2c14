"""What is known about a file after it was verified?"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Literal, TypeAlias, get_args

from chunkwise.model.far import Fetched
from chunkwise.verdicts import FileVerdict, worst_verdict

Kind: TypeAlias = Literal[
    "truncated",
    "no-signature",
    "cannot-open",
    "object",
    "attribute",
    "index",
    "beyond-end",
    "overlap",
    "checksum",
    "decode",
    "length",
    "trailing",
    "unreadable",
    "values",
    "manifest",
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

FORMAT: Final = "chunkwise-verify-file"
VERSION: Final = 2


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a file that were written and are gone or wrong.

    Attributes
    ----------
    kind
        What kind of damage it is; see ``docs/verify.md``.
    path
        The object's path, with ``@NAME`` behind it for an attribute; None for the file.
    reason
        What is wrong, in words.
    origin
        Element at which the chunk begins; None for what is no chunk.
    address
        Where its bytes lie in the file; None if that is not known.
    nbytes
        How many bytes it takes there.
    """

    kind: Kind
    path: str | None
    reason: str
    origin: tuple[int, ...] | None = None
    address: int | None = None
    nbytes: int | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """Something worth knowing that is not damage.

    Attributes
    ----------
    path
        The object; None for the file.
    reason
        What there is to know, in words.
    verdict
        What it says of the file: a loose end, what cannot be judged here, what could not be read,
        that it is busy; ``sound`` if it says nothing.
    """

    path: str | None
    reason: str
    verdict: FileVerdict = FileVerdict.SOUND


@dataclass
class Findings:
    """What was found so far of a file, or of one object of it."""

    damages: list[Damage] = field(default_factory=list)
    damage_count: int = 0  # How many there are, listed or not
    notes: list[Note] = field(default_factory=list)
    objects: int = 0  # How many were read
    datasets: int = 0
    attributes: int = 0
    chunks: int = 0
    stored_nbytes: int = 0  # Bytes of data that were read
    most: float = math.inf  # How many damages are listed

    def add(self, damage: Damage) -> None:
        """Add one damage."""
        self.damage_count += 1
        if len(self.damages) < self.most:
            self.damages.append(damage)

    def take(self, other: Findings) -> None:
        """Add what was found of an object."""
        self.damages += other.damages
        self.notes += other.notes
        for name in ("damage_count", *_COUNTS):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def of_file(self, path: str, nbytes: int, elapsed_s: float) -> Verified:
        """Return what was found of a file, when all of it is read."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        damages, notes, count = tuple(self.damages), tuple(self.notes), self.damage_count
        return Verified(path, nbytes, damages, count, notes, elapsed_s=elapsed_s, **counts)


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of verifying one file.

    Attributes
    ----------
    path
        The file, as given or as found.
    nbytes
        Its size; None if even that is not known.
    damages
        All damage, at most `MOST_DAMAGES` for one dataset.
    damage_count
        How many there are, listed or not.
    notes
        What a user should know.
    objects, datasets, attributes, chunks
        How many were read.
    stored_nbytes
        Bytes of data that were read.
    elapsed_s
        Seconds.
    far
        What was fetched of a file that was named by a URL.
    """

    path: str
    nbytes: int | None
    damages: tuple[Damage, ...] = ()
    damage_count: int = 0
    notes: tuple[Note, ...] = ()
    objects: int = 0
    datasets: int = 0
    attributes: int = 0
    chunks: int = 0
    stored_nbytes: int = 0
    elapsed_s: float = 0.0
    far: Fetched | None = None

    @property
    def verdict(self) -> FileVerdict:
        """What is said of the file: the worst of what was found."""
        if self.damage_count:
            return FileVerdict.DAMAGED
        return worst_verdict(note.verdict for note in self.notes)

    @property
    def whole_datasets(self) -> int:
        """How many of the datasets that could be opened have no damage in their data."""
        data = {one.path for one in self.damages if one.path and one.kind in _OF_DATA}
        return self.datasets - len(data)

    def as_dict(self) -> dict[str, Any]:
        """Return the record that ``--json`` prints."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "verdict": str(self.verdict),
            "exit_code": int(self.verdict.exit),
            "whole_datasets": self.whole_datasets,
            **asdict(self),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Verified:
        """Undo `as_dict`.

        Raises
        ------
        KeyError, TypeError, ValueError
            It is no such record.
        """
        if record["format"] != FORMAT or record["version"] != VERSION:
            raise ValueError("another format")
        known = {field.name: record[field.name] for field in fields(cls) if field.name != "far"}
        known["damages"] = tuple(
            Damage(**{**one, "origin": None if one["origin"] is None else tuple(one["origin"])})
            for one in record["damages"]
        )
        known["notes"] = tuple(
            Note(**{**one, "verdict": FileVerdict(one["verdict"])}) for one in record["notes"]
        )
        return cls(**known)


# This many damages of one dataset are listed.
MOST_DAMAGES: Final = 10_000
# What is counted, of `Findings` and of `Verified`.
_COUNTS: Final = ("objects", "datasets", "attributes", "chunks", "stored_nbytes")


_OF_DATA: Final = frozenset(
    {"index", "beyond-end", "overlap", "checksum", "decode", "length", "trailing", "unreadable"}
    | {"values"}
)
