"""An activation less its mean: one whose NTK has no mean mode (`ntkcond.ntk.linearised`)."""

import functools

from ntkcond.networks.activations import Activation
from ntkcond.networks.gaussian import hermite_coefficients


@functools.cache
def less_its_mean(activation: Activation) -> Activation:
    """z → σ(z) − E σ(z) for z ~ N(0, 1); no longer homogeneous, and c_σ is computed.

    For samples of norm 1 all layers keep that mean 0, at infinite width. The mean is by quadrature:
    σ may have a kink at 0 alone.

    >>> import math, ntkcond
    >>> from ntkcond.networks.zero_mean import less_its_mean
    >>> sigma = less_its_mean(ntkcond.ACTIVATIONS["relu"])
    >>> abs(sigma.value(1.0) - (1 - 1 / math.sqrt(2 * math.pi))) < 1e-12
    True
    """
    mean = float(hermite_coefficients(activation.value, 1)[0])
    return Activation(
        f"{activation.title} less its mean",
        lambda z: activation.value(z) - mean,
        activation.slope,
        kinks=activation.kinks,
        bend=activation.bend,
        flat=activation.flat,
        rough=activation.rough,
    )
