"""What is known about a file after it was verified?"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal, TypeAlias, get_args

Kind: TypeAlias = Literal[
    "truncated",
    "no-signature",
    "cannot-open",
    "crash",
    "unclosed",
    "object",
    "attribute",
    "reference",
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
Verdict: TypeAlias = Literal["sound", "damaged", "unchecked"]

FORMAT: Final = "chunkwise-verify-file"
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Damage:
    """One part of a file that is not as it was written.

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
    unchecked
        Whether some of the file could not be checked.
    """

    path: str | None
    reason: str
    unchecked: bool = False


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

    @property
    def verdict(self) -> Verdict:
        """``damaged`` where anything was found, ``unchecked`` where some was not looked at."""
        if self.damage_count:
            return "damaged"
        return "unchecked" if any(note.unchecked for note in self.notes) else "sound"

    def as_dict(self) -> dict[str, Any]:
        """Return the record that ``--json`` prints."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "verdict": self.verdict,
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
        known = {field.name: record[field.name] for field in fields(cls)}
        known["damages"] = tuple(_damage(one) for one in record["damages"])
        known["notes"] = tuple(Note(**one) for one in record["notes"])
        return cls(**known)


# This many damages of one dataset are listed.
MOST_DAMAGES: Final = 10_000


def _damage(record: dict[str, Any]) -> Damage:
    origin = record["origin"]
    return Damage(**{**record, "origin": None if origin is None else tuple(origin)})
