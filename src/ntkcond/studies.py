"""Studies: results of paper scale, kept in git with what their jobs left.

    python -m ntkcond.studies                    of each kept artefact, whether it is up to date
    python -m ntkcond.studies --write            the same, into the pages that show them
    python -m ntkcond.studies predict full_size  what the rest will take: time, memory, disk
    python -m ntkcond.studies keep full_size     keeps what was made so far

A study is a folder of studies/: its config.yaml, the artefacts that it names in `keep`, and
jobs.tar.xz with the small files of its jobs (all but samples and kernels, without eigenvectors
and lists of all eigenvalues), their logs and Snakemake's records of their time. studies/Snakefile
lays in runs/NAME what is up to date of these, and Snakemake makes the rest. Exit status: 3 if an
artefact is out of date."""

import argparse
import copy
import csv
import fcntl
import functools
import io
import json
import lzma
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from ntkcond.jobs.kinds import require_known
from ntkcond.jobs.registry import STEPS
from ntkcond.plan import config, missing, run_lock
from ntkcond.plan.freshness import Difference, Freshness
from ntkcond.plan.graph import Graph, Job
from ntkcond.plan.question import run
from ntkcond.predict import report
from ntkcond.run.digests import code_digests, sha256_of
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5, replacing, write_hdf5
from ntkcond.run.record import digest, files_of, read, record

FOLDER, RUNS = Path("studies"), Path("runs")
ARCHIVE = "jobs.tar.xz"
SAMPLES = "dataset"  # the option of spot checks for them
LARGE = ("eigenvalues", "nonzero_eigenvalues", "smallest_eigenvector")  # which no artefact reads
FRESH, EQUAL, OUT_OF_DATE, MISSING = (
    "fresh", "of older code, spot-checked equal", "out of date", "not made yet",
)  # fmt: skip
# Of each option of spot checks, what its rows may say that they are of.
COMPARED = {"spectra": {"kernel"}, "angles": {"pair", "search"}, "training": {"epoch"}}
SHOWN, LONGEST = 3, 120  # lines and characters in the table
BEGIN, END = "<!-- states: python -m ntkcond.studies --write -->", "<!-- end of states -->"
# What follows a comment in its line is no Markdown: each has a line of its own.
STATE = re.compile(r"(<!-- state: (\w+) (\w+) -->\n)(.*?)(\n<!-- end of state -->)", re.S)


