"""Studies: results of paper scale, kept in git.

    python -m ntkcond.studies                  of each kept artefact, whether it is up to date
    python -m ntkcond.studies --write          the same, into studies/README.md
    python -m ntkcond.studies lay small        puts what is kept, and up to date, into runs/small
    python -m ntkcond.studies keep small       keeps what is finished in runs/small
    python -m ntkcond.studies check small      recomputes a random sample of what is kept

A study is a folder of studies/: its config.yaml, the artefacts that it names in `keep`, the tables
that these are made of, and provenance.json: the record of each and of all jobs before it. Snakemake
makes it: --configfile studies/small/config.yaml --directory runs/small. Of a study under way the
small files of finished jobs are kept, too, in jobs/. Exit status: 3 if an artefact is out of date,
or if `lay` needs samples first."""

import argparse
import gzip
import hashlib
import itertools
import json
import os
import shutil
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import pandas as pd

from ntkcond.artefacts import output
from ntkcond.pipeline import config as configs
from ntkcond.pipeline.jobs import Jobs
from ntkcond.pipeline.last_words import some
from ntkcond.pipeline.workflow import kept_files
from ntkcond.run.errors import UserError, run
from ntkcond.run.files import csv_of, read_hdf5, replacing, write_hdf5, write_text
from ntkcond.run.record import (
    CODE,
    CONTENT,
    digest,
    inputs_of,
    is_result,
    modules_of,
    read,
    short_digest,
    sidecar,
    upstream,
)
from ntkcond.settings.kinds import require_known

FOLDER, RUNS = Path("studies"), Path("runs")
LARGE = ("eigenvalues", "nonzero_eigenvalues", "smallest_eigenvector")  # which no artefact reads
COSTS = "costs.csv"
COMPRESSED = 50_000  # bytes from which on a table that no reader asks for is kept as .csv.gz
READ_UP_TO = 10**6  # bytes of others
FRESH, EQUAL, OUT_OF_DATE, MISSING = (
    "fresh", "of older code, compared equal", "out of date", "not made yet",
)  # fmt: skip
SHOWN = 3  # reasons in the table
RECORD = ("rule", "wildcards", "settings", "inputs", "code", "versions", "format", "order")
BEGIN, END = "<!-- states: python -m ntkcond.studies --write -->", "<!-- end of states -->"


