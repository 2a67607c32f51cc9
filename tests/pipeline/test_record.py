"""The record of what a result was made with: of settings, inputs, code and versions, no more."""

import hashlib
import json
import math
from pathlib import Path

import h5py
import numpy as np
import pytest

from ntkcond.run import record
from ntkcond.run.files import write_artefact, write_hdf5
from ntkcond.steps import kernel

MADE_WITH = {
    "rule": "kernel", "wildcards": {"depth": "1"}, "settings": {"width": 512}, "inputs": {},
    "code": {"a": "b"}, "versions": {}, "format": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (8.0, 8),
        (0.1, 0.1),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        ((1, [2.0, ("a",)]), [1, [2, ["a"]]]),
        ({1: Path("a/b"), "b": {"c": None}}, {"1": "a/b", "b": {"c": None}}),
        (True, True),
        ("1", "1"),
        (2**70, 2**70),
    ],
)
def test_records_have_what_json_has(value, plain):
    canonical = record.canonical(value)
    assert canonical == plain
    assert type(canonical) is type(plain)
    assert record.canonical(json.loads(json.dumps(canonical))) == canonical


def test_a_digest_does_not_depend_on_order_or_on_how_numbers_are_written():
    one = {"a": 1, "b": {"c": (1.0, 2.5), "d": None}}
    other = {"b": {"d": None, "c": [1, 2.5]}, "a": 1.0}
    assert record.short_digest(one) == record.short_digest(other)
    text = '{"a": 1, "b": {"c": [1, 2.5], "d": null}}'
    assert record.short_digest(one) == hashlib.sha256(text.encode()).hexdigest()[:12]


@pytest.mark.parametrize(
    "other",
    [{"a": 2}, {"a": "1"}, {"a": [1]}, {"a": 1, "b": None}, {"b": 1}, {"a": 1.5}, {"a": None}],
)
def test_other_values_have_other_digests(other):
    assert record.short_digest(other) != record.short_digest({"a": 1})


@pytest.mark.parametrize(
    "changed",
    [
        {"settings": {"width": 513}},
        {"rule": "sweep"},
        {"code": {"a": "c"}},
        {"format": 2},
        {"versions": {"numpy": "9"}},
        {"inputs": {"dataset": {"results/x.h5": "1"}}},
    ],
)
def test_each_entry_of_a_record_counts_in_its_digest(changed):
    assert record.digest(MADE_WITH) != record.digest({**MADE_WITH, **changed})


def test_a_record_in_words_has_all_that_snakemake_compares():
    of_file = {"file": {"my samples.npy": "ab12"}, "dataset": {"results/datasets/a.h5": "cd34"}}
    settings = {"width": 8.0, "seeds": [1, 32], "settings": {"rate": {"a": 1}}, "loss": "square"}
    made = {**MADE_WITH, "settings": settings, "inputs": of_file, "order": "ef56"}
    assert record.texts(made) == {
        "width=8", "seeds=[1, 32]", 'settings.rate={"a": 1}', "loss=square", "a b", "format 1",
        "my samples.npy ab12", "inputs ef56",
    }  # fmt: skip


def test_differences_are_in_words():
    before = {"width=512", "ntk.rank 0123456789abcdef", "numpy 2.4.6", "loss=square"}
    today = {"width=256", "ntk.rank fedcba9876543210", "numpy 2.5.0", "bias=0.5"}
    assert sorted(record.differences(before, today)) == [
        "loss=square → –", "ntk.rank changed", "numpy 2.4.6 → numpy 2.5.0", "width=512 → width=256",
        "– → bias=0.5",
    ]  # fmt: skip
    assert record.differences(before, before) == []


def test_the_order_of_input_files_counts_and_that_of_settings_does_not():
    files = {"results/a.h5": "1", "results/b.h5": "2"}
    turned = dict(reversed(files.items()))
    assert record.digest({"inputs": {"sgd": files}}) != record.digest({"inputs": {"sgd": turned}})
    assert record.digest({"settings": files}) == record.digest({"settings": turned})


def test_a_result_is_named_by_its_path_and_any_other_file_by_its_name():
    assert record.input_name("results/datasets/mnist.h5") == "results/datasets/mnist.h5"
    assert record.input_name("/home/a/samples.npz") == "samples.npz"
    assert record.input_name("ntk/results/datasets/mnist.h5") == "results/datasets/mnist.h5"
    assert record.is_result("results/fig2.csv")
    assert not record.is_result("/elsewhere/results/fig2.csv")
    assert not record.is_result("../results.npz")


