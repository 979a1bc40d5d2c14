"""Which options does `chunkwise verify` take, and what does it print?"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Container, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from chunkwise.cli import batches
from chunkwise.cli.echo import echo, echo_json
from chunkwise.cli.progress import showing_bytes
from chunkwise.cli.signals import Ending, ending
from chunkwise.cli.values import COUNT, external_option, latency_option
from chunkwise.errors import UsageError
from chunkwise.names import is_url, printable
from chunkwise.verdicts import Exit, worst
from chunkwise.words import counted

if TYPE_CHECKING:
    from chunkwise.files.leading import External
    from chunkwise.model.far import Fetched
    from chunkwise.remote.copying import Copied
    from chunkwise.repacking.gathering import Wanted
    from chunkwise.verifying.file import Checked, ManifestOptions
    from chunkwise.verifying.records import Verified
    from chunkwise.verifying.state import State
    from chunkwise.verifying.survey import File, FileSet, Progress

EXAMPLES = """\b
Examples:
  chunkwise verify model.nc                     each chunk, all metadata
  chunkwise verify archive/ --resume done.state
  chunkwise verify archive/ --write-manifest archive.json
  chunkwise verify repacked/ --manifest archive.json
  chunkwise verify damaged.h5 --salvage rest.h5
  chunkwise verify https://host/a.nc --latency 50ms    from a copy, with its requests
  chunkwise verify archive/ --json > verified.jsonl

\b
Exit code:
  0    all is sound, perhaps with loose ends
  1    damage was found, or values differ from the manifest
  2    wrong usage, or a file could not be read
  3    something cannot be judged here: a filter or another HDF5 is needed
  4    a file is open for writing: try later
  130  interrupted
