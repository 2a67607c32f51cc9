"""A checksum behind the end of an HDF5 file, where HDF5 does not look.

HDF5 does not notice most flipped bytes; some make it hang when it opens the file. So a file is
compared with its seal before HDF5 reads it.
"""

import functools
import zlib
from pathlib import Path

MARK = b"\nntkcond crc32 "
LENGTH = len(MARK) + 8  # 8 hexadecimal digits
PIECE = 2**20  # bytes read at a time


def seal(path: Path) -> None:
    """Adds the checksum to a file that has none."""
    mark = MARK + b"%08x" % _crc32(path, path.stat().st_size)
    with path.open("ab") as file:
        file.write(mark)


def is_whole(path: Path | str) -> bool:
    """Whether a file is as it was sealed. One without a seal counts as whole: an older version
    wrote it, or another program. Raises OSError if it cannot be read."""
    path = Path(path)
    inode = path.stat()
    return _is_whole(path.absolute(), (inode.st_ino, inode.st_size, inode.st_ctime_ns))


@functools.cache  # a step asks for its record, then reads
def _is_whole(path: Path, state: tuple[int, int, int]) -> bool:
    size = state[1] - LENGTH
    if size < 0:
        return True
    with path.open("rb") as file:
        file.seek(size)
        mark = file.read()
    return not mark.startswith(MARK) or mark[len(MARK) :] == b"%08x" % _crc32(path, size)


def _crc32(path: Path, size: int) -> int:
    """The checksum of the first bytes of a file."""
    checksum = 0
    with path.open("rb") as file:
        while size > 0 and (piece := file.read(min(PIECE, size))):
            checksum = zlib.crc32(piece, checksum)
            size -= len(piece)
    return checksum
