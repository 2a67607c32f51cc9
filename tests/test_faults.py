"""Kills, full and read-only disks, damaged files, many configs in turn, two runs at once.

No result ever differs from that of an undisturbed run, and the same command finishes the work:
after a kill of Snakemake itself once it is unlocked (`--unlock`), as it says.

`pytest --thorough -s tests/test_faults.py` does much of each, over every rule; a few are tried
without.
"""

import contextlib
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import psutil
import pytest
import yaml
from snakemake.utils import update_config

from dag import Dag, Job
from ntkcond.artefacts.registry import SPECS
from ntkcond.pipeline import config as settings
from ntkcond.pipeline.jobs import Jobs
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5
from speech import write_corpus
from thoroughness import how_many
from workflow import (
    MADE,
    SMALL,
    at_the_keyboard,
    command,
    contents,
    copy_of_the_project,
    environment,
    planned,
    skip,
    snakemake,
    write_config,
)

KILLS = how_many("KILLS", few=3, thorough=120)
DISKS = how_many("DISKS", few=1, thorough=20)
DAMAGES = how_many("DAMAGES", few=1, thorough=50)
CONFIGS_IN_TURN = how_many("CONFIGS_IN_TURN", few=0, thorough=8)
THOROUGH = KILLS > 5
PATIENCE = 900  # seconds; no test needs as much: something hangs
# What is killed while it is made: a file of each, and what is made from it.
FIG2 = ["conditioning.csv", "fig2.*"]
KERNEL = ["kernels/digits/relu/*", "spectra/digits/relu/*", *FIG2]
VICTIMS = {
    "dataset": ["datasets/digits.h5", *KERNEL, "angles/digits/relu/*", "angles.csv"],
    "kernel": KERNEL,
    "spectrum": ["spectra/synthetic/relu/*", *FIG2],
    "closest_pair": ["angles/digits/relu/*", "angles.csv", "fig2.*"],
    "sgd": ["training/digits/depth1", "training.csv", "table_*", "fig3.*"],
    "conditioning": FIG2,
    "angles": ["angles.csv", "fig2.*"],
    "fig1": ["fig1.*"],
}
if THOROUGH:  # every rule, and what only EVERY has
    SPEECH = [f"{kind}/speech*" for kind in ("datasets", "kernels", "spectra")]
    VICTIMS |= {
        "sweep": ["sweeps/width/digits/*", "fig_width.*"],
        "architecture": ["architectures/digits/plain.h5", "fig_architectures.*"],
        "descent": ["descent/digits/width8.h5", "fig_evolution.*"],
        "speed": ["speed/digits/cross_entropy/width8.h5", "fig_speed.*"],
        "corpus": ["corpora/speech.h5", *SPEECH, *FIG2],
        "kernel of large": ["kernels/large/relu/*", "spectra/large/relu/*", *FIG2],
        "spectrum of large": ["spectra/large/relu/*", *FIG2],  # factors, written as halves
        "training": ["training.csv", "table_*", "fig3.*"],
    }
    VICTIMS |= {name: [f"{name}.*"] for name, spec in SPECS.items() if spec.default}
# SMALL with a kernel of more than 2,000 samples and a corpus of speech.
EVERY = {
    **SMALL,
    "datasets": {
        **SMALL["datasets"],
        "large": {
            "source": "synthetic", "samples": 2050, "features": 5, "block": "all", "depths": [1],
            "seeds": [1], "width": 8, "prove_smallest": True,
        },
        "speech": {
            "source": "librispeech", "samples": 40, "block": 20, "features": 96, "mel": 24,
            "splice": 4, "depths": [1], "seeds": [1],
        },
    },
    "figures": {"fig2": ["synthetic", "digits", "large", "speech"]},
}  # fmt: skip

# What the one command would make again besides takes ten seconds, and is not at stake.
FIGURES = ("results/fig1.pdf", "results/fig2.pdf", "results/fig4.pdf")
WHOLE = ("all",) if THOROUGH else ()
IN_THE_END = WHOLE or FIGURES


