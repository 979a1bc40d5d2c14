"""Where is the checkout in which chunkwise is compared with others, and where do files go?"""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
# Version control does not look there, and `make clean` removes it.
FOLDER: Final = ROOT / "target" / "benches"
