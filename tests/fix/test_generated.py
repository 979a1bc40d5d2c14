"""Does one fix leave no finding that a layout mends, and every value as it was, in any file?

``CHUNKWISE_FIXES=200`` says how many files are made.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise.inspection import inspect
from tests.model.test_every_fix import nothing_lost
from tests.support.fixable import ACCESSES, datasets, make

COUNT = int(os.environ.get("CHUNKWISE_FIXES", "5"))


def mendable(path: Path, access: tuple[str, ...]) -> list[tuple[str, str | None]]:
    """What of a file another layout would mend, for these patterns."""
    found = inspect(path, access=access).findings
    return [(one.code, one.path) for one in found if one.layout is not None]


@pytest.mark.slow
@settings(
    max_examples=COUNT,
    deadline=None,
    derandomize=COUNT < 50,
    # Smaller examples take minutes to find, each of several seconds.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(datasets(), min_size=1, max_size=3), st.sampled_from(ACCESSES))
def test_one_fix_mends_all_and_loses_nothing(
    told: list[dict[str, Any]], access: tuple[str, ...]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder, "a.h5"), Path(folder, "b.h5")
        make(before, told)
        done = chunkwise.fix(before, after, access=access, seconds=0)
        if done.outcome == "nothing to mend":
            assert not after.exists()
            assert mendable(before, access) == []
            return
        nothing_lost(before, after)
        left = mendable(after, access)
        assert left == [], (done.changes, left)
        again = chunkwise.fix(after, in_place=True, access=access, seconds=0)
        assert again.outcome == "nothing to mend"
