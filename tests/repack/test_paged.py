"""Does repack say what pages cost that make a file much larger, and which serve as well?"""

from pathlib import Path

import h5py
import numpy as np

import chunkwise


def test_pages_that_double_a_file_are_not_silent(tmp_path: Path) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(path, "w") as file:
        for i in range(30):
            file[f"group{i}/x"] = np.arange(1000.0) + i
    done = chunkwise.repack(path, out, page_size=4 << 20)
    (said,) = (one for one in done.warnings if "pages of 4.0 MiB" in one)
    assert said.endswith("--paged 65536")
    again = chunkwise.repack(path, out, page_size=65536, force=True)
    assert again.target_nbytes < done.target_nbytes / 8
