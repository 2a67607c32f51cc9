"""The published subsets of LibriSpeech (Panayotov et al., 2015; openslr.org/12, its md5sum.txt).

Read by the Snakefile at every start: standard library only.
"""

from typing import NamedTuple

MIRRORS = (
    "https://www.openslr.org/resources/12",
    "https://us.openslr.org/resources/12",
    "https://openslr.elda.org/resources/12",
)


class Subset(NamedTuple):
    """A part of the corpus: size and md5 of its archive, and its contents."""

    bytes: int
    md5: str
    utterances: int
    speakers: int
    hours: float


SUBSETS = {
    "dev-clean": Subset(337_926_286, "42e2234ba48799c1f50f24a7926300a1", 2703, 40, 5.4),
    "dev-other": Subset(314_305_928, "c8d0bcc9cca99d4f8b62fcc847357931", 2864, 33, 5.3),
    "test-clean": Subset(346_663_984, "32fa31d27d2e1cad72775fee3f4849a9", 2620, 40, 5.4),
    "test-other": Subset(328_757_843, "fb5a50374b501bb3bac4815ee91d3135", 2939, 33, 5.1),
    "train-clean-100": Subset(6_387_309_499, "2a93770f6d5c6c964bc36631d331a522", 28539, 251, 100.6),
    "train-clean-360": Subset(
        23_049_477_885, "c0e676e450a7ff2f54aeade5171606fa", 104_014, 921, 363.6
    ),
    "train-other-500": Subset(
        30_593_501_606, "d1a0fd59409feb2c614ce4d30c387708", 148_688, 1166, 496.7
    ),
}
