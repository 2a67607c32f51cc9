"""Samples: a job for each data set."""

from ntkcond.datasets.registry import SOURCES, module_name
from ntkcond.datasets.source import Source
from ntkcond.datasets.speech.subsets import SUBSETS
from ntkcond.jobs.costs import FLOAT32, FLOAT64, INTERPRETER, OPERATIONS_PER_SECOND, TORCH, Work
from ntkcond.jobs.step import DataSet
from ntkcond.run.need import Need

path = "results/datasets/{dataset}.h5"
takes = ("corpus",)
unrecorded = ("data_dir",)
spot_check = "dataset"

# For each second of audio: 1.07 ms of such a core to decode it and to compute frames, with a factor
# of 3; a third more bytes than 16 kHz, 16 bit FLAC has on average.
AUDIO_OPERATIONS = 3 * 1.07e-3 * OPERATIONS_PER_SECOND
AUDIO_BYTES = 24_000
# A user's own files. They enter by content: Snakemake looks at it only if their dates are newer
# than that of the result, and a copy may well be older.
FILES = ("file", "labels")


def _source(data: DataSet) -> Source:
    return SOURCES[data.settings["source"]]


def settings(data: DataSet) -> dict:
    return {key: data.settings[key] for key in data.settings if key not in (*FILES, "mirrors")}


def files(data: DataSet) -> dict[str, str]:
    return {key: data.settings[key] for key in FILES if key in data.settings}


def raw(data: DataSet) -> tuple[str, ...]:
    return _source(data).raw_files


def chosen(data: DataSet) -> tuple[str, ...]:
    return (module_name(data.settings["source"]),)


def largest(data: DataSet) -> int | None:
    return None if _source(data).corpus else 0  # all cores decode audio


def sizes(data: DataSet) -> dict:
    """hours: of audio in the subset; of an unknown one, as in the paper's."""
    source, hours = _source(data), 0.0
    if source.corpus:
        hours = SUBSETS.get(data.settings["subset"], SUBSETS["train-clean-100"]).hours
    return {"available": source.samples or data.samples, "hours": hours}


def need(available: int, features: int) -> Need:
    """All available samples are read and some are chosen and scaled: a few copies."""
    return Need("samples", INTERPRETER + TORCH + 4 * FLOAT64 * available * features)


def work(available: int, features: int, hours: float = 0) -> Work:
    """A few passes over all samples; all audio becomes frames."""
    values, audio = available * features, 3600 * hours
    return Work(20 * values + AUDIO_OPERATIONS * audio, 4 * FLOAT64 * values + AUDIO_BYTES * audio)


def file_bytes(samples: int, test_samples: int, features: int) -> int:
    return FLOAT32 * (samples + test_samples) * features
