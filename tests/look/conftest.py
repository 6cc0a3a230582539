"""A Chromium for tests of pages, where one is installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .windows import CHROMIUM


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="make browser installs playwright")
    with sync_api.sync_playwright() as player:
        started = player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()
