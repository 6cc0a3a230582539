"""Whether what is installed is the package: from where it is imported, whether it has the files of the wheel, and
whether its description reads by itself.

    python -m tests.tools.check_installed WHEEL
"""

import sys
import zipfile
from importlib import metadata
from pathlib import Path

import fluidjax


def main(wheel):
    here = Path(fluidjax.__file__).parent
    if "site-packages" not in here.parts:
        sys.exit("fluidjax is not the installed one but %s" % here)
    found = {
        str(p.relative_to(here.parent))
        for p in here.rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        known = {name for name in archive.namelist() if name.startswith("fluidjax/")}
    if found != known:
        sys.exit(
            "the wheel and what is installed differ in %s" % ", ".join(sorted(found ^ known)[:10])
        )
    readme = metadata.metadata("fluidjax").get_payload()
    if "](docs/" in readme or "porting (`docs/porting.md`)" not in readme:
        sys.exit("the description has links that an index cannot follow")
    print("fluidjax %s, %d files, as installed in %s" % (fluidjax.__version__, len(found), here))


if __name__ == "__main__":
    main(sys.argv[1])
