"""The utterances of a corpus: a job for each data set of speech."""

from ntkcond.datasets.registry import SOURCES
from ntkcond.datasets.speech import corpus
from ntkcond.jobs.step import DataSet

path = "results/corpora/{dataset}.h5"
takes = ()
unrecorded = ("data_dir", "mirrors")
spot_check = "dataset"


def serves(data: DataSet) -> bool:
    return SOURCES[data.settings["source"]].corpus


def settings(data: DataSet) -> dict:
    return {"subset": data.settings["subset"]}


def largest(data: DataSet) -> int:
    return 0  # one process reads the headers alone


def folder(data: DataSet) -> str:
    """The corpus, below the folder of raw files."""
    return f"{corpus.FOLDER}/{data.settings['subset']}"
