"""Log-mel filterbank energies with Kaldi's conventions (its compute-fbank-feats), without dither.

Frames of 25 ms every 10 ms. In each: subtract the mean, x[t] − 0.97 x[t−1], Povey's window, power
spectrum of 512 points, triangular filters equidistant on the mel scale from 20 Hz to 8 kHz,
logarithm. Audio is in units of a 16-bit integer, as in Kaldi. Computed in float64.
"""

import functools

import numpy as np
import torch

from ntkcond.datasets.speech.corpus import SAMPLE_RATE
from ntkcond.datasets.speech.frames import STEP, WINDOW
from ntkcond.run.errors import UserError

PREEMPHASIS = 0.97
POINTS = 512  # of the Fourier transform: the next power of two
LOWEST, HIGHEST = 20.0, SAMPLE_RATE / 2  # Hz
AT_ONCE = 4096  # frames, 60 MB
FLOOR = float(np.finfo(np.float32).eps)  # of an energy, before the logarithm


def log_mel(audio: np.ndarray, filters: int, frames: np.ndarray) -> torch.Tensor:
    """Energies of the named frames: (len(frames), filters) float64.

    audio: (samples,) int16 at 16 kHz. frames: increasing numbers; frame t starts at sample 160 t.
    """
    windows = torch.from_numpy(audio).unfold(0, WINDOW, STEP)
    energies = torch.empty(len(frames), filters, dtype=torch.float64)
    for rows in torch.arange(len(frames)).split(AT_ONCE):
        x = windows[torch.from_numpy(frames)[rows]].double()
        x -= x.mean(dim=1, keepdim=True)
        before = torch.cat([x[:, :1], x[:, :-1]], dim=1)  # of the first sample: itself
        x = (x - PREEMPHASIS * before) * _window()
        spectrum = torch.view_as_real(torch.fft.rfft(x, POINTS))
        power = spectrum.square().sum(dim=-1)
        energies[rows] = (power @ mel_filters(filters)).clamp_min(FLOOR).log()
    return energies


@functools.cache
def mel_filters(filters: int) -> torch.Tensor:
    """Weight of each frequency in each filter, (257, filters) float64: triangles on the mel scale
    1127 ln(1 + f / 700 Hz), each from the centre of one neighbour to that of the other.

    Raises UserError if a filter is so narrow that it contains none of the frequencies.
    """
    edges = torch.linspace(_mel(LOWEST), _mel(HIGHEST), filters + 2, dtype=torch.float64)
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    bins = torch.arange(POINTS // 2 + 1, dtype=torch.float64) * SAMPLE_RATE / POINTS
    mel = (1127 * torch.log1p(bins / 700))[:, None]
    weights = torch.minimum((mel - left) / (centre - left), (right - mel) / (right - centre))
    weights = weights.clamp_min(0)
    weights[-1] = 0  # Kaldi leaves out 8 kHz itself
    if (empty := int((weights.sum(dim=0) == 0).sum())) > 0:
        raise UserError(
            f"mel: of {filters} filters {empty} are too narrow for a spectrum of {POINTS} points."
            " Lower mel"
        )
    return weights


def _mel(frequency: float) -> float:
    return 1127 * float(np.log1p(frequency / 700))


@functools.cache
def _window() -> torch.Tensor:
    """Povey's: a Hann window to the power of 0.85, (400,) float64."""
    return torch.hann_window(WINDOW, periodic=False, dtype=torch.float64).pow(0.85)
