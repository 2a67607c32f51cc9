"""How many cases a test tries: few, or many with `pytest --thorough`."""

import os

asked = False  # conftest.py sets it before tests are imported, in xdist's workers too


def how_many(name: str, *, few: int, thorough: int) -> int:
    """`few`, or `thorough` with `--thorough`; NTKCOND_TEST_<name> overrules both.
    No two modules share a name."""
    return int(os.environ.get(f"NTKCOND_TEST_{name}", thorough if asked else few))
