"""What a package index shows: the README by itself, in which no link is dead."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("setuptools", reason="setup.py is read by setuptools, which is not there")

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
alone = runpy.run_path(str(ROOT / "setup.py"))["alone"]


def test_the_readme_reads_by_itself():
    text = alone(README)
    fenced = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
    assert fenced.findall(text) == fenced.findall(README)
    prose = fenced.sub("", text)
    links = re.findall(r"\]\(([^)]*)\)", prose)
    assert all(link.startswith(("https://", "http://", "#")) for link in links)
    named = re.findall(r"\(`([^`]+)`\)", prose)
    assert "docs/porting.md" in named and all(
        (ROOT / name).exists() for name in named if "/" in name
    )
    assert "![" not in prose


def test_links_turn_into_names():
    text = (
        "see [the *page*](docs/a.md#b), [us](https://x.org) and [below](#c).\n\n![p](d.svg)\n\nend"
    )
    assert alone(text) == (
        "see the *page* (`docs/a.md`), [us](https://x.org) and [below](#c).\n\nend"
    )


def test_the_metadata_says_what_is_so():
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    assert "readme" in project["dynamic"] and "urls" not in project
    versions = [c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert versions[0] == project["requires-python"].removeprefix(">=")
