"""Is a finding as severe as what it costs?"""

from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.inspection import inspect
from chunkwise.inspection.findings.subject import by_cost

MIB = 1 << 20


@pytest.mark.parametrize(
    ("cost", "severity"),
    [
        ({"nbytes": 99_999_999, "times": 1.5}, "note"),
        ({"nbytes": 100_000_000, "times": 1.5}, "warning"),
        ({"nbytes": 100_000_000, "times": 1.09}, "note"),  # a drop in it
        ({"seconds": 1.9, "times": 2.0}, "note"),
        ({"seconds": 2.0, "times": 2.0}, "warning"),
        ({"nbytes": 32 * MIB, "times": 10.0}, "warning"),
        ({"nbytes": 32 * MIB - 1, "times": 1e6}, "note"),  # a toy
        ({"nbytes": 32 * MIB, "times": 9.9}, "note"),
        ({"seconds": 60.0, "times": 100.0, "rare": True}, "warning"),
        ({"seconds": 59.0, "times": 65_000.0, "rare": True}, "note"),
        ({"seconds": 3600.0, "times": 99.0, "rare": True}, "note"),
        # What is only fetched is faster.
        ({"nbytes": 60 << 28, "times": 100.0, "rare": True}, "warning"),
        ({"nbytes": 60 << 28, "times": 100.0, "rare": True, "filtered": False}, "note"),
    ],
)
def test_the_rule(cost: dict[str, float], severity: str) -> None:
    assert by_cost(**cost) == severity  # type: ignore[arg-type]


def test_a_slowdown_of_65000_of_what_nobody_stated_is_an_offer(tmp_path: Path) -> None:
    """Series through compressed maps of 256x256: each decodes all maps again."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        shape, chunks = (40, 256, 256), (1, 256, 256)
        file.create_dataset("x", data=np.zeros(shape), chunks=chunks, compression="gzip")
    (found,) = [f for f in inspect(path, sample=False).findings if f.code == "reads-exceed-cache"]
    assert found.evidence["decodes_per_chunk"] == 65_536
    assert (found.severity, found.is_offer) == ("note", True)
    (stated,) = [
        f
        for f in inspect(path, sample=False, access=["line:0@walk"]).findings
        if f.code == "reads-exceed-cache"
    ]
    assert (stated.severity, stated.is_offer) == ("warning", False)


@pytest.mark.parametrize("options", [{}, {"compression": "gzip"}])
def test_a_toy_of_200_elements_is_no_warning(tmp_path: Path, options: dict[str, str]) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        data = np.zeros(200)
        file.create_dataset("t", data=data, chunks=(MIB,), maxshape=(None,), **options)
        file.create_dataset("steps", data=data, chunks=(1,), maxshape=(None,), **options)
    found = inspect(path).findings
    assert "edge-waste" in {finding.code for finding in found}
    assert {finding.severity for finding in found} == {"note"}