@pytest.fixture(scope="session")
def undisturbed(request, tmp_path_factory) -> Path:
    """A project with all its figures, of EVERY where much is tried. Not to be changed."""
    if not THOROUGH:
        return request.getfixturevalue("finished")
    place = new_project(tmp_path_factory.mktemp("every") / "a project")
    subprocess.run(command("all"), cwd=place, env=environment(place), check=True)
    return place


def new_project(place: Path) -> Path:
    """Without results."""
    copy_of_the_project(place)
    if THOROUGH:
        write_config(place, EVERY)
        write_corpus(place / "data", speakers=2)
    return place


def dag_of(project: Path) -> Dag:
    """The DAG of the project's config; to be asked in its folder."""
    config = yaml.safe_load((project / "config.yaml").read_text("utf-8"))
    update_config(config, yaml.safe_load((project / "small.yaml").read_text("utf-8")))
    settings.complete(config)
    return Dag(Jobs(settings.typed(config), project))


def left(project: Path) -> list[str]:
    """Processes at work in the project's folder."""
    commands = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cwd() == str(project) and process.status() != psutil.STATUS_ZOMBIE:
                commands.append(" ".join(process.cmdline()))
    return commands


def tracebacks(project: Path) -> list[str]:
    """Logs of steps, and what Snakemake said, that have one."""
    logs = [*(project / "results/logs").rglob("*.log"), *project.glob("said*.txt")]
    return [str(log) for log in logs if "Traceback" in log.read_text("utf-8", errors="replace")]


def unfinished(project: Path) -> list[Path]:
    return list((project / "results").rglob(".*.tmp"))


def steps(project: Path, rule: str | None = None) -> list[psutil.Process]:
    """The running steps of a rule, or of all."""
    return [step for step, name in named_steps(project) if rule in (None, name)]


def named_steps(project: Path) -> list[tuple[psutil.Process, str]]:
    """The running steps, each with the name that VICTIMS has for it."""
    running = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            names = [word for word in words if word.startswith("ntkcond.steps.")]
            if not names or process.cwd() != str(project):
                continue
            name = names[0].rpartition(".")[2]
            if name in ("table", "drawing"):
                [artefact] = (w.partition("=")[2] for w in words if w.startswith("--artefact="))
                name = artefact if name == "table" else f"draw_{artefact}"
            if "--dataset=results/datasets/large.h5" in words and f"{name} of large" in VICTIMS:
                name = f"{name} of large"
            running.append((process, name))
    return running


def seconds_of(rule: str, finished: Path) -> float:
    """How long a job of this rule took."""
    rule, _, dataset = rule.partition(" of ")
    records = [*finished.glob(f"results/benchmarks/{rule}.tsv")]
    records += finished.glob(f"results/benchmarks/{rule}/{dataset or '**'}/**/*.tsv")
    return max(pd.read_csv(record, sep="\t").s.max() for record in records)


