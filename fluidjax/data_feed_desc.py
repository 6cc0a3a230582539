"""fluid.DataFeedDesc: the description of files of slots, read from its text and changed by
methods.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .errors import FluidValueError


class DataFeedDesc:
    """The description of files of slots in a file of protobuf's text format.

    Raises FluidValueError for a missing file or one that holds something else.
    """

    def __init__(self, proto_file: str | Path) -> None:
        from .loaders.slots import proto

        try:
            text = Path(proto_file).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise FluidValueError(f"{proto_file} cannot be read as text: {error}") from None
        self.proto_desc: Any = proto.read(text, str(proto_file))

    def set_batch_size(self, batch_size: int) -> None:
        """Set the number of samples of a batch."""
        self.proto_desc.batch_size = batch_size

    def set_dense_slots(self, dense_slots_name: Iterable[str]) -> None:
        """Mark slots that have the same number of values in every sample. Raises FluidValueError
        for an unknown slot.
        """
        for slot in self._slots(dense_slots_name):
            slot.is_dense = True

    def set_use_slots(self, use_slots_name: Iterable[str]) -> None:
        """Mark slots that are fed; the others are skipped. Raises FluidValueError for an unknown
        slot.
        """
        for slot in self._slots(use_slots_name):
            slot.is_used = True

    def _slots(self, names: Iterable[str]) -> list[Any]:
        if self.proto_desc.name != "MultiSlotDataFeed":
            raise FluidValueError(
                "a DataFeedDesc has slots if its name is 'MultiSlotDataFeed', not"
                f" {self.proto_desc.name!r}"
            )
        slots = {slot.name: slot for slot in self.proto_desc.multi_slot_desc.slots}
        for name in names:
            if name not in slots:
                raise FluidValueError(
                    f"there is no slot {name!r}; the description has {', '.join(map(repr, slots))}"
                )
        return [slots[name] for name in names]

    def desc(self) -> str:
        """The text of the description."""
        from .loaders.slots import proto

        return proto.shown(self.proto_desc)


__all__ = ["DataFeedDesc"]
