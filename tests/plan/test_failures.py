"""The last words of a failed run, from the logs of its steps."""

import pytest

from ntkcond.plan.failures import KILLED, Failure, of_run

LOG = "results/logs/kernel/digits/relu/depth2.log"
STAMP = "2026-01-02 03:04:05"
TRACEBACK = """Traceback (most recent call last):
  File "command.py", line 1, in run
    main(arguments)
KeyError: 'a bug'
"""


@pytest.fixture
def failed(tmp_path, monkeypatch):
    """A failed job whose log has that text; a line of its last words each."""
    monkeypatch.chdir(tmp_path)

    def failed(text: str | None, end: str = "Its command returned non-zero exit status 1") -> list:
        if text is not None:
            (tmp_path / LOG).parent.mkdir(parents=True)
            (tmp_path / LOG).write_text(text, "utf-8")
        job = "kernel digits relu depth2"
        return of_run([Failure(job, ["fig2"], tmp_path, [LOG], end)]).splitlines()

    return failed


def test_the_job_its_error_and_its_log(failed):
    text = f"{STAMP} kernel: 1 of 3\n{STAMP} ntkcond: x.npy: damaged. Replace it\n{STAMP} the end\n"
    assert failed(text) == [
        "ntkcond: kernel digits relu depth2 failed (needed by fig2)",
        "    x.npy: damaged. Replace it",
        f"    log: {LOG}",
    ]


def test_of_a_traceback_the_last_line(failed):
    words = failed(f"{STAMP} ntkcond: this should not happen; please report it\n{TRACEBACK}")
    assert words[1:3] == ["    this should not happen; please report it", "    KeyError: 'a bug'"]


def test_a_killed_job_leaves_no_word_and_it_is_said_why(failed):
    words = failed(f"{STAMP} kernel: 1 of 3\n", "Its command died with <Signals.SIGKILL: 9>")
    assert words[1] == f"    {KILLED}"


def test_what_slurm_says_counts_where_the_log_says_nothing(tmp_path):
    end = "SLURM-job '12' failed, SLURM status is: 'FAILED'"
    failure = Failure("kernel", [], tmp_path, ["step.log", "12.log"], end)
    _, why, log = of_run([failure]).splitlines()
    assert why == f"    its log has no error. {end}"
    assert log == "    log: none was written"
    (tmp_path / "12.log").write_text(
        "…\nslurmstepd-vm: error: Exceeded job memory limit\n", "utf-8"
    )
    why, log = of_run([failure]).splitlines()[1:]
    assert why == f"    its log has no error. {end}. Slurm: Exceeded job memory limit"
    assert log.endswith("12.log")


def test_jobs_with_the_same_error_share_a_block(tmp_path):
    (tmp_path / "log").write_text(f"{STAMP} ntkcond: device: no GPU\n", "utf-8")
    jobs = [Failure(f"kernel {n}", [], tmp_path, ["log"], "") for n in range(9)]
    words = of_run(jobs).splitlines()
    assert len(words) == 3
    assert words[0].startswith("ntkcond: kernel 0, kernel 1") and "and 4 more failed" in words[0]


def test_of_many_errors_the_first_are_shown(tmp_path):
    for n in range(12):
        (tmp_path / f"{n}").write_text(f"{STAMP} ntkcond: error {n}\n", "utf-8")
    words = of_run([Failure(f"job {n}", [], tmp_path, [f"{n}"], "") for n in range(12)])
    assert words.startswith("ntkcond: 12 jobs failed. The first 10 errors:")
    assert "    error 9\n" in words and "error 10" not in words
