"""A step once more as MPI ranks: started, heard, and ended together with it.

The step itself stays the one process that Snakemake knows. It has the log, and says in one line why
a rank was lost. Its ranks end with it: the first one reads from the step's pipe, which ends too.
"""

import contextlib
import importlib.util
import json
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

from ntkcond.run.errors import UserError
from ntkcond.run.machine import require_memory, use_threads
from ntkcond.run.need import Need

if TYPE_CHECKING:
    from mpi4py import MPI

log = logging.getLogger("ntkcond")
PACKAGES = ("mpi4py", "scalapack4py")  # of the extra
SET_UP = "See “More than one machine” in docs/scaling.md"
# Of Open MPI 4 and 5. More ranks than cores are no mistake of a test; ranks bound to cores would
# share them with those of another job; whoever runs Snakemake as root, in a container, means it.
SETTINGS = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    **{f"{name}_ALLOW_RUN_AS_ROOT": "1" for name in ("OMPI", "PRTE")},
    **{f"{name}_ALLOW_RUN_AS_ROOT_CONFIRM": "1" for name in ("OMPI", "PRTE")},
    "SLURM_KILL_BAD_EXIT": "1",  # by default the ranks of a lost one wait for it
}
# How Open MPI, Slurm and MPICH say that ranks were lost: which, and how.
LOST = (
    re.compile(r"process rank (?P<which>\d+)\b.* (?P<how>signal \d+)"),
    re.compile(r"srun: error: \S+: tasks? (?P<which>[\d,-]+): (?P<how>.*)"),
    re.compile(r"RANK (?P<which>\d+) PID"),
)


def require_mpi(command: str = "") -> None:
    """Raises UserError if the packages are missing, or the command that starts ranks."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if not missing:
        missing = [word for word in shlex.split(command)[:1] if not shutil.which(word)]
    if missing:
        raise UserError(
            f"engine: scalapack needs {' and '.join(missing)}, which this environment lacks."
            f" {SET_UP}; or set engine: local"
        )


def start(command: str, count: int, threads: int, record: dict | None) -> None:
    """Runs this step as so many ranks and waits. command: mpirun or srun, with options. threads: of
    all ranks together; of each, where Slurm starts them. record: of what they write. Raises
    UserError with the error of a rank, or if one is lost."""
    require_mpi(command)
    module = sys.modules["__main__"].__spec__
    assert module
    apart = str(threads if "srun" in command else max(1, threads // count))
    # mpi4py's own start ends all ranks if one fails
    step = [sys.executable, "-m", "mpi4py", "-m", module.name, *sys.argv[1:]]
    environment = {**SETTINGS, **os.environ, "OPENBLAS_NUM_THREADS": apart}
    environment.pop("NTKCOND_SNAKEMAKE", None)  # is not their parent, or not on their machine
    process = subprocess.Popen(
        [*shlex.split(command), "-n", str(count), *step,
         "--threads", apart, "--log", os.devnull, "--as-rank"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", env=environment,
    )  # fmt: skip
    assert process.stdin and process.stdout
    with contextlib.suppress(BrokenPipeError):  # they ended at once, and say why
        print(json.dumps(record), file=process.stdin, flush=True)
    errors, said = [], []
    for line in map(str.rstrip, process.stdout):
        if line.startswith("ntkcond: "):
            errors.append(line.removeprefix("ntkcond: "))
        elif line.strip("-="):
            log.info("%s", line)
            said.append(line)
    status = process.wait()
    if errors:
        raise UserError(errors[0])
    if status:
        raise UserError(_end(command, count, status, said))


def _end(command: str, count: int, status: int, said: list[str]) -> str:
    """Which rank was lost, if it is known; else the first error of what started them."""
    for pattern in LOST:
        for line in said:
            if match := pattern.search(line):
                how = f" ({match['how']})" if "how" in match.re.groupindex else ""
                return (
                    f"rank {match['which']} of {count} was lost{how}, and the others were ended. If"
                    " memory ran out, lower block or use more machines. The same command starts"
                    " anew"
                )
    told = [line for line in said if "error" in line.lower()] or said or ["it said nothing"]
    return f"{command} ended with status {status}: {told[0]}"


def joined(count: int, threads: int) -> "tuple[MPI.Intracomm, dict | None]":
    """The ranks, as one of them, and on rank 0 the record of what it writes. Rank 0 tells the step
    what it logs, and ends with it. Raises UserError if they do not find each other."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # such as of a library that is not there
        said = " ".join(str(error).split())
        raise UserError(f"engine: scalapack finds no MPI. {said}. {SET_UP}") from None

    comm, record = MPI.COMM_WORLD, None
    if comm.size != count:
        raise UserError(
            f"{count} ranks were started, and MPI knows of {comm.size}. The command that starts"
            f" them is of another MPI than mpi4py's, {MPI.get_vendor()[0]}. {SET_UP}"
        )
    use_threads(threads)
    if comm.rank == 0:
        told = logging.StreamHandler(sys.stdout)
        told.addFilter(lambda record: record.levelno < logging.WARNING)
        log.addHandler(told)
        pipe = os.fdopen(0, "rb", buffering=0)  # of a buffer Python would hold the lock at its end
        record = json.loads(pipe.readline())

        def watch() -> None:
            while pipe.read(1):
                pass
            comm.Abort(1)

        threading.Thread(target=watch, daemon=True).start()
    return comm, record


def require_memory_of(need: Need, comm: "MPI.Intracomm") -> None:
    """`require_memory` of the ranks on one machine. need: of all ranks together."""
    from mpi4py import MPI

    here = comm.Split_type(MPI.COMM_TYPE_SHARED).size
    require_memory(need._replace(bytes=need.bytes * here // comm.size))
