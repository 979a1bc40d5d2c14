"""How much memory does this machine have for its ranks?"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal


def memory_of_host(
    proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")
) -> int | None:
    """Give the machine's memory, or the limit of this process's control group if that is less."""
    limits = []
    for folder, version in groups(proc, cgroup):
        name = "memory.max" if version == 2 else "memory.limit_in_bytes"
        # No limit is "max"; the topmost group has no such file.
        with contextlib.suppress(OSError, ValueError):
            limits.append(int((folder / name).read_text()))
    total = meminfo("MemTotal", proc)
    return min([*limits, *([] if total is None else [total])], default=None)


def meminfo(field: str, proc: Path = Path("/proc")) -> int | None:
    """Give a figure of ``/proc/meminfo`` in bytes; None if the system does not tell."""
    try:
        for line in (proc / "meminfo").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    return None


def groups(proc: Path, cgroup: Path) -> Iterator[tuple[Path, Literal[1, 2]]]:
    """Give the folders of this process's control groups for memory, and of those above them."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        controllers, _, group = line.partition(":")[2].partition(":")
        version: Literal[1, 2] = 1 if controllers else 2
        if version == 1 and "memory" not in controllers.split(","):
            continue
        top = cgroup / "memory" if version == 1 else cgroup
        folder = top / group.strip().strip("/")
        while folder == top or top in folder.parents:
            yield folder, version
            folder = folder.parent
