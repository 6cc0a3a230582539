"""Windows of a Chromium, for tests of pages."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@contextmanager
def window(browser: Any, test: str, own: Callable[[str], bool], **options: Any) -> Iterator[Any]:
    """A window; errors of scripts, and requests for an address that is not its own, fail the test.

    options: of playwright's new_page. $SCREENSHOTS names a folder for a picture of what was seen
    last, named after the test.
    """
    opened = browser.new_page(**options)
    wrong: list[str] = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on(
        "console", lambda message: wrong.append(message.text) if message.type == "error" else None
    )
    opened.on("request", lambda asked: None if own(asked.url) else wrong.append(asked.url))
    yield opened
    if folder := os.environ.get("SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        opened.screenshot(
            path=Path(folder) / f"{re.sub(r'[^a-z0-9]+', '-', test.lower()).strip('-')}.png"
        )
    opened.close()
    assert wrong == []
