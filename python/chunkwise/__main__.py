"""What does ``python -m chunkwise`` do?  The command line, or a program with h5py patched."""

from __future__ import annotations

import sys

from chunkwise.errors import UsageError
from chunkwise.names import printable_lines


def main() -> None:
    """Distinguish the two by the first argument."""
    from chunkwise.cli.main import COMMANDS
    from chunkwise.cli.main import main as command_line

    arguments = sys.argv[1:] or ["--help"]
    first = arguments[0]
    if first in COMMANDS or (first.startswith("-") and first not in ("-m", "--stats")):
        sys.argv[1:] = arguments
        command_line()
        return
    from chunkwise.patching import program

    try:
        run = program.prepared(arguments)
    except UsageError as wrong:
        print(f"chunkwise: {printable_lines(str(wrong))}", file=sys.stderr)
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
