"""Which addresses have the raw files of data sets: python -m ntkcond.plan.probe

A process of its own: the addresses of images are torchvision's, which takes seconds to load. Reads
JSON from stdin, prints JSON.
"""

import json
import os
import sys
import threading
import time
import urllib.request
from http.client import HTTPException

from ntkcond.datasets import registry
from ntkcond.datasets.speech.subsets import MIRRORS

LIMIT_S = 10  # for all addresses, which are asked at once: a dead server never answers


def main(asked: dict[str, dict]) -> dict[str, dict[str, dict[str, str]]]:
    """For each data set, missing file and address the problem, empty where the address has it.

    asked: of each data set `source`, `files` (those missing; of a corpus its archive) and `mirrors`
    (None: the publishers'), as `addresses` takes them."""
    silence = f"no answer in {LIMIT_S} s"
    found = {
        name: {file: dict.fromkeys(urls, silence) for file, urls in addresses(**about).items()}
        for name, about in asked.items()
    }
    threads = [
        threading.Thread(target=_ask, args=(answers, url), daemon=True)
        for files in found.values()
        for answers in files.values()
        for url in answers
    ]
    for thread in threads:
        thread.start()
    end = time.monotonic() + LIMIT_S
    for thread in threads:
        thread.join(max(0, end - time.monotonic()))
    return found


def addresses(source: str, files: list[str], mirrors: list[str] | None) -> dict[str, list[str]]:
    """Those that a download of each file tries, in turn. files: paths below data_dir, of a corpus
    the name of its archive."""
    if registry.SOURCES[source].corpus:
        return {file: [f"{m.rstrip('/')}/{file}" for m in mirrors or MIRRORS] for file in files}
    downloads = registry.module(source).downloads(mirrors)
    return {file: downloads[file].urls for file in files}


def _ask(answers: dict[str, str], url: str) -> None:
    """Notes whether the address serves a first byte."""
    try:
        request = urllib.request.Request(url, headers={"Range": "bytes=0-0"})
        with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
            answers[url] = "" if answer.read(1) else "an empty file"
    except (OSError, HTTPException, ValueError) as error:  # URLError is an OSError
        reason = getattr(error, "reason", error)
        words = str(getattr(reason, "strerror", None) or reason)
        answers[url] = " ".join(words.split()) or repr(error)


if __name__ == "__main__":
    print(json.dumps(main(json.load(sys.stdin))), flush=True)
    os._exit(0)  # whatever still waits for an answer