def wait_until(condition, pause: float = 0.02):
    """What `condition` returns, once it is true."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(pause)
    return value


def suspended(project: Path, rule: str) -> psutil.Process | None:
    """A running step of a rule, which is held still from now on: time no longer matters."""
    for step in steps(project, rule):
        with contextlib.suppress(psutil.Error):
            step.suspend()
            return step
    return None


@contextlib.contextmanager
def running(
    project: Path, *arguments: str, output: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen]:
    """Snakemake at work in the background; whatever is left of it is killed at the end."""
    process = subprocess.Popen(
        command(*arguments),
        cwd=project,
        env=environment(project),
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=at_the_keyboard,
    )
    try:
        yield process
    finally:
        for left in [process, *steps(project)]:
            with contextlib.suppress(psutil.Error):
                left.kill()
        if process.wait() == -signal.SIGKILL:
            snakemake(project, "--unlock")


def delete(project: Path, *patterns: str) -> None:
    for pattern in patterns:
        for path in (project / "results").glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def kill(process: subprocess.Popen, project: Path, rule: str, whom: str) -> bool:
    """Kills Snakemake, a job or all of them at once (a power cut); whether there was one left."""
    victims = {"snakemake": [process], "job": steps(project, rule)[:1]}
    victims["all"] = [process, *steps(project)]
    for victim in victims[whom]:
        with contextlib.suppress(psutil.Error):
            victim.send_signal(signal.SIGKILL)
    return bool(victims[whom])


def test_killed_at_any_moment_the_same_command_finishes_with_the_same_results(
    undisturbed, tmp_path
):
    """With `--thorough` from nothing, so that every file is made twice: there, undisturbed, and
    here."""
    if THOROUGH:
        project = new_project(tmp_path / "a project")
    else:
        project = shutil.copytree(undisturbed, tmp_path / "a project", symlinks=True)
    expected = contents(undisturbed)
    chance = random.Random(1)
    kills, hits, tried = Counter(), Counter(), Counter()  # of whom; while which ran
    rounds, different, whoms = 0, [], itertools.cycle(["all", "job", "snakemake"])
    while (kills.total() < KILLS or (THOROUGH and VICTIMS.keys() - hits)) and rounds < 10 * KILLS:
        rule = min(VICTIMS, key=lambda name: (hits[name], tried[name]))
        tried[rule] += 1
        whom = next(whoms)
        rounds += 1
        delete(project, *VICTIMS[rule])
        alone = [artefact_of(rule)] if THOROUGH and rounds % 4 else WHOLE
        with (
            (project / "said.txt").open("a", encoding="utf-8") as said,
            running(project, *alone, output=said) as process,
        ):
            wait_until(lambda: steps(project, rule) or process.poll() is not None)  # noqa: B023
            if rounds % 2:  # while a file is being written
                wait_until(lambda: unfinished(project) or not steps(project, rule), 0.001)  # noqa: B023
            else:  # while it loads, computes, ends
                time.sleep(chance.uniform(0, seconds_of(rule, undisturbed)))
            hit = [name for _, name in named_steps(project)]
            if process.poll() is None and kill(process, project, rule, whom):
                kills[whom] += 1
                hits.update(hit or ["no job"])
                print(f"{kills.total()} kills, of {whom} while {hit or 'no job'} ran", flush=True)
            if whom == "job":  # Snakemake itself finds out
                process.wait(PATIENCE)
            wait_until(lambda: not steps(project))  # no orphan stays
        different += [
            f"{name} after {rule}, {whom}"
            for name, content in contents(project).items()
            if content != expected[name]
        ]
    snakemake(project, *WHOLE)
    # A job that was to make its output again may be killed before it has. If all artefacts are
    # there, the one command needs no such file in between; by its name it is made.
    lacking = expected.keys() - contents(project).keys()
    if lacking:
        assert all(Path(name).suffix == ".h5" for name in lacking)
        snakemake(project, *(f"results/{name}" for name in lacking))
    print(f"\n{kills.total()} kills {dict(kills)} while these ran: {dict(hits)}")
    print(f"  {len(different)} differences, {len(tracebacks(project))} tracebacks")
    assert contents(project) == expected
    assert different == []
    assert tracebacks(project) == []
    assert not unfinished(project)
    assert left(project) == []
    assert planned(project, *WHOLE) == {}
    assert kills.total() >= KILLS
    assert not THOROUGH or not VICTIMS.keys() - hits


@pytest.mark.parametrize("written", [[], ["pdf"], ["pdf", "png"]])
def test_killed_with_snakemake_between_two_files_the_job_runs_again(project, written):
    """Nobody has noted the job then: the next start must not take its files for out of date."""
    for suffix in {"pdf", "png"} - set(written):
        (project / f"results/fig2.{suffix}").unlink()
    for path in (project / ".snakemake/metadata").rglob("*"):
        if path.is_file() and "draw_fig2" in path.read_text("utf-8"):
            path.unlink()
    assert planned(project, "results/fig2.png") == ({} if len(written) == 2 else {"draw_fig2": 1})


def test_killed_in_mid_training_the_same_command_resumes_from_the_checkpoint(project):
    """Snakemake, which clears away what a killed job left, does not take the checkpoint. The job
    that it left at work ends by itself, long before it is done."""
    training = {"learning_rates": [8], "epochs": 200, "batch": 40}
    config = {**SMALL, "training": {**SMALL["training"], "depths": [1]}}
    config["datasets"] = {"digits": {"hold_out": 1700, "training": training}}
    write_config(project, config)
    delete(project, "training")
    trained = "results/training/digits/depth1/seed1.h5"
    snakemake(project, trained, "--config", "training={checkpoint_minutes: 60}")
    expected = contents(project)["training/digits/depth1/seed1.h5"]
    (project / trained).unlink()
    checkpoint = project / "results/training/digits/depth1/seed1.checkpoint.h5"
    with running(project, trained) as process:
        job = wait_until(lambda: checkpoint.exists() and suspended(project, "sgd"))
        process.kill()
        process.wait()
        job.resume()
        wait_until(lambda: not steps(project))
    assert checkpoint.exists()
    assert not (project / trained).exists()
    snakemake(project, trained)
    log = (project / "results/logs/sgd/digits/depth1/seed1.log").read_text("utf-8")
    assert "resumes from results/training/digits/depth1/seed1.checkpoint.h5" in log
    assert contents(project)["training/digits/depth1/seed1.h5"] == expected
    assert not checkpoint.exists()


def test_what_a_killed_run_left_at_work_does_not_write_into_the_next(finished, project):
    """The killed run has other settings: what it would write late is seen in the end."""
    delete(project, *VICTIMS["closest_pair"])
    write_config(project, {**SMALL, "width": 25})
    with running(project, "results/angles/digits/relu/depth2.h5") as process:
        job = wait_until(lambda: suspended(project, "closest_pair"))
        process.kill()
        process.wait()
        write_config(project, SMALL)
        job.resume()
        snakemake(project, "--unlock")
        snakemake(project, *FIGURES)
    assert contents(project).items() <= contents(finished).items()  # all that something needs
    assert planned(project, *FIGURES) == {}


def test_of_two_runs_at_once_one_is_refused_and_the_other_unharmed(finished, project):
    delete(project, *VICTIMS["kernel"], "fig4.*")
    with running(project, "results/fig2.pdf") as first:
        job = wait_until(lambda: suspended(project, "kernel"))
        snakemake(project, "results/angles.csv")  # nothing to be done, whoever is at work
        for target in ("results/fig2.pdf", "results/fig4.pdf"):  # the same files, and others
            second = snakemake(project, target, check=False)
            assert second.returncode != 0
            assert "another Snakemake" in second.stderr or "no other Snakemake" in second.stderr
            assert not steps(project, "fig4")
        job.resume()
        assert first.wait(PATIENCE) == 0
    snakemake(project, *FIGURES)
    assert contents(project) == contents(finished)
    assert planned(project, *FIGURES) == {}


@contextlib.contextmanager
def on_a_small_disk(project: Path) -> Iterator[Path]:
    """The results on a disk of their own."""
    disk = project / "results"
    shutil.move(disk, project / "moved")
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "none", disk], check=False).returncode:
        skip("disk", "mounting a small disk needs root")
    try:
        shutil.copytree(project / "moved", disk, dirs_exist_ok=True)
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def remount(disk: Path, *options: str) -> None:
    subprocess.run(["mount", "-o", ",".join(["remount", *options]), disk], check=True)


def used(disk: Path) -> int:
    return shutil.disk_usage(disk).used


def artefact_of(victim: str) -> str:
    """A file to ask for, which needs what VICTIMS deletes."""
    name = VICTIMS[victim][-1].partition(".")[0]
    return f"results/{name}{SPECS[name].files[0]}"


def test_a_full_disk_is_named_and_the_run_goes_on_with_more_room(undisturbed, tmp_path):
    """Full at any moment: of three rules' files, each time another part fits."""
    project = shutil.copytree(undisturbed, tmp_path / "a project", symlinks=True)
    expected = contents(undisturbed)
    chance = random.Random(2)
    full, rounds, different, traced = Counter(), 0, [], 0
    with on_a_small_disk(project) as disk:
        while full.total() < DISKS and rounds < 3 * DISKS:
            rounds += 1
            victims = chance.sample(sorted(VICTIMS), 3) if THOROUGH else ["kernel", "fig1"]
            before = used(disk)
            for victim in victims:
                delete(project, *VICTIMS[victim])
            room = chance.uniform(0, before - used(disk)) if THOROUGH else 100_000
            remount(disk, f"size={used(disk) + int(room)}")
            targets = sorted({artefact_of(victim) for victim in victims})
            done = snakemake(project, chance.choice(["-j1", "-j2"]), *targets, check=False)
            output = done.stdout + done.stderr
            traced += "Traceback" in output
            if done.returncode:
                said = ("disk is full", "are free", "No space left on device")
                assert any(words in output for words in said), output
                failed = re.findall(r"^Error in rule (\w+)", output, re.M)
                full[failed[0] if failed else "Snakemake"] += 1
            print(f"{full.total()} full disks, {room:.0f} bytes for {victims}", flush=True)
            assert not unfinished(project)
            assert left(project) == []
            remount(disk, "size=200m")
            different += [n for n, content in contents(project).items() if content != expected[n]]
            snakemake(project, *targets)
        snakemake(project, *IN_THE_END)
        print(
            f"\n{full.total()} full disks, {rounds - full.total()} with enough room: {dict(full)}"
        )
        print(f"  {len(different)} differences, {traced} tracebacks")
        assert contents(project) == expected
        assert planned(project, *IN_THE_END) == {}
    assert (different, traced) == ([], 0)
    assert full.total() == DISKS


