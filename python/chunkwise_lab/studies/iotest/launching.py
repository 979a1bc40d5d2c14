"""How does a process that is no rank start ranks by mpiexec, and get their measurements?"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from chunkwise.errors import LibraryError, UsageError
from chunkwise.measure.process import Ended, finished
from chunkwise.measure.schedule import Step
from chunkwise.measure.verdict import spread
from chunkwise.names import printable
from chunkwise.words import counted
from chunkwise_lab.studies.iotest.world import REMEDY, require_mpi
from chunkwise_lab.studies.kept import Kept

if TYPE_CHECKING:
    from chunkwise_lab.studies.context import Context
    from chunkwise_lab.studies.study import Study

# A worker that takes longer hangs.
_LONGEST_S: Final = 4 * 3600.0
_PATIENCE_S: Final = 10.0
_ROOT: Final = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
_SAID: Final = 3
Record = tuple[dict[str, str], dict[str, Any]]


def measure(context: Context) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Start the ranks of one run of a study, for each number of them."""
    settings = dict(context.settings)
    wanted = sorted({int(number) for number in settings.pop("ranks")})
    # Some questions always are about one process, or two.
    if settings.pop("any_ranks", True) and context.ranks:
        wanted = sorted(set(context.ranks))
    least = int(settings.pop("least_ranks", 1))
    found: list[Record] = []
    for number in (number for number in wanted if number >= least):
        context.say(Step(f"{counted(number, 'rank')}"))
        crowded = "yes" if number > (os.cpu_count() or 1) else "no"
        labels = {"ranks": str(number), "oversubscribed": crowded}
        kept = Kept(context.save.with_name(f"{context.save.name}-{number}.jsonl"), settings)
        if context.wants(labels):
            _complete(kept, number, context, labels)
        found += [({**point, **labels}, record) for point, record in kept.records]
    _compare(found)
    points: dict[tuple[tuple[str, str], ...], list[dict[str, Any]]] = {}
    for point, record in found:
        points.setdefault(tuple(point.items()), []).append(record)
    yield from ((dict(point), records) for point, records in points.items())


def _complete(kept: Kept, ranks: int, context: Context, labels: Mapping[str, str]) -> None:
    """Measure until each point that is wanted has as many records as are wanted."""
    counts = Counter(tuple(point.items()) for point, _ in kept.records)
    points = [
        {name: text for name, text in point if name not in labels}
        for point in (context.again.points if context.again else ())
        if labels.items() <= dict(point).items()
    ]
    known = {frozenset(point): count for point, count in counts.items()}
    if points and all(known.get(frozenset(p.items()), 0) >= context.repeat for p in points):
        return
    kept.begin()
    plan = {
        "settings": kept.settings,
        "repeat": context.repeat,
        "kept": [(dict(point), count) for point, count in counts.items()],
        "points": points if context.again else None,
    }
    _start(ranks, plan, kept.path, context.folder)
    kept.read()


def _compare(found: Sequence[tuple[Mapping[str, str], dict[str, Any]]]) -> None:
    """Give each record of weak scaling its efficiency, by the median of the fewest ranks."""
    groups: dict[tuple[tuple[str, str], ...], dict[int, list[dict[str, Any]]]] = {}
    for point, record in found:
        if record.pop("weak", False) and record.get("total_s"):
            rest = {k: v for k, v in point.items() if k not in ("ranks", "oversubscribed")}
            group = groups.setdefault(tuple(rest.items()), {})
            group.setdefault(int(point["ranks"]), []).append(record)
    for group in groups.values():
        fewest = spread([one["total_s"] for one in group[min(group)]]).median
        for record in (one for records in group.values() for one in records):
            record["efficiency"] = 100 * fewest / record["total_s"]


def _start(ranks: int, plan: Mapping[str, Any], out: Path, folder: Path) -> None:
    """Start a worker of this many ranks, which adds its records to a file."""
    with tempfile.TemporaryDirectory(prefix="iotest-", dir=folder) as name:
        noted = Path(name, "error")
        Path(name, "plan.json").write_text(json.dumps({**plan, "folder": name}), "utf-8")
        worker = [sys.executable, "-m", "chunkwise_lab.studies.iotest.worker"]
        try:
            # mpiexec ends its ranks, which remove their files.
            command = [*worker, f"{name}/plan.json", str(out.resolve())]
            ended = under_launcher(ranks, command, patience_s=_PATIENCE_S)
        except TimeoutError:
            raise LibraryError(
                f"{counted(ranks, 'rank')} did not end within {_LONGEST_S / 3600:.0f} hours: MPI "
                "or HDF5 hangs here"
            ) from None
        if ended.returncode:
            why = noted.read_text("utf-8") if noted.exists() else _last_words(ended)
            raise LibraryError(f"{counted(ranks, 'rank')}: {why}")


def _last_words(ended: Ended) -> str:
    """Return what was printed last, but for the lines that a launcher draws."""
    lines = [line for line in ended.err.decode("utf-8", "replace").splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith("--")]
    return " / ".join(said[-_SAID:]) or ended.how


def under_launcher(ranks: int, command: Sequence[str], **how: Any) -> Ended:
    """Start this many ranks of a program, and wait until they end."""
    how |= {"environment": surroundings(ranks), "timeout_s": _LONGEST_S}
    return finished([*_launcher(ranks), *command], **how)


def surroundings(ranks: int) -> dict[str, str]:
    """Return the variables by which Open MPI's ranks wait without a core, if they are many."""
    crowded = {"OMPI_MCA_mpi_yield_when_idle": "1"} if ranks > (os.cpu_count() or 1) else {}
    return {**(_ROOT if os.getuid() == 0 else {}), **crowded}


def _launcher(ranks: int) -> list[str]:
    """Return the command that starts this many ranks, more than there are processors too."""
    program = _mpiexec()
    open_mpi = ["--oversubscribe", "--bind-to", "none"] if _is_open_mpi(program) else []
    return [program, *open_mpi, "-n", str(ranks)]


def _mpiexec() -> str:
    found = shutil.which("mpiexec") or shutil.which("mpirun")
    if found is None:
        raise UsageError(f"there is no mpiexec here (Debian: openmpi-bin): {REMEDY}")
    return found


@cache
def _is_open_mpi(program: str) -> bool:
    version = finished([program, "--version"]).out.decode("utf-8", "replace")
    return any(name in version for name in ("Open MPI", "OpenRTE", "PRRTE"))


def starts_ranks(study: Study) -> bool:
    """Whether a study starts ranks of MPI."""
    return any(one.probe == "iotest" for each in study.experiments for one in each.runs)


def numbers(text: str | None, study: Study) -> tuple[int, ...]:
    """Read how many ranks the user wants."""
    if text is None:
        return ()
    if not starts_ranks(study):
        raise UsageError(f"--ranks is of the study iotest: {study.name} starts no ranks of MPI")
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 0 < int(part) < 2**20 for part in parts):
        raise UsageError(f"--ranks {printable(text)}: write whole numbers from 1 on: 1,2,4")
    return tuple(map(int, parts))


def require() -> None:
    """Make sure that ranks can be started, before anything is."""
    _mpiexec()
    require_mpi("the questions of paper 002")