class Study:
    """studies/NAME, seen from the project's folder. given: settings of the command line."""

    def __init__(self, name: str, given: Mapping | None = None) -> None:
        self.name, self.given = name, given or {}
        self.folder, self.run = FOLDER / name, RUNS / name
        self.unpacked = RUNS / "kept" / name  # what is kept, as it lay in `run`

    @functools.cached_property
    def settings(self) -> dict:
        """The study's settings, over which those given are laid; not complete."""
        from snakemake.utils import update_config

        path = self.folder / "config.yaml"
        settings = config.from_yaml(path.read_bytes(), str(path))
        if not isinstance(settings, dict) or not settings.get("keep"):
            raise UserError(f"{path}: names no artefacts to keep, such as keep: [fig2, claims]")
        update_config(settings, dict(self.given))
        return settings

    @property
    def keeps(self) -> list[str]:
        """Names of artefacts."""
        return self.settings["keep"]

    def graph(self, folder: Path) -> Graph:
        """The graph of its jobs, with results in this folder."""
        settings = copy.deepcopy(self.settings)
        config.complete(settings, from_default=True)
        return Graph(config.check(settings, Path(), scan=False), Path(), folder=folder)

    def _without_missing(self, graph: Graph) -> Graph:
        """Without data sets that are not here now, unless a kept figure has them."""
        left_out = missing.left_out(graph)
        for artefact in self.keeps:
            if made_with := read(graph.at(f"results/{artefact}.csv")):
                lacked = made_with["settings"].get("about", {}).get("missing", [])
                tables = {job.artefact for job in graph.upstream(graph.job(artefact))} - {""}
                for figure in left_out.keys() & set(chain(*map(graph.lists, tables))):
                    left_out[figure] = [name for name in left_out[figure] if name in lacked]
        return graph.without(left_out)

    @functools.cached_property
    def freshness(self) -> Freshness:
        """The freshness of what is kept."""
        self.unpack()
        return Freshness(self._without_missing(self.graph(self.unpacked)))

    @functools.cached_property
    def jobs(self) -> list[Job]:
        """The jobs of all artefacts that are kept."""
        return self.freshness.survey(*self._last(self.freshness.graph))

    def _last(self, graph: Graph) -> list[Job]:
        """The last job of each artefact."""
        return [kept_jobs(graph, name)[-1] for name in self.keeps]

    @functools.cached_property
    def files(self) -> list[str]:
        """The files of its artefacts, with their provenance; by their names in the study's
        folder."""
        graph = self.graph(self.run)
        outputs = (job.outputs for name in self.keeps for job in kept_jobs(graph, name))
        return [path.removeprefix("results/") for paths in outputs for path in paths]

    def unpack(self) -> None:
        """Into `unpacked`, if anything kept has changed since."""
        kept = sorted(path for path in self.folder.rglob("*") if path.is_file())
        state = [(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in kept]
        stamp = self.unpacked / "stamp.json"
        text = json.dumps(state)
        if stamp.is_file() and stamp.read_text("utf-8") == text:
            return
        shutil.rmtree(self.unpacked, ignore_errors=True)
        (self.unpacked / "results").mkdir(parents=True)
        archive = self.folder / ARCHIVE
        if archive.is_file():
            try:
                content = lzma.decompress(archive.read_bytes())  # with its checksums
                with tarfile.open(fileobj=io.BytesIO(content)) as tar:
                    tar.extractall(self.unpacked, filter="data")
            except (tarfile.TarError, lzma.LZMAError, OSError) as error:
                raise UserError(f"{archive}: damaged ({error}). git checkout {archive}") from None
        for name in self.files:
            if (self.folder / name).is_file():
                place = self.unpacked / "results" / name
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.folder / name, place)
        stamp.write_text(text, "utf-8")

    def fresh(self, job: Job) -> bool:
        """Whether what is kept of a job is all there and up to date."""
        graph = self.freshness.graph
        there = all(graph.at(path).is_file() for path in job.outputs)
        return there and not self.freshness.differences(job)

    def lay_out(self) -> None:
        """Lays what is up to date where its job would put it, unless something is there; and takes
        away what lies there from here and is up to date no more. By its date it is no newer than
        what is kept, so that nothing is kept again, and no older than samples, so that no job runs
        again."""
        note = self.run / "laid_out.json"
        laid = json.loads(note.read_text("utf-8")) if note.is_file() else {}
        kept = (path.stat().st_mtime_ns for path in map(Path, self.kept) if path.is_file())
        made = (path.stat().st_mtime_ns for path in self.run.glob("results/datasets/*.h5"))
        samples = max(made, default=0)
        date = max(min(kept, default=0), samples)
        for job in self.jobs:
            fresh, places = self.fresh(job), [self.run / path for path in job.outputs]
            there = [place.is_file() and sha256_of(place) for place in places]
            if all(there) and there == [laid.get(path) for path in job.outputs]:
                if not fresh:
                    for place in (*places, *(self.run / path for path in _times(job))):
                        place.unlink(missing_ok=True)
            elif fresh and not any(there):
                for path in (*job.outputs, *_times(job)):
                    if self._lay(path, date):
                        laid[path] = sha256_of(self.run / path)
            elif not _is_small(job) and not any(there):  # samples, kernels: for the table of costs
                for path in _times(job):
                    if not (self.run / path).is_file() and self._lay(path, date):
                        laid[path] = sha256_of(self.run / path)
        for path, laid_as in laid.items():
            place = self.run / path
            older = place.is_file() and place.stat().st_mtime_ns < samples
            if older and sha256_of(place) == laid_as:
                os.utime(place, ns=(samples, samples))
        if laid or note.is_file():
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(json.dumps(laid, indent=1), "utf-8")

    def _lay(self, path: str, date: int) -> bool:
        """Copies a file that is kept into `run`, if there is one."""
        source, place = self.unpacked / path, self.run / path
        if not source.is_file():
            return False
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place)
        os.utime(place, ns=(date, date))
        return True

    @property
    def samples(self) -> list[str]:
        """Files of samples that jobs need which are still to run."""
        to_run = (job for job in self.jobs if not self.fresh(job))
        takes = {path for job in to_run for path in chain(*job.inputs.values())}
        return [str(self.run / p) for p in sorted(takes) if p.startswith("results/datasets/")]

    @property
    def made(self) -> list[str]:
        """Its artefacts' files in `run`."""
        return [str(self.run / "results" / name) for name in self.files]

    @property
    def kept(self) -> list[str]:
        """All that is kept."""
        return [str(self.folder / name) for name in (*self.files, ARCHIVE)]

    @property
    def job_files(self) -> list[str]:
        """The small files of all its jobs, in `run`."""
        return [str(self.run / path) for job in self.jobs if _is_small(job) for path in job.outputs]

    @functools.cached_property
    def to_check(self) -> dict[str, list[str]]:
        """For each data set of which anything is kept that spot checks compare, as options."""
        graph, options = self.freshness.graph, dict[str, dict[str, list[str]]]()
        for job in self.jobs:
            place = graph.at(job.outputs[0])
            if _is_compared(job) and place.is_file():
                of_set = options.setdefault(job.wildcards["dataset"], {})
                of_set.setdefault(f"--{_option(job)}", []).append(str(place))
        return {
            name: [word for option, paths in of_set.items() for word in (option, *paths)]
            for name, of_set in options.items()
        }

    def kept_files(self, wildcards) -> list[str]:
        """`to_check` of a data set, for the rule."""
        return self.to_check[wildcards.dataset]

    def code(self, wildcards) -> list[str]:
        """What a spot check of a data set is made with: each module with its digest, versions of
        packages, and what is kept."""
        made_with = self._check_of(wildcards.dataset)
        parts = made_with["code"], made_with["versions"], *made_with["inputs"].values()
        return [f"{name} {value}" for part in parts for name, value in part.items()]

    def _check_of(self, dataset: str) -> dict:
        """The record of a spot check of all that is kept of the data set, by today's code."""
        freshness = self.freshness
        samples = STEPS["dataset"].path.format(dataset=dataset)
        inputs = {"dataset": {samples: freshness.digest_of(samples)}}
        for job in self.jobs:
            path = job.outputs[0]
            if job.wildcards.get("dataset") == dataset and _is_compared(job):
                kept = freshness.record(path)
                inputs.setdefault(_option(job), {})[path] = digest(kept) if kept else ""
        return record(["ntkcond.steps.spot_check"], {}, inputs)

    def checked(self, dataset: str) -> bool:
        """Whether a spot check that is kept is of the very files that are kept, by today's code,
        packages and samples, compares something of each kind, and finds no difference."""
        place = self.folder / f"checks/{dataset}.csv"
        made_with = read(place)
        if not made_with or files_of(place).get(place.name) != sha256_of(place):
            return False
        today = self._check_of(dataset)
        if any(made_with[key] != today[key] for key in ("code", "versions", "format", "inputs")):
            return False
        with place.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        compared = {row["what"] for row in rows}
        each = all(COMPARED[option] & compared for option in today["inputs"] if option in COMPARED)
        return each and all(row["agrees"] == "True" for row in rows)

    def keep(self, whole: bool) -> None:
        """Copies checks and artefacts from `run`; adds to the archive what its jobs left so far:
        only what is up to date there replaces what is kept. Raises UserError for an artefact that
        lacks data sets which the kept one has; if `whole`, also where one is not kept at the end.
        """
        self.unpack()
        graphs = [self.graph(self.run)]
        if left_out := missing.left_out(graphs[0]):
            # of data sets that are not here now, what is kept stays
            graphs.append(graphs[0].without(left_out))
        made = {
            path: path.relative_to(self.run)
            for path in self.run.glob("checks/**/*.*")
            if path.suffix in (".csv", ".json")
        }
        members: dict[str, bytes] = {}
        jobs = {
            job.outputs: (job, freshness)
            for freshness in map(Freshness, graphs)
            for job in freshness.survey(*self._last(freshness.graph))
        }
        for job, freshness in jobs.values():
            places = [self.unpacked] if freshness.differences(job) else [self.run, self.unpacked]
            archived = job.outputs if _is_small(job) else job.outputs[-1:] if job.artefact else ()
            if Path(job.outputs[0]).name in self.files:
                archived = ()
                for path in job.outputs if places[0] == self.run else ():
                    if (self.run / path).is_file():
                        self._require_no_less(job)
                        made[self.run / path] = Path(path).relative_to("results")
            for path in (*archived, *_times(job)):
                there = [place / path for place in places if (place / path).is_file()]
                if there:
                    members[path] = _stripped(there[0])
        for path, kept in made.items():
            with replacing(self.folder / kept) as temporary:
                shutil.copyfile(path, temporary)
        with (
            replacing(self.folder / ARCHIVE) as temporary,
            tarfile.open(temporary, "w:xz", preset=9) as tar,
        ):
            for path, content in sorted(members.items()):
                entry = tarfile.TarInfo(path)  # without dates and owners: the same bytes again
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
        results = sum(path.endswith(".h5") for path in members)
        print(f"{self.folder}: {results} files of jobs in {ARCHIVE}")
        if whole and any(not (self.folder / name).is_file() for name in self.files):
            freshness = Freshness(graphs[-1])
            reasons = iter(freshness.reasons(*self._last(freshness.graph)))
            raise UserError(
                f"{self.run}: not all was kept, since some is out of date:"
                f" {next(reasons, 'a file is missing')}. Add --forcerun and its rule"
            )

    def _require_no_less(self, job: Job) -> None:
        """Raises UserError if an artefact lacks data sets which the kept one has."""
        missing_of = [
            set(made_with["settings"].get("about", {}).get("missing", []))
            for place in (self.run, self.unpacked)
            if (made_with := read(place / job.outputs[0]))
        ]
        if less := missing_of[0].difference(*missing_of[1:]) if len(missing_of) > 1 else set():
            raise UserError(
                f"{self.run / job.outputs[0]} lacks {', '.join(sorted(less))}, which what is kept"
                " has. Give the folder of its raw files: make study DATA=/a/folder. Nothing was"
                " kept"
            )

    def predict(self) -> None:
        """Prints what it will take to make what is missing or out of date."""
        if run_lock.is_free():
            self.lay_out()
        graph = self.graph(self.run)
        left_out = missing.left_out(graph)
        freshness = Freshness(graph.without(left_out))
        jobs = freshness.running(*self._last(freshness.graph))
        if not jobs:
            print(f"{self.name}: all is kept and up to date")
            return
        print(f"{self.name}:")
        report(freshness.graph, jobs)
        if left_out:
            print(missing.in_words(graph, left_out))

    def state(self, artefact: str) -> tuple[str, list[str]]:
        """The state of a kept artefact, and why."""
        freshness = self.freshness
        *_, last = jobs = kept_jobs(freshness.graph, artefact)
        files = [path for job in jobs for path in job.outputs]
        gone = [Path(path).name for path in files if not freshness.graph.at(path).is_file()]
        if len(gone) == len(files):
            return MISSING, []
        reasons = freshness.reasons(last) + [f"{name} is missing" for name in gone]
        if not reasons:
            return FRESH, []
        upstream = freshness.survey(last)
        harmless = all(
            _is_rebuilt(freshness, one) or _is_checked(job, one)
            for job in upstream
            for one in freshness.differences(job)
        )
        datasets = {
            job.wildcards["dataset"]
            for job in upstream
            if _is_compared(job) or (_option(job) == SAMPLES and freshness.differences(job))
        }
        equal = harmless and not gone and datasets and all(map(self.checked, datasets))
        return (EQUAL if equal else OUT_OF_DATE), reasons


