"""The protocol: samples are cut into blocks of n, with one NTK a block (default n = 512)."""

from ntkcond.run.errors import UserError


def blocks_of(samples: int, block: int | str, name: str) -> tuple[int, int]:
    """(n, number of blocks): full blocks of n = `block` consecutive samples, or one of all samples
    for "all". Samples beyond the last full block are left out. Raises UserError if none is full."""
    n = samples if block == "all" else int(block)
    if n > samples:
        raise UserError(
            f"block: {n} is larger than the {samples} samples of {name}. Lower block (for this data"
            f" set alone: datasets: {{{name}: {{block: …}}}}), or set it to all"
        )
    return n, samples // n
