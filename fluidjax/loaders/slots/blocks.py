"""A stream of text as blocks of whole lines."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

from ...errors import FluidValueError

# bytes that are read and parsed at once; their results stay in the caches
_BLOCK = 1 << 19
_OTHER = {  # the first bytes of files that are not plain text, and the advice for each
    b"\x1f\x8b": "compressed by gzip; let its name end in .gz",
    b"BZh": "compressed by bzip2; read it by set_pipe_command('bunzip2')",
    b"\xfd7zXZ": "compressed by xz; read it by set_pipe_command('xz -d')",
    b"\x28\xb5\x2f\xfd": "compressed by zstd; read it by set_pipe_command('zstd -d')",
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"\xff\xfe": "text in UTF-16; read it by set_pipe_command('iconv -f UTF-16 -t ASCII')",
    b"\xfe\xff": "text in UTF-16; read it by set_pipe_command('iconv -f UTF-16 -t ASCII')",
    b"\xef\xbb\xbf": "text that begins with a byte order mark; write it as UTF-8 without one",
}


class Blocks:
    """Iterating yields the whole lines of a block, and the number of the first.

    stream: has readinto. path: for messages. number, left: the current line of the stream, and the
    part of it that was read already; they are updated while reading, so that another reader can
    continue. Raises FluidValueError if the stream cannot be read, or begins like a file of another
    format or encoding.
    """

    def __init__(self, stream: Any, path: str, number: int = 1, left: bytes = b"") -> None:
        self.stream, self.path, self.number, self.left = stream, path, number, left

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        while lines := self._lines():
            number = self.number
            self._refuse_other(lines)
            self.number += lines.count(b"\n")
            yield lines, number

    def _lines(self) -> bytes:
        """The next lines; nothing at the end."""
        parts: list[bytes | bytearray] = [self.left]
        while block := self._read():
            end = block.rfind(b"\n") + 1
            if end:
                self.left = bytes(memoryview(block)[end:])
                return b"".join([*parts, memoryview(block)[:end]])
            parts.append(block)
        self.left = b""
        return b"".join(parts)

    def _read(self) -> bytearray:
        """The bytes of one block; fewer at the end."""
        block, count = bytearray(_BLOCK), 0
        try:
            with memoryview(block) as free:
                while count < _BLOCK and (more := self.stream.readinto(free[count:])):
                    count += more
        except (OSError, EOFError, zlib.error) as error:
            raise FluidValueError(f"{self.path} cannot be read to its end: {error}") from None
        del block[count:]
        return block

    def _refuse_other(self, lines: bytes) -> None:
        if self.number > 1:
            return
        for begins, what in _OTHER.items():
            if lines.startswith(begins):
                raise FluidValueError(
                    f"{self.path}:1: lines of slots are plain text, and this is {what}"
                )


__all__ = ["Blocks"]
