"""The table of costs."""

from pathlib import Path

import pytest

from ntkcond.artefacts import costs
from ntkcond.run.files import write_artefact, write_hdf5, write_text

TSV = "s\tmax_rss\tcpu_time\n3.5\t100\t2.5\n"


@pytest.mark.parametrize("folder", ["results", "ntk/results"])
def test_times_are_found_below_the_prefix_of_a_module_too(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    results = Path(folder)
    with write_hdf5(results / "datasets/digits.h5", {"rule": "dataset", "inputs": {}}) as file:
        file["x"] = [1.0]
    kernel = {"rule": "kernel", "inputs": {"dataset": {"results/datasets/digits.h5": "1"}}}
    with write_hdf5(results / "kernels/digits/relu/depth2.h5", kernel) as file:
        file["x"] = [1.0]
    made_with = {
        "rule": "fig2",
        "inputs": {"kernel": {"results/kernels/digits/relu/depth2.h5": "2"}},
    }
    write_artefact({results / "fig2.csv": b"a\n"}, made_with)
    for job in ("dataset/digits", "kernel/digits/relu/depth2", "fig2"):
        write_text(results / f"benchmarks/{job}.tsv", TSV)
    table = costs.table([results / "provenance/fig2.json"])
    assert table.rule.tolist() == ["dataset", "kernel", "fig2"]
    assert table.dataset.tolist() == ["digits", "digits", ""]
    assert table.jobs_measured.tolist() == [1, 1, 1]
    assert table.cpu_s.tolist() == [2.5] * 3
