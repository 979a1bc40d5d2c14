"""Is there anything in the file that cannot be reached?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Final

import h5py

from chunkwise.files.causes import cause_of
from chunkwise.inspection.facts import ObjectFacts, Source, TooShort
from chunkwise.inspection.finding import Finding
from chunkwise.inspection.findings.subject import ObjectCheck
from chunkwise.inspection.sources import NOT_LOOKED_FOR, is_file, places, verdict_of_source
from chunkwise.model.layout import FileLayout
from chunkwise.names import printable
from chunkwise.remedy.records import Copy, InspectOthers, LookFor, PutBeside, Remedy, RemoveLink
from chunkwise.verdicts import FileVerdict, worst_verdict

# Beyond, their folders are shorter to name.
_FEW_SOURCES: Final = 4


def sources_missing(_: str, facts: ObjectFacts) -> Iterator[Finding]:
    """Virtual sources or raw files that are not there: their data is replaced or lost."""
    dataset = facts.dataset
    if dataset is None or dataset.sources is None:
        return
    looked_for = [source for source in dataset.sources if source.missing != NOT_LOOKED_FOR]
    missing = [source for source in looked_for if source.missing is not None]
    if not missing:
        return
    first = missing[0]
    virtual = first.dataset is not None
    noun = "source datasets" if virtual else "raw files"
    summary = (
        f"{len(missing):,} of its {len(looked_for):,} {noun} cannot be used; the first is "
        f"{_named(first)}: {printable(first.missing or '')}. "
    )
    silent = True
    if virtual:
        summary += f"HDF5 gives the fill value ({printable(dataset.fill_value)}) in place of them"
    elif all(isinstance(source.missing, TooShort) for source in missing):
        summary += "HDF5 gives zeros for what is not there"
    else:
        silent = False
        summary += "Reading the data fails"
    yield Finding(
        code="sources-missing",
        severity="error",
        path=facts.path,
        summary=summary + (", and says nothing." if silent else "."),
        evidence={
            "missing": len(missing),
            "looked_for": len(looked_for),
            "sources": len(dataset.sources),
            "first_file": first.file,
            "first_dataset": first.dataset or "",
            "first_reason": first.missing or "",
        },
        source="H5Pset_virtual, H5Pset_virtual_prefix" if virtual else "H5Pset_external",
        remedies=_where_to_look(first, virtual),
        verdict=worst_verdict(map(verdict_of_source, missing)),
    )


def data_elsewhere(file: str, facts: ObjectFacts) -> Iterator[Finding]:
    """A virtual dataset whose sources are there: chunks and filters are theirs."""
    dataset = facts.dataset
    if dataset is None or dataset.layout != "virtual" or not dataset.sources:
        return
    files = dict.fromkeys(source.file for source in dataset.sources)
    elsewhere = [name for name in files if name != "."]
    if not elsewhere or any(source.missing is not None for source in dataset.sources):
        return
    count = "another file" if len(elsewhere) == 1 else f"{len(elsewhere):,} other files"
    yield Finding(
        code="data-elsewhere",
        severity="note",
        path=facts.path,
        summary=(
            f"A virtual dataset: its data lies in {count}, the first is "
            f"{printable(elsewhere[0])}. How fast it is read depends on their chunks and "
            "filters: inspect them. A copy can hold all of the data itself, where one file is "
            "wanted."
        ),
        evidence={
            "files": len(elsewhere),
            "sources": len(dataset.sources),
            "first_file": elsewhere[0],
        },
        source="H5Pset_virtual",
        remedies=(_inspect_sources(file, elsewhere), Copy(file, rest=FileLayout(merge=True))),
    )


def _inspect_sources(file: str, names: list[str]) -> InspectOthers:
    """Inspect the files where the data lies, or their folder."""
    folder = PurePath(file).parent
    places = list(dict.fromkeys(str(folder / name) for name in names))
    if len(places) > _FEW_SOURCES:
        places = list(dict.fromkeys(str(PurePath(place).parent) for place in places))
    return InspectOthers(tuple(places))


def unreadable_object(_: str, facts: ObjectFacts) -> Iterator[Finding]:
    """A link to something that HDF5 cannot open."""
    if facts.kind != "unreadable":
        return
    yield Finding(
        code="unreadable-object",
        severity="error",
        path=facts.path,
        summary=(
            f"HDF5 {h5py.version.hdf5_version} cannot open it: {printable(facts.reason or '')}. "
            + (
                "Its bytes are wrong: what it holds is lost in this copy of the file."
                if facts.verdict is FileVerdict.DAMAGED
                else "That proves no damage: another version of HDF5 may read it."
            )
        ),
        evidence={"reason": facts.reason or ""},
        source="H5Oopen",
        verdict=facts.verdict,
    )


def unreadable_chunks(_: str, facts: ObjectFacts) -> Iterator[Finding]:
    """A dataset that opens, and whose chunks cannot be found."""
    reason = facts.dataset and facts.dataset.unlisted
    if not reason:
        return
    yield Finding(
        code="unreadable-chunks",
        severity="error",
        path=facts.path,
        summary=(
            f"The dataset opens, but the list of its chunks does not: {printable(reason)}. Its "
            "data, or a part of it, is lost in this copy of the file."
        ),
        evidence={"reason": reason},
        source="H5Dchunk_iter",
        verdict=cause_of(reason, checked=False).verdict,
    )


def unreadable_attribute(_: str, facts: ObjectFacts) -> Iterator[Finding]:
    """Attributes that HDF5 cannot list."""
    if not facts.unreadable_attributes:
        return
    reasons = ", ".join(map(printable, facts.unreadable_attributes)).removeprefix("* ")
    count = facts.attributes or 0
    its = "its only attribute" if count == 1 else f"its {count:,} attributes"
    yield Finding(
        code="unreadable-attribute",
        severity="warning",
        path=facts.path,
        summary=(
            f"HDF5 cannot list {its} {reasons}. Programs that list them on opening, as netCDF "
            "does, cannot open the file."
        ),
        evidence={"attributes": count, "reason": reasons},
        source="H5Aiterate",
        verdict=cause_of(reasons, checked=False).verdict,
    )


def dangling_link(file: str, facts: ObjectFacts) -> Iterator[Finding]:
    """Soft and external links that lead nowhere."""
    if not facts.dangling:
        return
    external = facts.kind == "external_link"
    target = printable(facts.target or "")
    kind = "An external" if external else "A soft"
    name = (facts.target or "").partition(":")[0]
    where = places(name, Path(file).absolute(), "HDF5_EXT_PREFIX")
    lacking = external and not any(map(is_file, where))
    looked = ""
    remedies: tuple[Remedy, ...]
    if lacking:
        # What is only not here must not be given up: the link leads to it once it is.
        beside = str(PurePath(file).parent / name)
        remedies = (PutBeside(beside), LookFor("HDF5_EXT_PREFIX", name))
        looked = f" The file was looked for as {_looked_for(file, name, 'HDF5_EXT_PREFIX')}."
    else:
        remedies = (RemoveLink(file, facts.path),)
    yield Finding(
        code="dangling-link",
        severity="warning" if external else "note",
        path=facts.path,
        summary=(
            f"{kind} link to {target}, which is not there (or leads back to the link)."
            + (" Whatever the other file holds cannot be read through it." if external else "")
            + looked
        ),
        evidence={"target": facts.target or ""},
        source="H5Oexists_by_name",
        remedies=remedies,
        verdict=FileVerdict.LOOSE,
    )


CHECKS: Final[tuple[ObjectCheck, ...]] = (
    sources_missing,
    data_elsewhere,
    unreadable_object,
    unreadable_chunks,
    unreadable_attribute,
    dangling_link,
)


def _named(source: Source) -> str:
    file = "this file" if source.file == "." else printable(source.file)
    return file if source.dataset is None else f"{printable(source.dataset)} in {file}"


def _where_to_look(source: Source, virtual: bool) -> tuple[Remedy, ...]:
    if source.missing != "no such file":
        return ()
    if virtual:
        return (LookFor("HDF5_VDS_PREFIX", source.file),)
    # Raw files are looked for where the program runs; mostly they lie beside the file.
    variable = "HDF5_EXTFILE_PREFIX"
    return LookFor(variable, None), LookFor(variable, source.file)


def _looked_for(file: str, name: str, variable: str) -> str:
    """Name the places where HDF5 looks for a file, each once."""
    own = Path(file).absolute()
    found = dict.fromkeys(printable(str(path)) for path in places(name, own, variable))
    return ", ".join(found)
