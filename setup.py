"""What pyproject.toml cannot say: a package index shows the README without the files around it, so that its
links to them become their names, and its pictures are left out.
"""

import re
from pathlib import Path

from setuptools import setup

_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"!\[[^\]]*\]\((?!https?:)[^)]*\)\n*")
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#]*)[^)]*\)")


def alone(text: str) -> str:
    """The README as it reads by itself: ``[porting](docs/porting.md)`` is ``porting (`docs/porting.md`)``."""
    parts = _FENCED.split(text)
    parts[::2] = [_LINK.sub(r"\1 (`\2`)", _PICTURE.sub("", part)) for part in parts[::2]]
    return "".join(parts)


if __name__ == "__main__":
    readme = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
    setup(long_description=alone(readme), long_description_content_type="text/markdown")