def test_read_only_results_are_named_and_lose_nothing(finished, project):
    delete(project, *KERNEL, "fig1.*", "fig4.*")
    with on_a_small_disk(project) as disk:
        remount(disk, "ro")
        before = contents(project)
        done = snakemake(project, *FIGURES, check=False)
        output = done.stdout + done.stderr
        assert done.returncode != 0
        assert "Write-protected output" in output
        assert "results/" in output
        assert "Traceback" not in output
        assert contents(project) == before
        remount(disk, "rw")
        snakemake(project, *FIGURES)
        assert contents(project) == contents(finished)


@pytest.mark.parametrize(
    ("name", "keep"),
    [
        ("spectra/digits/relu/depth2.h5", 0.5),
        ("training/digits/depth2/seed1.h5", 0),
        ("datasets/digits.h5", 0.99),
        ("fig2.png", 0.5),
    ],
)
def test_a_truncated_file_is_named_and_made_again_without_it(finished, project, name, keep):
    """With the date it had: that a crash of the machine or a full quota left it so."""
    path = project / "results" / name
    date, content = path.stat().st_mtime, path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    os.utime(path, (date, date))
    if path.suffix == ".h5":  # which Snakemake does not read, but every step that takes it
        with contextlib.chdir(project), pytest.raises(UserError, match="damaged"):
            with read_hdf5(Path("results", name)):
                pass
    path.unlink()
    snakemake(project, f"results/{name}")
    assert contents(project).items() <= contents(finished).items()