class Study:
    """studies/NAME, seen from the project's folder."""

    def __init__(self, name: str) -> None:
        self.name, self.folder = name, FOLDER / name
        self.results = RUNS / name / "results"

    @cached_property
    def jobs(self) -> Jobs:
        """The jobs of its config."""
        path = self.folder / "config.yaml"
        settings = configs.from_yaml(path.read_bytes(), str(path))
        if not isinstance(settings, dict) or not settings.get("keep"):
            raise UserError(f"{path}: names no artefacts to keep, such as keep: [fig2, claims]")
        configs.complete(settings, from_default=True)
        config = configs.check(settings, Path(), scan=False)
        if "costs" in config.keep:
            raise UserError(f"{path}: keep has costs, which are kept of every study. Leave it out")
        return Jobs(config, Path())

    @property
    def keeps(self) -> Sequence[str]:
        """Names of artefacts."""
        return self.jobs.config.keep

    @cached_property
    def tables(self) -> list[str]:
        """The artefacts whose tables are kept, inputs first."""
        return self.jobs.upstream(*self.keeps)

    @cached_property
    def provenance(self) -> dict:
        """records: of all jobs, by their paths; made_with: code, versions and format of each, by a
        digest; files: the sha256 of each file that is kept."""
        path = self.folder / "provenance.json"
        if not path.is_file():
            return {"files": {}, "made_with": {}, "records": {}}
        try:
            return json.loads(path.read_text("utf-8"))
        except ValueError as error:
            raise UserError(f"{path}: is not JSON ({error}). Restore it with git") from None

    def record(self, path: str) -> dict:
        """The record that is kept of a result. Raises UserError if none is."""
        try:
            known = self.provenance["records"][path]
            whole = {**known, **self.provenance["made_with"][known["made_with"]]}
        except KeyError:
            place = self.folder / "provenance.json"
            raise UserError(f"{place}: has no record of {path}. Restore it with git") from None
        return {key: whole[key] for key in RECORD if key in whole}

    def content(self, name: str) -> bytes | None:
        """What is kept of a file of results/; None if nothing is; of a damaged one nothing."""
        place = self.folder / name
        if place.is_file():
            return place.read_bytes()
        packed = place.with_name(f"{place.name}.gz")
        try:
            return gzip.decompress(packed.read_bytes()) if packed.is_file() else None
        except (OSError, EOFError, zlib.error):
            return b""

    # States.

    def state(self, artefact: str) -> tuple[str, list[str]]:
        """The state of a kept artefact, and why."""
        names = [path.removeprefix("results/") for path in kept_files(artefact)]
        known = self.provenance["files"]
        if not any(name in known or self.content(name) is not None for name in names):
            return MISSING, []
        tables = [f"{table}.csv" for table in self.jobs.upstream(artefact)]
        reasons = list(self._edited(dict.fromkeys([*names, *tables, COSTS])))
        outputs = self._outputs(artefact)
        reasons += [f"{name}: its record is missing" for name in sorted(self._unknown(*outputs))]
        reasons += [f"{name}: its record is of other inputs" for name in self._unlike(*outputs)]
        changes = list(self._changes(*outputs))[::-1]
        groups = Counter((rule, some(words)) for rule, words in changes)
        reasons += [f"{r}{f' × {n}' if n > 1 else ''}: {words}" for (r, words), n in groups.items()]
        if not reasons:
            return FRESH, []
        equal = len(reasons) == len(groups) and self._compared_equal(changes)
        return (EQUAL if equal else OUT_OF_DATE), reasons

    def _edited(self, names: Iterable[str]) -> Iterator[str]:
        """Files whose content is not what was kept, and in which way."""
        for name in names:
            known, content = self.provenance["files"].get(name), self.content(name)
            if content is None:
                yield f"{name} is missing"
            elif known != hashlib.sha256(content).hexdigest():
                yield f"{name} was changed" if known else f"{name} has no provenance"

    def _outputs(self, artefact: str) -> list[str]:
        """The names of its records: of its table, and of what is drawn."""
        drawn = [] if artefact == "claims" else [f"results/{artefact}"]
        return [f"results/{artefact}.csv", *drawn]

    def _unknown(self, *paths: str) -> set[str]:
        """Results before these, or of these, of which no record is kept."""
        inputs = (inputs_of(made_with) for made_with in self._upstream(*paths).values())
        names = {name for name in (*paths, *itertools.chain(*inputs)) if is_result(Path(name))}
        return names - self.provenance["records"].keys()

    def _unlike(self, *paths: str) -> Iterator[str]:
        """Results before these, or of these, that were made of other inputs than are kept."""
        sums = {f"results/{name}": s[:32] for name, s in self.provenance["files"].items()}
        for path, made_with in self._upstream(*paths).items():
            entries = itertools.chain(*(one.values() for one in made_with["inputs"].values()))
            for name, entry in zip(inputs_of(made_with), entries, strict=True):
                record, _, content = entry.partition(CONTENT)
                is_kept = name in self.provenance["records"]
                if is_kept and digest(self.record(name)) != record:
                    yield path
                    break
                if content and sums.get(name, content) != content:
                    yield path
                    break

    def _changes(self, *paths: str) -> Iterator[tuple[str, list[str]]]:
        """For each job that made these or is upstream and differs from today's, its rule and what
        differs."""
        for made_with in self._upstream(*paths).values():
            if words := self.jobs.changes(made_with):
                yield made_with["rule"], words

    def _is_up_to_date(self, path: str) -> bool:
        """Whether today's jobs would make the same, or a check found that they do."""
        changes = list(self._changes(path))
        if self._unknown(path) or any(self._unlike(path)):
            return False
        return not changes or self._compared_equal(changes)

    def _upstream(self, *paths: str) -> dict[str, dict]:
        """The records that are kept of these and of all before them."""
        waiting, found = list(paths), dict[str, dict]()
        while waiting:
            path = waiting.pop()
            if path not in found and path in self.provenance["records"]:
                found[path] = self.record(path)
                waiting += inputs_of(found[path])
        return found

    def _compared_equal(self, changes: Sequence[tuple[str, list[str]]]) -> bool:
        """Whether all that differs is code or packages of jobs whose numbers a check compared, by
        today's code, and found equal."""
        place = self.folder / "check.json"
        if not place.is_file():
            return False
        done = json.loads(place.read_text("utf-8"))
        rules = {rule for rule, words in changes}
        harmless = all(
            "=" not in word and "inputs" not in word for _, words in changes for word in words
        )
        today = {rule: code_of(rule) for rule in done["code"]}
        checked = {*done["code"], "kernel"}
        same = all(done["tables"].get(n) == s for n, s in self._sums().items())
        return harmless and same and rules <= checked and today == done["code"] and done["agree"]

    def _sums(self) -> dict[str, str]:
        """sha256 of the tables that a check reads."""
        from ntkcond.checks import TABLES

        contents = {name: self.content(f"{name}.csv") for name in TABLES}
        return {n: hashlib.sha256(c).hexdigest() for n, c in contents.items() if c is not None}

    # What the commands do.

    def lay(self) -> bool:
        """Puts what is kept and up to date where its rule would, unless something is there: job
        files, tables and figures, all with one date, that of now: samples are older. Nothing is
        put, and False returned, while samples of job files are missing."""
        found: dict[Path, bytes] = {}
        for path in self.folder.glob("jobs/**/*.h5"):
            made_with = read(path)
            if made_with and not self.jobs.changes(made_with):
                dataset = self.results / f"datasets/{made_with['wildcards']['dataset']}.h5"
                if not dataset.exists():
                    print(f"{self.folder}: needs its samples first: {snakemake(self.name)} samples")
                    return False
                found[self.results / path.relative_to(self.folder / "jobs")] = path.read_bytes()
        for name, known in self.provenance["files"].items():
            content, recorded = self.content(name), _recorded_as(name)
            if content is not None and hashlib.sha256(content).hexdigest() != known:
                raise UserError(
                    f"{self.folder / name}: was changed after it was kept. Restore it with git, or"
                    " remove it: it is made again"
                )
            if content is not None and name != COSTS and self._is_up_to_date(recorded):
                record = self.record(recorded)
                found[self.results / name] = content
                files = {n: s for n, s in self.provenance["files"].items()
                         if _recorded_as(n) == _recorded_as(name)}  # fmt: skip
                about = json.dumps({"record": record, "files": files}, indent=1, ensure_ascii=False)
                found[RUNS / self.name / sidecar(Path("results", name))] = f"{about}\n".encode()
        now = time.time_ns()
        for place, content in found.items():
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
                os.utime(place, ns=(now, now))
        return True

    def keep(self) -> None:
        """Copies the artefacts and tables that are finished and up to date in `runs`; of a study
        that lacks some, also the small files of its jobs. Raises UserError for what is stale."""
        records: dict[str, dict] = {}
        for artefact in self.tables:
            for path in (
                f"results/{artefact}.csv",
                f"results/{artefact}.png",
                f"results/{artefact}.md",
            ):
                if (RUNS / self.name / path).is_file():
                    records |= upstream(path, RUNS / self.name)
        for path, made_with in list(records.items()):
            kept = self._upstream(path)
            if kept.get(path) == made_with:  # laid: its jobs' files are not there
                records |= {one: kept[one] for one in kept if one not in records}
        if not records and not any(self._job_files()):
            raise UserError(f"{self.results}: has nothing that is finished. Nothing was kept")
        for path, made_with in records.items():
            words = self.jobs.changes(made_with)
            is_kept = path in self.provenance["records"] and self.record(path) == made_with
            if words and not (is_kept and self._compared_equal([(made_with["rule"], words)])):
                raise UserError(
                    f"{RUNS / self.name / path}: is out of date ({some(words)}). Nothing was kept"
                )
        files, before = dict[str, str](), dict[str, dict]()
        wanted = [
            *(f"results/{t}.csv" for t in self.tables),
            *(f for n in self.keeps for f in kept_files(n)),
        ]
        for path in dict.fromkeys(wanted):
            place, name = RUNS / self.name / path, path.removeprefix("results/")
            if place.is_file():
                content = place.read_bytes()
                files[name] = hashlib.sha256(content).hexdigest()
                self._write(name, content)
            elif name in self.provenance["files"]:  # as it was, with its records
                files[name] = self.provenance["files"][name]
                before |= self._upstream(_recorded_as(name))
        done = all(
            path.removeprefix("results/") in files for n in self.keeps for path in kept_files(n)
        )
        records = before | records
        self._write_costs(records)
        if (costs := self.content(COSTS)) is not None:
            files[COSTS] = hashlib.sha256(costs).hexdigest()
        self.write_provenance(files, records)
        shutil.rmtree(self.folder / "jobs", ignore_errors=True)
        jobs = [] if done else list(self._job_files())
        for path in jobs:
            place = self.folder / "jobs" / path.relative_to(self.results)
            place.parent.mkdir(parents=True, exist_ok=True)
            with replacing(place) as temporary:
                _strip(path, temporary)
        print(
            f"{self.folder}: {len(files)} files, {len(jobs)} of jobs"
            + (", complete" if done else "")
        )

    def _write_costs(self, records: dict[str, dict]) -> None:
        """costs.csv: what the jobs in `runs` cost; of a rule and data set of which more jobs were
        measured before, what it said. records: of all jobs that are kept."""
        from ntkcond.artefacts import costs

        place, by = self.folder / COSTS, ["artefact", "rule", "dataset"]
        paths = [sidecar(self.results / f"{artefact}.csv") for artefact in self.keeps]
        found = [costs.costs(path) for path in paths if path.is_file()]
        found += [output.read(place)] if place.is_file() else []
        if found:
            rows = pd.concat(found, ignore_index=True).fillna({"dataset": ""})
            rows = rows[rows.artefact.isin(self.keeps) & (rows.jobs_measured > 0)]
            jobs = {(r["rule"], r["wildcards"].get("dataset", "")) for r in records.values()}
            rows = rows[[job in jobs for job in zip(rows.rule, rows.dataset, strict=True)]]
            most = rows.sort_values("jobs_measured", ascending=False, kind="stable")
            write_text(place, csv_of(most.drop_duplicates(by).sort_index()).decode())

    def write_provenance(self, files: dict[str, str], records: dict[str, dict]) -> None:
        made_with: dict[str, dict] = {}
        short = {}
        for path, record in sorted(records.items()):
            shared = {key: record[key] for key in ("code", "versions", "format")}
            digest = short_digest(shared)
            made_with[digest] = shared
            own = {key: value for key, value in record.items() if key not in shared}
            name = path if path.endswith(".h5") else _recorded_as(path.removeprefix("results/"))
            short[name] = {**own, "made_with": digest}
        self.provenance = {"files": files, "made_with": made_with, "records": short}
        lines = json.dumps(self.provenance, ensure_ascii=False, indent=None).replace("}, ", "},\n ")
        write_text(self.folder / "provenance.json", lines + "\n")

    def _write(self, name: str, content: bytes) -> None:
        place = self.folder / name
        packed = place.with_name(f"{place.name}.gz")
        most = READ_UP_TO if place.stem in self.keeps else COMPRESSED
        large = place.suffix == ".csv" and len(content) > most
        (place if large else packed).unlink(missing_ok=True)
        with replacing(packed if large else place) as temporary:
            temporary.write_bytes(gzip.compress(content, 9, mtime=0) if large else content)

    def _job_files(self) -> Iterator[Path]:
        """The small files of finished jobs that are up to date."""
        for path in sorted(self.results.rglob("*.h5")):
            made_with = read(path) if ".checkpoint" not in path.name else None
            small = made_with and made_with["rule"] not in ("kernel", "dataset", "corpus")
            if small and not self.jobs.changes(made_with):
                yield path

    def check(self) -> None:
        """Recomputes rows of the kept tables, drawn at random, and notes with which code. Raises
        UserError for samples that are not there, and for numbers that disagree."""
        from ntkcond.checks import TABLES, arrays_of, sample

        def samples(name: str) -> dict:
            path = self.results / f"datasets/{name}.h5"
            if not path.exists():
                raise UserError(f"{path}: is missing. First: {snakemake(self.name)} samples")
            made_with = read(path)
            if words := self.jobs.changes(made_with) if made_with else ["no provenance"]:
                again = f"{snakemake(self.name)} samples"
                raise UserError(f"{path}: is out of date ({some(words)}). First: {again}")
            return arrays.setdefault(name, arrays_of(path))

        arrays: dict[str, dict] = {}
        names = [name for name in TABLES if self.content(f"{name}.csv") is not None]
        names = [name for name in names if name in self.tables]
        tables = {name: self.rows(name) for name in names}
        if not tables:
            print(f"{self.folder}: keeps no table of which rows can be recomputed")
            return
        compared = sample(tables, samples)
        wrong = compared[~compared.agrees]
        samples_of = {record["rule"] for record in self.provenance["records"].values()}
        samples_of &= {"dataset", "corpus"}
        code = {rule: code_of(rule) for rule in sorted({*compared.rule, *samples_of})}
        done = {
            "agree": not len(wrong),
            "rows": len(compared),
            "code": code,
            "tables": self._sums(),
        }
        write_text(self.folder / "check.json", json.dumps(done, indent=1) + "\n")
        largest = compared.groupby("table").ratio.max()
        words = (f"{name} {count} (largest difference {largest[name]:.2g} of its tolerance)"
                 for name, count in compared.table.value_counts(sort=False).items())  # fmt: skip
        print(f"{self.folder}: {len(compared)} numbers recomputed: {', '.join(words)}")
        if len(wrong):
            raise UserError(f"{self.folder}: numbers disagree:\n{wrong.to_string(index=False)}")

    def rows(self, name: str) -> pd.DataFrame:
        """A kept table; where its jobs have settings that it lacks, with them, as dicts."""
        table = output.read(self._table(name))
        if name.startswith("sweep_"):
            folder, files = f"sweeps/{name.removeprefix('sweep_')}", table.activation
        elif name == "fig_architectures":
            folder, files = "architectures", table.architecture
        else:
            return table
        jobs = f"results/{folder}/" + table.dataset + "/" + files + ".h5"
        return table.assign(settings=[self.record(job)["settings"] for job in jobs])

    def _table(self, name: str) -> Path:
        place = self.folder / f"{name}.csv"
        return place if place.is_file() else place.with_name(f"{name}.csv.gz")


