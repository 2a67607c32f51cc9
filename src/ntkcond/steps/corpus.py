"""The FLAC files of a corpus of speech, from their headers: results/corpora/{dataset}.h5.

Downloads the corpus first if it is not in data_dir.
"""

import importlib
from argparse import Namespace
from pathlib import Path

import numpy as np

from ntkcond.datasets.registry import SOURCES
from ntkcond.datasets.speech import corpus
from ntkcond.datasets.speech.subsets import SUBSETS
from ntkcond.run.files import write_hdf5
from ntkcond.run.progress import progress
from ntkcond.settings import command
from ntkcond.settings.step import DataSet

gpu = False


def serves(data: DataSet) -> bool:
    return SOURCES[data.settings["source"]].corpus


def settings(data: DataSet) -> dict:
    return {"subset": data.settings["subset"]}


def largest(data: DataSet) -> int:
    return 0  # one process reads the headers alone


def folder(data: DataSet) -> str:
    """The corpus, below the folder of raw files."""
    return f"{corpus.FOLDER}/{data.settings['subset']}"


def main(arguments: Namespace) -> None:
    """Writes for each file, in the order of the corpus, its path below the subset's folder, samples
    of audio, the md5 of its audio and its problem, which is empty for a good file."""
    a = arguments
    # By name, so that it is no part of this step's code: a download changes nothing in the files.
    importlib.import_module("ntkcond.datasets.speech.archive").obtain(
        a.subset, a.data_dir, command.mirrors_of(a, "librispeech")
    )
    folder = a.data_dir / corpus.FOLDER / a.subset
    if a.record:
        a.record["inputs"]["corpus"] = {folder.name: corpus.state(folder)}
    files = (Path(file.path).relative_to(folder).as_posix() for file in corpus.files_in(folder))
    paths = sorted(files, key=corpus.in_order)
    samples = np.zeros(len(paths), np.int64)
    md5 = np.zeros((len(paths), 16), np.uint8)
    problems = [""] * len(paths)
    first: dict[str, str] = {}
    for i, path in enumerate(progress(paths, len(paths), f"headers of {a.subset}")):
        try:
            utterance = corpus.read_utterance(folder, path)
            if first.setdefault(utterance.name, path) != path:
                raise ValueError(f"is there twice, also as {first[utterance.name]}")
        except OSError as error:
            problems[i] = f"cannot be read ({error.strerror})"
        except ValueError as error:
            problems[i] = str(error)
        else:
            samples[i], md5[i] = utterance.samples, np.frombuffer(utterance.md5, np.uint8)
    good = [path for path, problem in zip(paths, problems, strict=True) if not problem]
    speakers = len({Path(path).name.partition("-")[0] for path in good})
    hours = samples.sum() / corpus.SAMPLE_RATE / 3600
    described = description(a.subset, len(good), speakers, hours)
    published = SUBSETS.get(a.subset)
    partial = published is not None and len(good) < published.utterances
    say = command.log.warning if partial else command.log.info
    say("%s: %s", a.output.stem, described)
    with write_hdf5(a.output, a.record) as file:
        file["path"] = paths
        file["samples"] = samples
        file["md5"] = md5
        file["problem"] = problems
        file.attrs.update(
            subset=a.subset, description=described, utterances=len(good), speakers=speakers,
            hours=hours,
        )  # fmt: skip


def description(subset: str, utterances: int, speakers: int, hours: float) -> str:
    """Size of the corpus, as a part of the published subset."""
    if subset not in SUBSETS:
        return f"{utterances:,} utterances of {speakers} speakers, {hours:.2f} h"
    whole = SUBSETS[subset]
    return (
        f"{utterances:,} of the {whole.utterances:,} utterances of {subset}, {speakers} of"
        f" {whole.speakers} speakers, {hours:.2f} of {whole.hours} h"
    )


OPTIONS = command.parser(__doc__)
OPTIONS.add_settings("subset")
OPTIONS.add_unrecorded("--data-dir", type=Path, default=Path("data"), help="raw files")
command.add_mirrors(OPTIONS)

if __name__ == "__main__":
    command.run(main, OPTIONS)