def damage(path: Path, chance: random.Random) -> str:
    """Cuts a file or flips some of its bytes, now and then with the date it had; which."""
    before, content = path.stat(), bytearray(path.read_bytes())
    if chance.random() < 0.3:
        size = chance.randrange(len(content))
        words = f"cut to {size} of {len(content)} bytes"
        content = content[:size]
    else:
        places = [chance.randrange(len(content)) for _ in range(chance.choice([1, 1, 8]))]
        words = f"flipped at {places} of {len(content)} bytes"
        for place in places:
            content[place] ^= chance.randrange(1, 256)
    path.write_bytes(content)
    if chance.random() < 0.5:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return f"{path.name} {words}"


def read_again(project: Path, path: str, chance: random.Random) -> str:
    """Deletes all between a result and an artefact that needs it, which is returned: a run for it
    would read the result."""
    with contextlib.chdir(project):
        dag = dag_of(project)
        [mine] = [one for one in dag.default() if path in one.outputs]
        users = [
            name
            for name, spec in SPECS.items()
            if (spec.default if THOROUGH else name in MADE)
            and name not in ("claims", "costs")  # which need almost all
            and mine in dag.upstream(Job(name))
        ]
        artefact = Job(chance.choice(users or [mine.artefact or "claims"]))
        for one in dag.upstream(artefact):
            if one != mine and mine in dag.upstream(one):
                for output in one.outputs:
                    Path(output).unlink(missing_ok=True)
        return artefact.outputs[0]


