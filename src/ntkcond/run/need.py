"""What a computation needs: a step checks it before, a job requests it."""

from typing import NamedTuple


class Need(NamedTuple):
    """A computation, the bytes that it needs, and the settings that lower them; "" where the bytes
    are requested, and not checked beforehand."""

    what: str
    bytes: int
    hint: str = ""
