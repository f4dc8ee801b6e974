"""Splits a byte stream into lines in linear time and bounded space."""


class LineTooLongError(Exception):
    """A line exceeds its limit."""


class LineSplitter:
    """Collects chunks of bytes and gives the lines they complete.

    The pieces of an unfinished line are kept as they came and joined once, so that a line of
    many chunks costs its length and not the square of it.

    Args:
        limit: Bytes that a line may have, its newline not counted.
        cut: Whether the rest of a longer line is dropped; else such a line is an error.
    """

    def __init__(self, limit: int, *, cut: bool = False) -> None:
        self._limit = limit
        self._cut = cut
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Take a chunk; give the lines that are complete now, without their newlines.

        Raises:
            LineTooLongError: If a line exceeds the limit and is not to be cut.
        """
        if b"\n" not in data:
            self._keep(data)
            return []
        first, *complete, rest = data.split(b"\n")
        self._keep(first)
        lines = [self._take()]
        if len(data) <= self._limit:
            lines += complete
        else:
            lines += map(self._fit, complete)
        self._keep(rest)
        return lines

    def finish(self) -> bytes:
        """Give what stands after the last newline, and begin anew."""
        return self._take()

    def _keep(self, piece: bytes) -> None:
        piece = self._fit(piece, self._limit - self._size)
        if piece:
            self._pieces.append(piece)
            self._size += len(piece)

    def _fit(self, piece: bytes, room: int | None = None) -> bytes:
        """Bring a piece down to the room there is for it: by default that of a whole line."""
        room = self._limit if room is None else room
        if len(piece) > room and not self._cut:
            raise LineTooLongError
        return piece[:room]

    def _take(self) -> bytes:
        line = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return line