def _recorded_as(name: str) -> str:
    """The path under which the record of a file is kept: of all that is drawn one."""
    return f"results/{name}" if name.endswith(".csv") else f"results/{name.partition('.')[0]}"


def code_of(rule: str) -> list[str]:
    """What the numbers of a computing rule depend on today, but the config."""
    more = ["ntkcond.steps.kernel:main"] if rule == "spectrum" else []
    return CODE.texts(*modules_of(rule, chosen=more))


def _strip(source_path: Path, place: Path) -> None:
    """Copies a file without LARGE."""
    with read_hdf5(source_path) as source, write_hdf5(place) as file:
        file.attrs.update(source.attrs)
        for name in source:
            if name not in LARGE:
                source.copy(name, file)


def snakemake(name: str) -> str:
    """The command that makes a study."""
    return f"snakemake --configfile studies/{name}/config.yaml --directory runs/{name}"


def all_names() -> list[str]:
    """The studies of the project. Raises UserError in another folder."""
    if not FOLDER.is_dir():
        raise UserError(f"{Path.cwd()}: has no folder studies. Run this in the project's folder")
    return sorted(path.parent.name for path in FOLDER.glob("*/config.yaml"))


def show(studies: Sequence[Study], write: bool) -> bool:
    """Prints the state of each artefact, or also writes the table into studies/README.md; whether
    nothing is out of date."""
    lines, states = ["| study | artefact | state | why |", "|---|---|---|---|"], set()
    for study in studies:
        for artefact in study.keeps:
            state, reasons = study.state(artefact)
            states.add(state)
            more = [f"and {len(reasons) - SHOWN} more"] if len(reasons) > SHOWN else []
            why = "<br>".join([*reasons[:SHOWN], *more])
            lines.append(f"| {study.name} | {artefact} | {state} | {why} |")
    print("\n".join(lines))
    if write:
        page = FOLDER / "README.md"
        before, _, rest = page.read_text("utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        page.write_text("\n".join([f"{before}{BEGIN}", *lines, f"{END}{after}"]), "utf-8")
    return OUT_OF_DATE not in states


def main(arguments: argparse.Namespace) -> bool:
    """Whether no state that it shows is out of date; whether all was laid."""
    commands = ("states", "lay", "keep", "check")
    if arguments.command not in commands:
        arguments.command, arguments.names = "states", [arguments.command, *arguments.names]
    if arguments.write and (arguments.names or arguments.command != "states"):
        raise UserError("--write: writes the states of all studies. Give it alone")
    for name in arguments.names:
        require_known(name, all_names(), f"{FOLDER / name}: no such study.")
    studies = [Study(name) for name in arguments.names or all_names()]
    if arguments.command == "states":
        return show(studies, arguments.write)
    done = [getattr(study, arguments.command)() for study in studies]
    return False not in done


if __name__ == "__main__":
    options = argparse.ArgumentParser(
        prog="python -m ntkcond.studies", description=(__doc__ or "").splitlines()[0]
    )
    options.add_argument("command", nargs="?", default="states", help="states, lay, keep or check")
    options.add_argument("names", nargs="*", help="studies; all, if none is named")
    options.add_argument("--write", action="store_true", help="the states into studies/README.md")
    run(main, options, otherwise=3)
