"""Which MPI library is it, by its own account?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# Each at the begin of what MPI_Get_library_version says.
_VENDORS: Final = {
    "Open MPI": r"Open MPI v?(?P<version>[0-9.]+)",
    "Intel MPI": r"Intel\(R\) MPI Library (?P<version>[0-9.]+)",
    "MVAPICH": r"MVAPICH2? Version\s*:\s*(?P<version>[0-9.]+)",
    "Cray MPICH": r"(?:MPI VERSION\s*:\s*)?CRAY MPICH version (?P<version>[0-9.]+)",
    "MPICH": r"MPICH Version:\s*(?P<version>[0-9.]+)",
}


@dataclass(frozen=True)
class Library:
    """An MPI library."""

    name: str  # Such as ``Open MPI``; ``unknown`` where its text is not understood
    version: tuple[int, ...]  # Empty where its text is not understood
    text: str  # The first line of what it says of itself
    path: str = ""  # The file that was loaded; empty if it is not known

    @property
    def of_mpich(self) -> bool:
        """Whether it is MPICH or one made of it, which Open MPI's mpirun cannot start."""
        return self.name in ("MPICH", "Intel MPI", "MVAPICH", "Cray MPICH")

    def __str__(self) -> str:
        return f"{self.name} {'.'.join(map(str, self.version))}".strip()


def library_of(text: str, path: str = "") -> Library:
    """Understand what MPI_Get_library_version says.

    >>> str(library_of("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4"))
    'Open MPI 4.1.4'
    """
    # MPICH puts tabs and a zero byte into it.
    line = " ".join(text.replace("\0", " ").strip().split("\n")[0].split())
    for name, pattern in _VENDORS.items():
        found = re.match(pattern, " ".join(text.replace("\0", " ").split()), re.IGNORECASE)
        if found:
            version = tuple(int(n) for n in found["version"].strip(".").split("."))
            return Library(name, version, line, path)
    return Library("unknown", (), line, path)
