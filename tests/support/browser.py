"""A browser, which is a process, for all tests of a file that look at pages."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.patience import PAGE_MS, patient

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium (make tools installs it)")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=CHROMIUM, args=list(FLAGS), timeout=PAGE_MS
        )
        yield patient(found)
        found.close()
