"""What tests measure and open is waited for longer than users wait: their machine may be busy."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, Final

import pytest

from chunkwise.measure import process, schedule

# A trial begins with a new process, which imports h5py.
_TRIAL_S: Final = 60.0
# Of one step of a page; playwright's own is half a minute.
PAGE_MS: Final = 180_000


@pytest.fixture(autouse=True, scope="module")
def patient_trials() -> Iterator[None]:
    """Give up no trial within a minute, however short the budget; what it measures stays short."""

    def finished(*words: Any, timeout_s: float, **options: Any) -> process.Ended:
        return process.finished(*words, timeout_s=max(timeout_s, _TRIAL_S), **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "finished", finished)
        yield


def patient(browser: Any) -> Any:
    """Let what opens a page or a context of a browser wait so long for each step."""
    for name in ("new_page", "new_context"):
        setattr(browser, name, _patient(getattr(browser, name)))
    return browser


def _patient(make: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(make)
    def made(**options: Any) -> Any:
        one = make(**options)
        one.set_default_timeout(PAGE_MS)
        return one

    return made
