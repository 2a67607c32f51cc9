"""Time and memory of choosing and extracting 50,000 frames from a corpus of LibriSpeech's size.

    .venv/bin/python benchmarks/speech.py                  28,539 generated files of 1 to 3 s, 1 GB
    .venv/bin/python benchmarks/speech.py --like FOLDER    links to the FLAC files in FOLDER: where
                                                           these are real, as long as real ones

In a temporary folder. What was just written is read from memory: a cold disk takes its own time.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import soundfile

FILES, SPEAKERS, CHAPTERS = 28_539, 251, 585  # of train-clean-100


def voice(rng: np.random.Generator) -> np.ndarray:
    t = np.arange(rng.integers(16_000, 48_000)) / 16_000
    pitch = rng.uniform(80, 300)
    hum = sum(np.sin(2 * np.pi * pitch * k * t) / k for k in (1, 2, 3))
    return (3000 * hum + rng.normal(0, 30, len(t))).astype(np.int16)


def write_corpus(data_dir: Path, like: Path | None) -> None:
    """{speaker}/{chapter}/*.flac, as many as the real corpus has."""
    real = sorted(like.rglob("*.flac")) if like else []
    rng = np.random.default_rng(0)
    for number in range(FILES):
        chapter = number % CHAPTERS
        speaker = 100 + chapter % SPEAKERS
        name = f"{speaker}-{1000 + chapter}-{number // CHAPTERS:04d}.flac"
        path = data_dir / f"LibriSpeech/train-clean-100/{speaker}/{1000 + chapter}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if real:
            path.symlink_to(real[number % len(real)].resolve())
        else:
            soundfile.write(path, voice(rng), 16_000)


def step(name: str, *options: str) -> str:
    """Seconds and peak memory of a step, by GNU time, with what it says."""
    command = ["/usr/bin/time", "-f", "%e s, %M kB", sys.executable, "-m", f"ntkcond.steps.{name}"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    *said, cost = done.stderr.strip().splitlines()
    seconds, kilobytes = re.findall(r"[\d.]+", cost)
    return f"{float(seconds):.1f} s, {int(kilobytes) / 1000:,.0f} MB  {' '.join(said)}"


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--like", type=Path, help="folder of FLAC files to link to")
    options.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data_dir, corpus = Path(folder), Path(folder, "corpus.h5")
        write_corpus(data_dir, arguments.like)
        corpus_options = ["--subset=train-clean-100", f"--data-dir={data_dir}"]
        log = f"--log={folder}/log"
        print("headers:", step("corpus", *corpus_options, f"--output={corpus}", log))
        print(" ", Path(folder, "log").read_text().splitlines()[-1].partition(": ")[2])
        for normalise in ("global", "speaker"):
            recipe = [
                "--source=librispeech", f"--corpus={corpus}", "--samples=50000",
                "--hold-out=10000", "--features=768", "--mel=48", "--splice=16",
                f"--normalise={normalise}", f"--threads={arguments.threads}",
                f"--output={folder}/x.h5",
            ]  # fmt: skip
            print(
                f"50,000 + 10,000 frames, normalised {normalise}:",
                step("dataset", *corpus_options, *recipe),
            )
