"""Tests of the tests: mutmut changes the code at one place at a time, and a unit test must fail.

    .venv/bin/python -m pip install "mutmut~=3.8.1"
    .venv/bin/python tests/mutants.py --a-module 18 --seed 1
    .venv/bin/python tests/mutants.py --slow --names ntkcond.ntk.rank.x_rank_bound__mutmut_10

Each such change is a mutant, and a mutant that no test notices a survivor. From each module a
sample is drawn. Quick tests judge it; with `--slow --names`, slow ones judge those survivors that
you name. runs/mutants/survivors.diff shows who is left: each is harmless, or a test is missing.

mutmut leaves out decorated functions, and what is not in a function. Error texts and zip's `strict`
are left out here: they guard against errors that tests cannot make.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

from mutmut.configuration import config
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import get_mutant_name

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "runs/mutants"
FOLDERS = ("ntk", "networks", "training")
TESTS = [f"tests/{folder}" for folder in (*FOLDERS, "arrays")]
LONGEST = [
    "tests/training/test_sgd.py::test_killed_again_and_again_training_ends_with_the_same_bits",
    "tests/training/test_sgd.py::test_a_checkpoint_of_other_settings_or_a_damaged_one_is_not_taken_up",
    "tests/training/test_sgd.py::test_the_step_says_which_data_set_has_nothing_to_learn",
    "tests/ntk/test_half_kernels.py::test_a_proof_is_asked_for_where_only_some_blocks_can_have_one",
    "tests/ntk/test_half_kernels.py::test_files_of_large_kernels_have_one_half_and_no_room_for_the_other",
    "tests/ntk/test_empirical.py::test_memory_stays_far_below_the_kernel",
]
SLOW = [  # more than a second or two each
    "tests/ntk/test_half_kernels.py",
    "tests/ntk/test_closest_pair.py::test_pruning_finds_the_closest_of_all_pairs[torch",
    "tests/ntk/test_dual_activations.py::test_quadrature_and_series_of_a_smooth_activation_agree",
    "tests/ntk/test_dual_activations.py::test_kinks_are_named_or_cost_accuracy_that_the_error_tells",
    "tests/ntk/test_infinite_width.py::test_entries_and_smallest_eigenvalue_are_within_their_bounds",
    "tests/ntk/test_infinite_width.py::test_what_the_report_says_of_figure_1",
    "tests/library/test_of_module.py::test_every_kernel_is_that_of_the_jacobian[resnet18",
    "tests/arrays/test_half.py",
]
CAUGHT = ("killed", "timeout", "segfault")
JUDGED = (*CAUGHT, "survived", "no tests", "suspicious")
MUTMUT = Path(sys.executable).with_name("mutmut")


def settings(tests: list[str], deselected: list[str]) -> str:
    def lines(*items: str) -> str:
        return "".join(f"\n    {item}" for item in items)

    return "\n".join([
        "[mutmut]",
        "source_paths=src",
        "only_mutate=" + lines(*(f"src/ntkcond/{folder}/*" for folder in FOLDERS)),
        r"do_not_mutate_patterns=" + lines(r"UserError\(", r"log\.\w+\("),
        "also_copy=" + lines("README.md", "config"),
        "process_isolation=forkserver",  # no caches of what ran before
        "pytest_add_cli_args_test_selection=" + lines(*tests),
        "pytest_add_cli_args=" + lines(
            "-n0", "-pno:cacheprovider", "--durations=0", "--maxfail=1",
            "-mnot cuda", *(f"--deselect={test}" for test in deselected),
        ),
        "use_git_change_detection=false",
        "timeout_multiplier=4",
        "timeout_constant=5",
        "",
    ])  # fmt: skip


def prepare() -> None:
    """A copy of the project, in which mutmut works."""
    shutil.rmtree(PLACE, ignore_errors=True)
    for folder in ("src", "tests", "config"):
        shutil.copytree(ROOT / folder, PLACE / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, PLACE / name)
    for path in (PLACE / "src").rglob("*.py"):
        text = path.read_text("utf-8")
        path.write_text(text.replace(", strict=True", ""), "utf-8")


def every_mutant() -> dict[str, list[str]]:
    """Names of mutants, by module."""
    config()  # of this folder
    by_module = {}
    for folder in FOLDERS:
        for path in sorted(Path(f"src/ntkcond/{folder}").glob("*.py")):
            names = mutate_file_contents(str(path), path.read_text("utf-8")).mutant_names
            if names:
                by_module[str(path)] = sorted(get_mutant_name(path, name) for name in names)
    return by_module


def judge(names: list[str]) -> dict[str, str]:
    """What became of each: killed, timeout, survived, no tests. Ends the program where mutmut did
    not get to some, as when a test fails on the code as it is."""
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    command = [MUTMUT, "run", "--max-children=1", *names]
    with Path("log").open("w") as log:
        subprocess.run(command, env=variables, stdout=log, stderr=log)
    codes: dict[str, int | None] = {}
    for path in Path("mutants/src/ntkcond").rglob("*.meta"):
        codes |= json.loads(path.read_text("utf-8"))["exit_code_by_key"]
    outcomes = {name: status_by_exit_code[codes.get(name)] for name in names}
    if left := [name for name, end in outcomes.items() if end not in JUDGED]:
        sys.exit(f"mutmut did not judge {len(left)} of {len(names)} mutants: {PLACE}/log says why")
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--a-module", type=int, default=18, help="mutants of each module, at most")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--names", nargs="+", help="of mutants, instead of a sample")
    parser.add_argument("--slow", action="store_true", help="slow tests judge, not quick ones")
    options = parser.parse_args()
    prepare()
    os.chdir(PLACE)
    slow = [test.partition("[")[0] for test in SLOW]
    setup = settings(slow, LONGEST) if options.slow else settings(TESTS, LONGEST + SLOW)
    Path("setup.cfg").write_text(setup, "utf-8")
    every, draw = every_mutant(), random.Random(options.seed)
    sample = {
        path: sorted(draw.sample(names, min(options.a_module, len(names))))
        for path, names in every.items()
    }
    if options.names:
        sample = {path: [n for n in names if n in options.names] for path, names in every.items()}
    outcomes = judge([name for names in sample.values() for name in names])
    with Path("survivors.diff").open("w") as file:
        for name, end in outcomes.items():
            if end not in CAUGHT:
                file.flush()
                subprocess.run([MUTMUT, "show", name], stdout=file)
    print(f"{'module':40}{'mutants':>9}{'run':>6}{'caught':>8}{'left':>6}")
    for path, names in sample.items():
        caught = sum(outcomes[name] in CAUGHT for name in names)
        print(f"{path:40}{len(every[path]):9}{len(names):6}{caught:8}{len(names) - caught:6}")


if __name__ == "__main__":
    main()
