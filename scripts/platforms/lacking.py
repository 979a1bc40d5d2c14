"""Have libraries call a library of ours for what wine 8 lacks: `lacking.py LIBRARIES SYSTEM`.

They name two parts of the C library, where what is lacking would be.  There they get the name of
ours, which has that (`lacking.c`), and passes everything else on to wine's.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
NAME = b"chunkwise-lacking.dll"
PARTS = (b"api-ms-win-crt-math-l1-1-0.dll\0", b"api-ms-win-crt-runtime-l1-1-0.dll\0")
LACKING = re.findall(r"^\w+ (\w+)\(", SOURCE.read_text(), re.MULTILINE)


def make(system: Path) -> None:
    """Make the library where wine finds it."""
    library = "wine/x86_64-windows/ucrtbase.dll"
    wine = next(path for at in ("*/", "") for path in Path("/usr/lib").glob(at + library))
    listed = subprocess.run(
        ["x86_64-w64-mingw32-objdump", "-p", wine], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    names = set(re.findall(r"^\s*\[ *\d+\] (\w+)$", listed, re.MULTILINE)) - set(LACKING)
    exports = [*LACKING, *(f"{name} = ucrtbase.{name}" for name in sorted(names))]
    definitions = system / "chunkwise-lacking.def"
    definitions.write_text("EXPORTS\n" + "\n".join(exports))
    target = system / NAME.decode()
    compiler = ["x86_64-w64-mingw32-gcc", "-O", "-fno-builtin", "-shared"]
    subprocess.run([*compiler, "-o", target, SOURCE, definitions], check=True)


def main() -> None:
    """Make it, and name it in libraries and modules."""
    libraries, system = map(Path, sys.argv[1:])
    make(system)
    for path in libraries.rglob("*"):
        if path.suffix in (".dll", ".pyd"):
            before = path.read_bytes()
            if not any(b"\0%s\0" % name.encode() in before for name in LACKING):
                continue
            after = before
            for part in PARTS:
                after = after.replace(part, NAME.ljust(len(part), b"\0"))
            if after != before:
                path.write_bytes(after)


if __name__ == "__main__":
    main()