"""
# Files of which the end says that a manifest lacks them; each is shown with its findings.
_NAMED = 20


@click.command(epilog=EXAMPLES)
@click.argument("arguments", nargs=-1, metavar="FILE|URL|FOLDER|GLOB...")
@click.option(
    "--manifest",
    metavar="FILE",
    help="Compare all values with the checksums in FILE. Chunks and filters may differ.",
)
@click.option(
    "--write-manifest",
    metavar="FILE",
    help="Write the checksums of all values to FILE, without damaged files.",
)
@click.option(
    "--salvage",
    metavar="OUT",
    help="Write everything readable in one file to OUT, and fill values for the rest.",
)
@click.option(
    "--resume",
    metavar="STATE",
    help="Save the result for each file in STATE, and skip files that are in it.",
)
@external_option
@latency_option
@click.option("--force", is_flag=True, help="Replace a manifest, or an OUT, that exists.")
@batches.files_from_option
@click.option(
    "--jobs", type=COUNT, help="Files to verify at the same time.  [default: all processors]"
)
@batches.wanted_options
@batches.json_option
def command(
    arguments: tuple[str, ...],
    manifest: str | None,
    write_manifest: str | None,
    salvage: str | None,
    resume: str | None,
    external: External,
    latency_s: float | None,
    force: bool,
    files_from: str | None,
    jobs: int | None,
    exclude: tuple[str, ...],
    quiet_for: float | None,
    baseline: str | None,
    as_json: bool,
) -> int:
    """Read a whole file, and say whether it is as it was written.

    Checks that each stored chunk lies within the file, has the right checksums, and
    decodes to exactly the bytes of a chunk. Checks all metadata, attributes, references
    and heaps. Never changes a file. Of a URL, all bytes are fetched to a temporary file first.

    For several files, a FOLDER (searched through all levels for HDF5 files) or a GLOB,
    each file is verified separately, on all processors.
    """
    from chunkwise.files.durable import require_free
    from chunkwise.files.opening import refuse_url
    from chunkwise.repacking.gathering import Wanted
    from chunkwise.verifying.api import refuse_options
    from chunkwise.verifying.file import ManifestOptions
    from chunkwise.verifying.state import State
    from chunkwise.verifying.survey import Progress

    # URLs may hold secrets, which messages about other words would show.
    for word in (manifest, write_manifest, salvage, resume, files_from, baseline, *exclude):
        refuse_url(word or "")
    if not arguments and files_from is None:
        raise UsageError("name a file, as in: chunkwise verify FILE")
    many = len(arguments) > 1 or batches.are_many(arguments, files_from)
    if salvage is not None and many:
        raise UsageError("--salvage is for one file; name it alone")
    if salvage is not None and resume is not None:
        raise UsageError("--salvage and --resume: give one of them")
    if not many:
        batches.require_many(exclude=exclude, quiet_for=quiet_for, baseline=baseline)
    if any(map(is_url, arguments)) and many:
        raise UsageError("a URL is verified alone: name one")
    refuse_options("" if many else arguments[0], external, latency_s, resume=resume)
    options = ManifestOptions(sums=write_manifest is not None, external=external)
    wanted = Wanted(exclude, quiet_for or 0.0)
    known = _known(baseline)
    if write_manifest is not None:
        require_free(write_manifest, force=force)
    progress = Progress()
    begun = time.monotonic()
    say_json = as_json and salvage is None
    with ExitStack() as opened:
        copy = None
        if not many and is_url(arguments[0]):
            copy = opened.enter_context(_fetched(arguments[0], as_json=as_json))
        chosen = _chosen(arguments, files_from, manifest, options, jobs, wanted, copy, many=many)
        state = None if resume is None else State(resume, chosen.options, _digest(manifest))
        far = None if copy is None else (copy.shown, copy.fetched(latency_s))
        found, complete = _verify(
            chosen, state, progress, known, far, many=many, as_text=not as_json, as_json=say_json
        )
        elapsed_s = time.monotonic() - begun
        verified = [result.verified for _, result in found]
        ends = opened.enter_context(ending())
        if write_manifest is not None and complete:
            _write_manifest(write_manifest, found, force=force)
        if salvage is not None and complete:
            source = chosen.files[0].path
            return _salvage(verified[0], source, salvage, ends, force=force, as_json=as_json)
    if not as_json:
        from chunkwise.verifying.render import summary_lines

        for line in summary_lines(verified, elapsed_s, progress.known):
            echo(line)
    if not complete:
        total = len(chosen.files) + len(chosen.failed)
        said = f"interrupted after {len(found):,} of {counted(total, 'file')}"
        more = "" if resume is None else "; the same command goes on"
        echo(f"chunkwise: {said}{more}", err=True)
        return Exit.INTERRUPTED
    return code([one for one in verified if _findings_key(one) not in known])


@contextmanager
def _fetched(url: str, *, as_json: bool) -> Iterator[Copied]:
    """Copy a file from afar for as long as the block lasts, with a bar."""
    from chunkwise.remote.copying import copied
    from chunkwise.verifying.survey import Progress

    progress, done_nbytes = Progress(), 0

    def add(nbytes: int) -> None:
        nonlocal done_nbytes
        done_nbytes += nbytes

    def begun(total_nbytes: int) -> Callable[[int], None]:
        progress.total_nbytes = total_nbytes
        progress.done_nbytes = lambda: done_nbytes
        return add

    with ExitStack() as opened:
        with showing_bytes(progress, hidden=sys.stdout.isatty() and as_json):
            copy = opened.enter_context(copied(url, begun))
        yield copy


def code(verified: list[Verified]) -> int:
    """Return the exit code."""
    return worst(one.verdict.exit for one in verified)


def _chosen(
    arguments: tuple[str, ...],
    files_from: str | None,
    manifest: str | None,
    options: ManifestOptions,
    jobs: int | None,
    wanted: Wanted,
    copy: Copied | None,  # Of the only one, which is far away
    *,
    many: bool,
) -> FileSet:
    from chunkwise.files.netcdf3 import is_netcdf3
    from chunkwise.manifest import manifest as manifests
    from chunkwise.repacking.gathering import gather_named, read_list
    from chunkwise.trials.environment import usable_cpus
    from chunkwise.verifying.ending import is_wanted
    from chunkwise.verifying.survey import File, FileSet

    known = None if manifest is None else manifests.read(manifest)
    if not many:
        from pathlib import Path

        alone = File(arguments[0], Path(arguments[0]).name)
        if copy is not None:
            alone = File(str(copy.path), copy.name)
        return FileSet((alone,), (), options, known)
    listed = () if files_from is None else read_list(files_from)

    def taken(path: str) -> bool:
        return is_wanted(path) or ((options.sums or known is not None) and is_netcdf3(path))

    found = gather_named(arguments, listed, taken, wanted)
    files = tuple(File(str(path), below.as_posix()) for path, below in found.files)
    return FileSet(files, found.failed, options, known, jobs or usable_cpus())


def _verify(
    chosen: FileSet,
    state: State | None,
    progress: Progress,
    known: Container[tuple[str, frozenset[str]]],
    far: tuple[str, Fetched | None] | None,  # What the only one is called, and how it came
    *,
    many: bool,
    as_text: bool,
    as_json: bool,
) -> tuple[list[tuple[File, Checked]], bool]:
    """Verify all files and print each result; return whether all were verified."""
    from chunkwise.verifying.render import file_lines, says_anything
    from chunkwise.verifying.survey import survey

    found: list[tuple[File, Checked]] = []
    try:
        with showing_bytes(progress, hidden=sys.stdout.isatty() and as_json) as say:
            for file, result in survey(chosen, state, progress):
                if far is not None:
                    shown = replace(result.verified, path=far[0], far=far[1])
                    result = replace(result, verified=shown)
                found.append((file, result))
                if as_json:
                    echo_json(result.verified.as_dict(), indent=None if many else 2)
                elif (
                    as_text
                    and _findings_key(result.verified) not in known
                    and says_anything(result.verified, alone=not many)
                ):
                    for line in file_lines(result.verified):
                        say(line)
    except KeyboardInterrupt:
        return found, False
    return found, True


def _findings_key(verified: Verified) -> tuple[str, frozenset[str]]:
    """Return a file with its damages, to compare with an earlier run; nothing if it is sound."""
    wrong = {f"{one.kind} {one.path} {one.origin}" for one in verified.damages}
    wrong |= {f"{one.verdict} {one.path}" for one in verified.notes if one.verdict.exit}
    return verified.path, frozenset(wrong)


def _known(baseline: str | None) -> set[tuple[str, frozenset[str]]]:
    """Read what was wrong when an earlier run looked."""
    from chunkwise.verifying.records import Verified

    try:
        return {_findings_key(Verified.from_dict(one)) for one in batches.read_baseline(baseline)}
    except (KeyError, TypeError, ValueError):
        raise UsageError(
            f"--baseline {printable(str(baseline))}: is not what 'chunkwise verify' prints with "
            "--json"
        ) from None


def _digest(manifest: str | None) -> str | None:
    """Identify a manifest."""
    if manifest is None:
        return None
    import hashlib
    from pathlib import Path

    return hashlib.sha256(Path(manifest).read_bytes()).hexdigest()


def _write_manifest(path: str, found: list[tuple[File, Checked]], *, force: bool) -> None:
    from chunkwise.manifest import manifest as manifests

    sums = {file.name: result.sums for file, result in found if result.sums is not None}
    manifests.write(path, sums, force=force)
    lacking = [
        f"{printable(file.name)} ({result.verified.verdict})"
        for file, result in found
        if result.sums is None
    ]
    if lacking:
        named = ", ".join(lacking[:_NAMED]) + (", ..." if len(lacking) > _NAMED else "")
        said = f"the manifest lacks {counted(len(lacking), 'file')}: {named}"
        echo(f"chunkwise: warning: {said}", err=True)


def _salvage(
    verified: Verified, source: str, out: str, ends: Ending, *, force: bool, as_json: bool
) -> int:
    """Write the readable part of a file, and say what that is."""
    from chunkwise.repacking.render import summary_lines
    from chunkwise.repacking.salvaging import salvage
    from chunkwise.verifying.render import file_lines

    summary = salvage(source, out, ends.check, force=force)
    (made,) = _verified(out)
    if as_json:
        record = {
            "format": "chunkwise-salvage",
            "version": 1,
            "verified": verified.as_dict(),
            "salvaged": summary.as_dict(),
            "result": made.as_dict(),
        }
        echo_json(record, indent=2)
    else:
        for line in (*summary_lines(summary), *file_lines(made)):
            echo(line)
    lost = Exit.WRONG if summary.lost else Exit.DONE
    return worst((code([verified]), code([made]), lost))


def _verified(path: str) -> list[Verified]:
    """Verify one file without a word."""
    from pathlib import Path

    from chunkwise.verifying.survey import File, FileSet, Progress, survey

    chosen = FileSet((File(path, Path(path).name),))
    return [result.verified for _, result in survey(chosen, None, Progress())]
