"""A step once more as MPI ranks: started, heard, and ended together with it.

The step itself stays the one process that Snakemake knows. It has the log, and says in one line why
a rank was lost. Its ranks end with it: the first one reads from the step's pipe, which ends too.
"""

import importlib.util
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
from ntkcond.run.needs import Need

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
}
# How mpirun and srun say that a rank was lost.
LOST = re.compile(
    r"(?:process rank|task) (\d+)\b.*?(signal \d+|[Kk]illed|Segmentation fault|Exited)"
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


def start(command: str, count: int, threads: int) -> None:
    """Runs this step as so many ranks and waits. command: mpirun or srun, with options. threads: of
    all ranks together; Slurm gives each its own. Raises UserError with the error of a rank, or if
    one is lost."""
    require_mpi(command)
    each = os.environ.get("SLURM_CPUS_PER_TASK", "1") if "srun" in command else threads // count
    module = sys.modules["__main__"].__spec__
    assert module
    # mpi4py's own start ends all ranks if one fails
    step = [sys.executable, "-m", "mpi4py", "-m", module.name, *sys.argv[1:]]
    environment = {**SETTINGS, **os.environ, "OPENBLAS_NUM_THREADS": str(each or 1)}
    environment.pop("NTKCOND_SNAKEMAKE", None)  # is not their parent, or not on their machine
    process = subprocess.Popen(
        [*shlex.split(command), "-n", str(count), *step, "--log", os.devnull, "--as-rank"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", env=environment,
    )  # fmt: skip
    errors, lost, last = [], None, ""
    assert process.stdout
    for line in map(str.rstrip, process.stdout):
        if line.startswith("ntkcond: "):
            errors.append(line.removeprefix("ntkcond: "))
        elif line.strip("-"):
            log.info("%s", line)
            lost, last = lost or LOST.search(line), line
    status = process.wait()
    if errors:
        raise UserError(errors[0])
    if lost:
        raise UserError(
            f"rank {lost[1]} of {count} was lost ({lost[2]}), and the others were ended. If it was"
            " killed for its memory, lower block or use more machines. The same command starts anew"
        )
    if status:
        raise UserError(f"{command} ended with status {status}: {last}")


def joined(count: int) -> "MPI.Intracomm":
    """The ranks, as one of them: the first tells the step what it logs. Ends with the step. Raises
    UserError if they do not find each other."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.size != count:
        raise UserError(
            f"{count} ranks were started, and MPI knows of {comm.size}. The command that starts"
            f" them is of another MPI than mpi4py's, {MPI.get_vendor()[0]}. {SET_UP}"
        )
    use_threads(int(os.environ["OPENBLAS_NUM_THREADS"]))
    if comm.rank == 0:
        told = logging.StreamHandler(sys.stdout)
        told.addFilter(lambda record: record.levelno < logging.WARNING)
        log.addHandler(told)

        def watch() -> None:
            while os.read(0, 1):  # of no buffer, which Python would lock at its end
                pass
            comm.Abort(1)

        threading.Thread(target=watch, daemon=True).start()
    return comm


def require_memory_of(need: Need, comm: "MPI.Intracomm") -> None:
    """`require_memory` of the ranks on one machine. need: of all ranks together."""
    from mpi4py import MPI

    here = comm.Split_type(MPI.COMM_TYPE_SHARED).size
    require_memory(need._replace(bytes=need.bytes * here // comm.size))
