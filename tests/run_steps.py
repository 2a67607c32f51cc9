"""Runs steps one after the other, each in a fork of a process that has loaded all packages: 0.1 s
each in place of 3. Says which modules of ntkcond each had loaded.

Reads a list of [name, modules to import, step, its arguments] from stdin as JSON; a step that is
null is not run. Writes {name: [modules loaded, exit status]}.
"""

import importlib
import json
import os
import runpy
import sys

for package in ("h5py", "matplotlib.figure", "pandas", "psutil", "scipy.special", "sklearn",
                "soundfile", "torch", "tqdm"):  # fmt: skip
    importlib.import_module(package)
importlib.import_module("ntkcond.datasets.torchvision_data")  # which knows how to load torchvision
for name in [name for name in sys.modules if name.partition(".")[0] == "ntkcond"]:
    del sys.modules[name]


def run(modules: list[str], step: str | None, arguments: list[str]) -> tuple[list[str], int]:
    status = 0
    try:
        for module in modules:
            importlib.import_module(module)
        if step:
            sys.argv = [step, *arguments]
            runpy.run_module(step, run_name="__main__", alter_sys=True)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    loaded = {name for name in sys.modules if name.partition(".")[0] == "ntkcond"}
    return sorted(loaded | ({step} if step else set())), status


found = {}
for name, *job in json.load(sys.stdin):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            json.dump(run(*job), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        found[name] = json.loads(pipe.read() or '[[], "died"]')
    os.waitpid(child, 0)
json.dump(found, sys.stdout)
