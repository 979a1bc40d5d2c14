"""How much memory does a program take from here on?  For programs of tests, in their process."""

from pathlib import Path


def memory(field: str) -> int:
    """Bytes of this process: ``VmRSS``, or ``VmHWM`` for the most since `begin`."""
    # Not ru_maxrss, which on Linux survives exec.
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0]) * 1024


def begin() -> int:
    """Let the high-water mark begin anew; give what there is now."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")