def test_a_damaged_result_is_rebuilt_or_named_and_changes_no_artefact(undisturbed, tmp_path):
    """HDF5, CSV and provenance, cut or flipped anywhere; then the run reads it."""
    project = shutil.copytree(undisturbed, tmp_path / "a project", symlinks=True)
    expected = contents(undisturbed)
    chance = random.Random(3)
    outcomes, tried, wrong = Counter(), Counter(), []
    for _ in range(DAMAGES):
        suffix = chance.choice([".h5", ".h5", ".h5", ".csv", ".json"])
        files = [
            path
            for path in sorted((project / "results").rglob(f"*{suffix}"))
            if path.stem != "costs" and not {"logs", "benchmarks"} & set(path.parts)
        ]
        kind = chance.choice(
            sorted({path.parent.parts[len(project.parts) + 1 :][:1] for path in files})
        )
        path = chance.choice(
            [path for path in files if path.parent.parts[len(project.parts) + 1 :][:1] == kind]
        )
        target = read_again(project, path.relative_to(project).as_posix(), chance)
        whole = path.read_bytes()
        what = damage(path, chance)
        damaged = path.read_bytes()
        done = snakemake(project, target, check=False)
        output = done.stdout + done.stderr
        said = f"{path.relative_to(project)}: damaged" in output
        if "Traceback" in output or (done.returncode and not said):
            wrong.append(f"{what}: {output}")
        if done.returncode:
            path.unlink()
            snakemake(project, target)
            outcomes["named"] += 1
        elif path.read_bytes() != damaged:
            outcomes["rebuilt"] += 1
        elif suffix == ".json" and json.loads(damaged) == json.loads(whole):
            outcomes["of no meaning"] += 1  # one space for another
        else:
            wrong.append(f"{what}: not noticed")
        tried[suffix] += 1
        now = contents(project)
        wrong += [f"{what}: {name}" for name in expected if now.get(name) != expected[name]]
        wrong += [f"{what}: {words}" for words in left(project)]
        print(f"{tried.total()} damaged: {what}, exit status {done.returncode}", flush=True)
    print(f"\n{DAMAGES} damaged files {dict(tried)}: {dict(outcomes)}, {len(wrong)} wrong")
    assert wrong == []
    if THOROUGH:
        snakemake(project, "all")
        assert contents(project) == expected


DIGITS = SMALL["datasets"]["digits"]
IN_TURN = {
    "width": {"width": 16},
    "depths": {"depths": [0, 1, 2]},
    "seeds": {"seeds": [1, 5]},
    "block": {"datasets": {**SMALL["datasets"], "digits": {**DIGITS, "block": 24}}},
    "activations": {"activations": ["relu"]},
    "a data set": {"datasets": {**SMALL["datasets"], "digits": {**DIGITS, "seed": 7}}},
    "training": {"training": {**SMALL["training"], "loss": "square"}},
    "as at first": {},
}
WANTED = ["fig2", "fig3", "fig_width", "fig_architectures", "fig_descent", "fig_speed"]


def test_configs_in_turn_in_one_folder_each_give_what_a_fresh_one_does(finished, project, tmp_path):
    if not CONFIGS_IN_TURN:
        pytest.skip("takes minutes: pytest --thorough tests/test_faults.py")
    targets = [f"results/{name}.pdf" for name in WANTED]
    different = []
    for name, change in list(IN_TURN.items())[-CONFIGS_IN_TURN:]:
        config = {**SMALL, **change}
        write_config(project, config)
        snakemake(project, *targets)
        fresh = finished
        if change:
            fresh = copy_of_the_project(tmp_path / f"fresh {name}")
            write_config(fresh, config)
            snakemake(fresh, *targets)
        print(f"config in turn: {name}", flush=True)
        made = contents(project)
        different += [
            f"{path} after {name}"
            for path, content in contents(fresh).items()
            if made.get(path) != content
        ]
        assert planned(project, *targets) == {}
    print(f"\n{CONFIGS_IN_TURN} configs in turn, {len(different)} differences")
    assert different == []