def test_the_digest_of_an_input_is_of_its_record_or_else_of_its_content(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.h5").write_bytes(b"one")
    assert record.input_digest("mine.h5") == (hashlib.sha256(b"one").hexdigest()[:32], None)
    for seed in (0, 1):  # the values of a result are what it was made with
        with write_hdf5("results/a.h5", MADE_WITH) as file:
            file["x"] = np.random.default_rng(seed).random(3)
        assert record.input_digest("results/a.h5") == (record.digest(MADE_WITH), MADE_WITH)
    with write_hdf5("results/b.h5") as file:  # of unknown provenance
        file["x"] = [1.0]
    content = hashlib.sha256(Path("results/b.h5").read_bytes()).hexdigest()[:32]
    assert record.input_digest("results/b.h5") == (content, None)
    with write_hdf5("outside.h5", MADE_WITH) as file:
        file["x"] = [1.0]
    content = hashlib.sha256(Path("outside.h5").read_bytes()).hexdigest()[:32]
    assert record.input_digest("outside.h5") == (content, None)
    with pytest.raises(FileNotFoundError):
        record.input_digest("results/absent.h5")


def test_the_digest_of_a_table_is_of_its_record_and_its_content(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    other = {**MADE_WITH, "code": {"a": "of another version"}}
    digests = []
    for content, made_with in ((b"a\n", MADE_WITH), (b"a\n", other), (b"b\n", other)):
        write_artefact({Path("results/a.csv"): content}, made_with)
        parts = record.digest(made_with), hashlib.sha256(content).hexdigest()[:32]
        digests.append(", content ".join(parts))
        assert record.input_digest("results/a.csv") == (digests[-1], made_with)
        assert record.input_digest("results/provenance/a.json") == (parts[0], made_with)
    first, second, third = digests

    def agrees(before: str) -> bool:
        return record.agrees({"inputs": {"fig2": {"results/a.csv": before}}}, "results/a.csv")

    assert agrees(third)  # which is there
    assert not agrees(second) and not agrees(first)  # other numbers, such as of another machine
    of_it = [{"inputs": {"fig2": {"results/a.csv": entry}}} for entry in (first, first[:12])]
    assert record.digest(of_it[0]) == record.digest(of_it[1])
    folders = [{"inputs": {"corpus": {"folder": f"8 files, {end}"}}} for end in ("one", "two")]
    assert record.digest(folders[0]) != record.digest(folders[1])


def test_a_result_without_a_record_has_none(tmp_path):
    with write_hdf5(tmp_path / "good.h5", MADE_WITH) as file:
        file["x"] = np.zeros(10_000)
    assert record.read(tmp_path / "good.h5") == MADE_WITH
    content = (tmp_path / "good.h5").read_bytes()
    for name, damaged in (("cut.h5", content[:3000]), ("none.h5", b"nonsense"), ("empty.h5", b"")):
        (tmp_path / name).write_bytes(damaged)
        assert record.read(tmp_path / name) is None
    with h5py.File(tmp_path / "good.h5", "a") as file:
        file.attrs["provenance"] = "{not JSON"
    assert record.read(tmp_path / "good.h5") is None
    assert record.read(tmp_path / "absent.h5") is None
    assert record.read(tmp_path / "absent.pdf") is None


def test_an_artefacts_table_has_a_record_and_what_is_drawn_shares_one():
    for name in ("results/fig2.csv", "results/provenance/fig2.json"):
        assert record.sidecar(name) == Path("results/provenance/fig2.json")
    for name in ("results/fig2.pdf", "results/fig2.png", "results/provenance/draw_fig2.json"):
        assert record.sidecar(name) == Path("results/provenance/draw_fig2.json")


def test_steps_record_what_the_config_asks_for(ran, monkeypatch):
    """The two sides of provenance: what a step was run with, and what Snakemake compares."""
    monkeypatch.chdir(ran.folder)
    dag = ran.dag
    for job in ran.jobs:
        for output in job.outputs:
            made_with = record.read(output)
            assert record.texts(made_with) == dag.texts(job), output
            assert dag.jobs.changes(made_with) == []
            assert (made_with["rule"], made_with["wildcards"]) == (job.rule, dict(job.wildcards))
            assert set(record.inputs_of(made_with)) >= {
                path
                for some in dag.inputs(job).values()
                for one in some
                for path in one.outputs[:1]
            }
    assert len({record.digest(record.read(job.outputs[0])) for job in ran.jobs}) == len(ran.jobs)
    assert not {"threads", "device", "log"} & {*kernel.OPTIONS.settings}
