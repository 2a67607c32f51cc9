"""A small corpus of synthesised voices in LibriSpeech's layout."""

from pathlib import Path

import numpy as np
import soundfile

SUBSET = "train-clean-100"


def voice(samples: int, seed: int) -> np.ndarray:
    """A hum with overtones, louder and softer, and some noise: (samples,) int16."""
    rng = np.random.default_rng(seed)
    t = np.arange(samples) / 16_000
    pitch = rng.uniform(80, 300)
    hum = sum(np.sin(2 * np.pi * pitch * k * t + rng.uniform(0, 6)) / k for k in range(1, 6))
    loud = 1 + np.sin(2 * np.pi * rng.uniform(2, 6) * t)
    return (2000 * hum * loud + rng.normal(0, 30, samples)).astype(np.int16)


def write_corpus(
    data_dir: Path, speakers: int = 4, utterances: int = 3, subset: str = SUBSET
) -> Path:
    """{subset}/{speaker}/{chapter}/*.flac of 0.5 to 1 s each; the subset's folder."""
    folder = data_dir / "LibriSpeech" / subset
    for speaker in range(10, 10 + speakers):
        chapter = folder / str(speaker) / "7"
        chapter.mkdir(parents=True)
        for number in range(utterances):
            seed = 100 * speaker + number
            audio = voice(8000 + 80 * (seed % 101), seed)
            soundfile.write(chapter / f"{speaker}-7-{number:04d}.flac", audio, 16_000)
    return folder
