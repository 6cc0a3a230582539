"""The site of the documents in a real browser, from the disk: it searches, fits small screens, and
asks the network for nothing.

``make docs browser`` builds and runs it; without a built site these tests are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .windows import CHROMIUM, window

axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="make browser installs axe"
)
SITE = Path(__file__).parents[2] / "build" / "site"

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here"),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="make docs builds the site"),
]

PAGES = ["index", "errors", "api/layers/dense", "notebooks/build"]


@pytest.fixture(params=[("light", 1300), ("dark", 380)], ids=["light", "dark-narrow"])
def page(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A window; errors of scripts, and requests for anything but files of the site, fail the test."""
    scheme, width = request.param
    size = {"width": width, "height": 900}
    with window(
        browser, request.node.name, _of_the_site, viewport=size, color_scheme=scheme
    ) as opened:
        yield opened


def _of_the_site(url: str) -> bool:
    return url.startswith((SITE.as_uri(), "data:"))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_and_can_be_read_by_all(page: Any, name: str) -> None:
    page.goto((SITE / f"{name}.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    found = axe.Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa"], "preload": False})
    grave = [
        (v["id"], v["nodes"][0]["html"][:160])
        for v in found.response["violations"]
        if v["impact"] in ("critical", "serious")
    ]
    assert grave == []


def test_the_search_finds_a_layer_from_the_disk(page: Any) -> None:
    page.goto((SITE / "index.html").as_uri())
    if page.viewport_size["width"] < 900:
        page.locator("label.md-header__button[for=__search]").click()
    page.get_by_role("textbox", name="Search").click()
    page.keyboard.type("cross_entropy")
    hit = page.locator(".md-search-result__item a[href*='api/layers/losses']").first
    hit.wait_for()
    hit.click()
    page.wait_for_url("**/api/layers/losses.html*")
    assert page.locator("[id='fluid.layers.cross_entropy']").count() == 1
