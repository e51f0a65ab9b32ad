"""Checksums of large files."""

import zlib
from pathlib import Path

_CHUNK = 1 << 22


def file_checksum(path: Path) -> int:
    """Computes the CRC-32 of a file in bounded memory.

    Args:
        path: The file.

    Returns:
        The checksum.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "digits"
        >>> size = path.write_text("123456789")
        >>> hex(file_checksum(path))
        '0xcbf43926'
    """
    checksum = 0
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            checksum = zlib.crc32(chunk, checksum)
    return checksum
