"""What several tests share."""

import os
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session", autouse=True)
def _few_threads():
    """Tests of small matrices gain nothing from more threads, and share the machine."""
    torch.set_num_threads(2)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """A folder with the original MNIST and Fashion-MNIST files; without one the test is skipped."""
    folder = os.environ.get("NTKCOND_TEST_DATA")
    if not folder:
        pytest.skip("NTKCOND_TEST_DATA names no folder with the original MNIST files")
    return Path(folder).resolve()