def kept_jobs(graph: Graph, artefact: str) -> list[Job]:
    """The jobs of an artefact whose files git keeps: of claims the table, which the site shows."""
    return [job for job in graph.artefact(artefact) if not (job.draws and artefact == "claims")]


def _is_rebuilt(freshness: Freshness, difference: Difference) -> bool:
    """Whether what differs is an input, the same as before, whose maker differs."""
    changed = difference.kind == "inputs" and difference.words.endswith(" changed")
    maker = freshness.graph.maker(difference.input) if changed else None
    return maker is not None and bool(freshness.differences(maker))


def _is_checked(job: Job, difference: Difference) -> bool:
    """Whether what differs is at work in spot checks too: the code of samples, versions of
    packages, modules that spot checks run."""
    option = _option(job)
    if option is None or option == SAMPLES:
        return option == SAMPLES and difference.kind in ("code", "versions")
    module = difference.words.split()[1]  # code ntk.rank changed
    known = code_digests("ntkcond.steps.spot_check")
    return difference.kind == "versions" or (difference.kind == "code" and module in known)


def all_names() -> list[str]:
    """The studies of the project. Raises UserError in another folder."""
    if not FOLDER.is_dir():
        raise UserError(f"{Path.cwd()}: has no folder studies. Run this in the project's folder")
    return sorted(path.parent.name for path in FOLDER.glob("*/config.yaml"))


