"""Kind: what one call of a compiled step runs."""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
    """What a call runs: one step; many steps, scanned over fed values with one more leading
    dimension; or the ranks in turn, each with its own feed. Checked kinds also report which outputs
    are finite.
    """

    ONE = "one"
    MANY = "many"
    TURNS = "turns"
    CHECKED = "checked"
    CHECKED_TURNS = "checked turns"

    @staticmethod
    def of(turns: bool, checked: bool) -> Kind:
        """The kind of one step."""
        return (
            (Kind.CHECKED_TURNS if turns else Kind.CHECKED)
            if checked
            else Kind.TURNS
            if turns
            else Kind.ONE
        )

    @property
    def checked(self) -> bool:
        return self in (Kind.CHECKED, Kind.CHECKED_TURNS)

    @property
    def in_turn(self) -> bool:
        return self in (Kind.TURNS, Kind.CHECKED_TURNS)
