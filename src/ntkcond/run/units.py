"""Numbers for readers."""


def size(count: float) -> str:
    """Bytes in words: `size(3e9)` is '3.0 GB'."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