def _is_small(job: Job) -> bool:
    """Whether what the job makes is kept whole."""
    return job.rule in STEPS and STEPS[job.rule].file_bytes is None


def _option(job: Job) -> str | None:
    """The option of spot checks by which they take what the job made."""
    return STEPS[job.rule].spot_check if job.rule in STEPS else None


def _is_compared(job: Job) -> bool:
    """Whether spot checks compare the file that is kept of the job."""
    return _is_small(job) and _option(job) not in (None, SAMPLES)


def _times(job: Job) -> list[str]:
    """Snakemake's record of a job's time, and its log; of MPI ranks they have the name of the rule
    that makes the same file without."""
    name = job.rule
    if name in STEPS and STEPS[name].mpi:
        name = next(r for r, step in STEPS.items() if step.path == STEPS[name].path and r != name)
    if not job.artefact:
        name += "/" + "/".join(Path(job.outputs[0]).with_suffix("").parts[2:])
    return [f"results/benchmarks/{name}.tsv", f"results/logs/{name}.log"]


def _stripped(path: Path) -> bytes:
    """A file's content without LARGE."""
    if path.suffix != ".h5":
        return path.read_bytes()
    with read_hdf5(path) as source:
        if not any(name in source for name in LARGE):
            return path.read_bytes()
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, path.name)
            with write_hdf5(place) as file:
                file.attrs.update(source.attrs)
                for name in source:
                    if name not in LARGE:
                        source.copy(name, file)
            return place.read_bytes()


