"""paddle.version: the parts of paddle.__version__, the latest Paddle whose names scripts find here."""

from __future__ import annotations

full_version = "2.0.0"
major, minor, patch = full_version.split(".")
rc = "0"
istaged = True
commit = ""
with_mkl = "OFF"


def show() -> None:
    """Print the parts of the version."""
    print(f"full_version: {full_version}\nmajor: {major}\nminor: {minor}\npatch: {patch}\nrc: {rc}")


def mkl() -> str:
    """ "OFF": kernels are XLA's, not MKL's."""
    return with_mkl
