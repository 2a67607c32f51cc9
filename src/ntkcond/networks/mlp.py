"""The paper's networks (Eq. 1–3): initial weights, and the two factors of every weight's gradient.

    α⁰ = x,   αˡ = √(c_σ/m) σ(Wˡ αˡ⁻¹ + β bˡ) for l = 1..L,   f = Wᴸ⁺¹ αᴸ + β bᴸ⁺¹

Depth L is the number of hidden layers, m their width; one output for every NTK. The paper has no
biases, β = 0. With them a layer is Wˡ with bˡ as one more column, of αˡ⁻¹ with β as one more entry.
The Snakefile reads the fields in every job: only functions import numpy and torch.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, NamedTuple

from ntkcond.arrays.backend import Array, Device, put, triangular_factor, xp
from ntkcond.networks.activations import ACTIVATIONS, Activation
from ntkcond.run.errors import UserError

if TYPE_CHECKING:
    import numpy as np

TRAINABLE = ("all", "first")


class LayerGradient(NamedTuple):
    """∂f/∂Wˡ of n samples as its two factors: the gradient of sample i is backward[i] forward[i]ᵀ.

    Attributes
    ----------
    forward : (n, m_{l−1}) float64 array
        αˡ⁻¹; with biases β as one more column.
    backward : (n, m_l) float64 array or None
        ∂f/∂(Wˡ αˡ⁻¹); None stands for a column of ones.

    Examples
    --------
    >>> import numpy as np, ntkcond
    >>> network = ntkcond.MLP(ntkcond.ACTIVATIONS["relu"], depth=1, width=4)
    >>> first, last = network.initial_gradients(seed=1, features=3)(np.eye(3))
    >>> first.forward.shape, first.backward.shape, last.forward.shape, last.backward
    ((3, 3), (3, 4), (3, 4), None)
    """

    forward: Array
    backward: Array | None

    def rows(self, rows: slice) -> "LayerGradient":
        """The factors of some of the samples (views)."""
        return LayerGradient(
            self.forward[rows], None if self.backward is None else self.backward[rows]
        )


GradientMap = Callable[[Array], list[LayerGradient]]


class Trace(NamedTuple):
    """What `MLP.layer_gradients` computes on its way, by which its rounding is bounded
    (`ntkcond.ntk.rounding`); (n, …) each.

    forward: α⁰ … αᴸ; z: preactivations and slopes: σ′ of them, scaled, of layers 1 to L; arriving:
    what comes back to these layers from above, and deltas: times the slopes; both from the last
    layer down, arriving there (1, m), the last weights.
    """

    forward: list[Array]
    z: list[Array]
    slopes: list[Array]
    arriving: list[Array]
    deltas: list[Array]


@dataclass(frozen=True)
class MLP:
    """A network, and the weights with respect to which its NTK takes gradients.

    Parameters
    ----------
    activation : Activation
        σ: one of `ACTIVATIONS`.
    depth : int
        L, hidden layers, 0 or more.
    width : float
        m, neurons in each hidden layer; math.inf for infinite width (`ntkcond.ntk.infinite_width`),
        which has no weights.
    trainable : "all" or "first"
        All layers, or the first alone with the other weights fixed (Eq. 12, Thm 5.1).
    bias : float
        β, 0 for none.

    Raises
    ------
    UserError
        For a field out of its range.

    Notes
    -----
    Each field is an option of the command line (`ntkcond.steps.network_options`). Its metadata:
    help; minimum of a number; choices of a word, or a dict from word to value; ntk_only, of a field
    that training does not use.

    Examples
    --------
    >>> import ntkcond
    >>> ntkcond.MLP(ntkcond.ACTIVATIONS["relu"], depth=2, width=512).weight_count(features=784)
    664064
    """

    activation: Activation = field(metadata={"choices": ACTIVATIONS, "help": "σ"})
    depth: int = field(metadata={"minimum": 0, "help": "hidden layers"})
    width: float = field(metadata={"minimum": 1, "help": "neurons in each hidden layer"})
    trainable: str = field(
        default="all",
        metadata={"choices": TRAINABLE, "help": "layers whose NTK it is", "ntk_only": True},
    )
    bias: float = field(
        default=0.0, metadata={"minimum": 0.0, "help": "β of biases β b, b ~ N(0, 1)"}
    )

    def __post_init__(self) -> None:
        if not isinstance(self.activation, Activation):
            raise UserError(f"activation={self.activation!r}: give one of ntkcond.ACTIVATIONS")
        for setting in fields(self):
            value, choices = getattr(self, setting.name), setting.metadata.get("choices")
            least = setting.metadata.get("minimum")
            if least is not None and not value >= least:
                raise UserError(f"{setting.name}={value}: it must be at least {least}")
            if isinstance(choices, tuple) and value not in choices:
                raise UserError(f"{setting.name}={value!r}: it must be {' or '.join(choices)}")

    @property
    def is_linear(self) -> bool:
        """Whether f is linear in x, or affine, by its activation or without a hidden layer."""
        return self.activation.linear or self.depth == 0

    @property
    def degree(self) -> int | None:
        """k with f(a x) = aᵏ f(x) for all a > 0 in each layer; None if there is none."""
        return None if self.bias else self.activation.degree

    def with_bias(self, x: Array, scale: float = 1.0) -> Array:
        """Activations (…, m) with β/scale as one more entry; themselves without biases."""
        if not self.bias:
            return x
        functions = xp(x)
        ones = functions.ones((*x.shape[:-1], 1), dtype=x.dtype, device=x.device)
        return functions.concat([x, self.bias / scale * ones], axis=-1)

    def _shapes(self, features: int, outputs: int) -> list[tuple[int, int]]:
        """Shapes of W¹ … Wᴸ⁺¹, without biases."""
        sizes = [features, *(int(self.width) for _ in range(self.depth)), outputs]
        return list(zip(sizes[1:], sizes[:-1], strict=True))

    def weights(self, seed: int, features: int, outputs: int = 1) -> "list[np.ndarray]":
        """W¹ … Wᴸ⁺¹ with i.i.d. N(0, 1) entries.

        Each matrix has a counter-based stream (Philox) that depends on seed, depth, layer and shape
        alone: the same on every device and machine and in any order of jobs.

        Parameters
        ----------
        seed, features, outputs : int

        Returns
        -------
        list of float64 arrays
            Of shapes (m, d), (m, m) …, (outputs, m); with biases these are one more column, and the
            others the same as without.
        """
        import numpy as np

        def drawn(layer: int, *shape: int) -> np.ndarray:
            stream = np.random.Philox(np.random.SeedSequence([seed, self.depth, layer, *shape]))
            return np.random.Generator(stream).standard_normal(shape)

        weights = []
        for layer, shape in enumerate(self._shapes(features, outputs), start=1):
            weights.append(drawn(layer, *shape))
            if self.bias:
                weights[-1] = np.hstack([weights[-1], drawn(layer, shape[0])[:, None]])
        return weights

    def weight_count(self, features: int, outputs: int = 1) -> float:
        """Number of weights P: no NTK of a network with one output has a rank above it.

        Parameters
        ----------
        features, outputs : int

        Returns
        -------
        float
            math.inf at infinite width.
        """
        if self.depth and self.width == math.inf:
            return math.inf
        one = int(self.bias > 0)
        return sum(rows * (columns + one) for rows, columns in self._shapes(features, outputs))

    def rounding_stages(self, features: int) -> tuple[int, int]:
        """The stages of rounding in an entry of K, and the longest sum of products in one: forward,
        backward, Gram, with sums of up to max(m, d) products.

        Parameters
        ----------
        features : int

        Returns
        -------
        (int, int)
        """
        longest = max(int(self.width) if self.depth else 0, features)
        return 2 * self.depth + 1, longest + int(self.bias > 0)

    def layer_gradients(
        self, x: Array, weights: Sequence[Array], trace: Trace | None = None
    ) -> list[LayerGradient]:
        """The factored gradient of f with respect to each trainable Wˡ, for each row of x.

        Parameters
        ----------
        x : (n, d) float64 array
        weights : list of arrays
            From `weights`, on x's device.
        trace : Trace
            Empty lists, to be filled.

        Returns
        -------
        list of LayerGradient
        """
        from ntkcond.networks.gaussian import normalisation

        scale = math.sqrt(normalisation(self.activation) / len(weights[0]))
        forward, slopes = [self.with_bias(x)], []
        for w in weights[:-1]:
            z = forward[-1] @ w.T
            slope, value = self.activation.slope(z), self.activation.value(z)
            if trace is not None:
                trace.z.append(z if value is not z else z * 1)
            slope *= scale
            value *= scale
            slopes.append(slope)
            forward.append(self.with_bias(value))

        backward: list[Array | None] = [None]  # of the output itself: ∂f/∂f = 1
        for w, slope in zip(weights[:0:-1], reversed(slopes), strict=True):
            w = w[:, : slope.shape[1]]  # without the bias
            arriving = w if backward[-1] is None else backward[-1] @ w
            if trace is not None:
                trace.slopes.insert(0, slope)
                trace.arriving.append(arriving)
                backward.append(slope * arriving)
                trace.deltas.append(backward[-1])
            else:
                slope *= arriving
                backward.append(slope)
        if trace is not None:
            trace.forward.extend(forward)
        layers = [LayerGradient(*pair) for pair in zip(forward, reversed(backward), strict=True)]
        return layers[:1] if self.trainable == "first" else layers

    def linear_factor(self, weights: Sequence[Array]) -> Array:
        """R, upper triangular, with K = (X Rᵀ)(X Rᵀ)ᵀ for a linear network (Eq. 3).

        Parameters
        ----------
        weights : list of arrays

        Returns
        -------
        (d, d) float64 array
            With biases X has a column β more (`with_bias`), and R is (d + 1, d + 1).

        Notes
        -----
        There αˡ = Pₗ x and the back-propagated vectors δˡ do not depend on x, so that
        K = X M Xᵀ with M = Σₗ ‖δˡ⁺¹‖² PₗᵀPₗ, l = 0..L. R is the triangular factor of a QR
        decomposition of the stacked ‖δˡ⁺¹‖ Pₗ: M = RᵀR is never formed, which would square
        its condition number. With the first layer alone trainable, R = ‖δ¹‖ I.
        """
        products, deltas = self.linear_parts(weights)
        functions = xp(weights[0])
        norms = [float(functions.linalg.vector_norm(delta)) for delta in deltas]
        if self.trainable == "first":
            return products[0] * norms[0]
        return triangular_factor(
            functions.concat([p * norm for p, norm in zip(products, norms, strict=True)])
        )

    def linear_parts(self, weights: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        """P⁰ … Pᴸ, (d, d), then (m, d), with biases a row and a column more; and δ¹ … δᴸ⁺¹."""
        features, width = weights[0].shape[1], len(weights[0])
        scale = 1.0 / math.sqrt(width)
        functions = xp(weights[0])
        product = functions.eye(features, dtype=weights[0].dtype, device=weights[0].device)
        products = [product]
        constant = product[-1:]  # the entry β of x gives that of each layer
        for w in weights[:-1]:
            product = w @ product * scale
            if self.bias:
                product = functions.concat([product, constant])
            products.append(product)

        deltas = [weights[-1][:, :1] * 0 + 1]
        for w in weights[:0:-1]:
            w = w[:, :width]  # without the bias
            deltas.append((w if len(deltas) == 1 else deltas[-1] @ w) * scale)
        return products, deltas[::-1]

    def gradients(self, weights: Sequence[Array]) -> GradientMap:
        """A function from samples to factors whose NTK (`empirical_ntk`) is that of the network.

        Parameters
        ----------
        weights : list of arrays

        Returns
        -------
        function
            From x (n, d) to one factor for each trainable layer; or to a single (n, d) one, X Rᵀ,
            if the network is linear (`linear_factor`).
        """
        if self.is_linear:
            transposed = self.linear_factor(weights).T
            return lambda x: [LayerGradient(self.with_bias(x) @ transposed, None)]
        return lambda x: self.layer_gradients(x, weights)

    def initial_weights(self, seed: int, features: int, device: Device = "cpu") -> list[Array]:
        """`weights` of one output for a device (`ntkcond.arrays.backend.put`).

        Parameters
        ----------
        seed, features : int
        device : str or torch.device

        Returns
        -------
        list of float64 arrays
        """
        return [put(w, device) for w in self.weights(seed, features)]

    def initial_gradients(self, seed: int, features: int, device: Device = "cpu") -> GradientMap:
        """`gradients` at the network's initial weights.

        Parameters
        ----------
        seed, features : int
        device : str or torch.device

        Returns
        -------
        function
        """
        return self.gradients(self.initial_weights(seed, features, device))
