"""The error that a client gets in place of an answer."""

from __future__ import annotations


class Refused(Exception):
    """A status of HTTP's, and a sentence."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status, self.said = status, said