def table(studies: Sequence[Study]) -> tuple[dict[tuple[str, str], str], list[str]]:
    """The state of each artefact of each study, and lines of a Markdown table that says why."""
    rows, lines = {}, ["| study | artefact | state | why |", "|---|---|---|---|"]
    for study in studies:
        for artefact in study.keeps:
            state, reasons = study.state(artefact)
            rows[study.name, artefact] = state
            more = [f"and {len(reasons) - SHOWN} more"] if len(reasons) > SHOWN else []
            why = "<br>".join([*map(_short, reasons[:SHOWN]), *more])
            lines.append(f"| {study.name} | {artefact} | {state} | {why} |")
    return rows, lines


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rpartition(';')[0]}; …"


def main(arguments: argparse.Namespace) -> bool:
    """Whether no state that it shows is out of date."""
    if arguments.command not in ("states", "keep", "predict"):
        arguments.command, arguments.names = "states", [arguments.command, *arguments.names]
    if arguments.write and (arguments.names or arguments.command != "states"):
        raise UserError("--write: writes the states of all studies. Give it alone")
    for name in arguments.names:
        require_known(name, all_names(), f"{FOLDER / name}: no such study.")
    studies = [Study(name) for name in arguments.names or all_names()]
    RUNS.joinpath("kept").mkdir(parents=True, exist_ok=True)
    with RUNS.joinpath("kept", "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # rules may keep studies at the same time
        if arguments.command == "states":
            return show(studies, arguments.write)
        for study in studies:
            study.predict() if arguments.command == "predict" else study.keep(arguments.whole)
    return True


def show(studies: Sequence[Study], write: bool) -> bool:
    """Prints the states, or also writes them into pages; whether nothing is out of date."""
    rows, lines = table(studies)
    print("\n".join(lines))
    if write:
        page = FOLDER / "README.md"
        before, _, rest = page.read_text("utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        page.write_text("\n".join([f"{before}{BEGIN}", *lines, f"{END}{after}"]), "utf-8")
        for page in (Path("README.md"), *Path("docs").glob("*.md")):
            page.write_text(with_states(page, rows), "utf-8")
    return OUT_OF_DATE not in rows.values()


def with_states(page: Path, rows: Mapping[tuple[str, str], str]) -> str:
    """A page with the state of each kept figure that it shows, unless that is fresh."""

    place = os.path.relpath(FOLDER / "README.md", page.parent)

    def stated(match: re.Match) -> str:
        state = rows.get((match[2], match[3]))
        said = f"*This figure is {state}: [what that means]({place}#what-is-up-to-date).*"
        return f"{match[1]}{'' if state == FRESH else said}{match[5]}" if state else match[0]

    return STATE.sub(stated, page.read_text("utf-8"))


if __name__ == "__main__":
    options = argparse.ArgumentParser(
        prog="python -m ntkcond.studies", description=(__doc__ or "").splitlines()[0]
    )
    options.add_argument("command", nargs="?", default="states", help="states, keep or predict")
    options.add_argument("names", nargs="*", help="studies; all, if none is named")
    options.add_argument("--whole", action="store_true", help="keep all, or end with an error")
    options.add_argument(
        "--write",
        action="store_true",
        help="the states into studies/README.md and the pages that show kept figures",
    )
    run(main, options, otherwise=3)
