"""The error that a client gets in place of a result."""

from __future__ import annotations


class Refused(Exception):
    """An HTTP status, and a sentence."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status, self.said = status, said
