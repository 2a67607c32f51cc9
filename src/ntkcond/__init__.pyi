from ntkcond.library.closest import ClosestPair as ClosestPair
from ntkcond.library.closest import closest_pair as closest_pair
from ntkcond.library.eigen import Eigendecomposition as Eigendecomposition
from ntkcond.library.eigen import Interval as Interval
from ntkcond.library.eigen import Prediction as Prediction
from ntkcond.library.eigen import eigendecomposition as eigendecomposition
from ntkcond.library.kernel import Kernel as Kernel
from ntkcond.library.kernel import load as load
from ntkcond.library.of_module import condition_number as condition_number
from ntkcond.library.of_module import kernel as kernel
from ntkcond.library.operators import Estimate as Estimate
from ntkcond.library.operators import ExtremeEigenvalue as ExtremeEigenvalue
from ntkcond.library.operators import Jacobian as Jacobian
from ntkcond.library.operators import NTKOperator as NTKOperator
from ntkcond.library.operators import Operator as Operator
from ntkcond.library.operators import SpectralDensity as SpectralDensity
from ntkcond.library.operators import TransposedJacobian as TransposedJacobian
from ntkcond.library.operators import jacobian as jacobian
from ntkcond.library.operators import ntk_operator as ntk_operator
from ntkcond.library.public import extreme_eigenvalues as extreme_eigenvalues
from ntkcond.library.public import gradient_angle as gradient_angle
from ntkcond.library.public import infinite_width_ntk as infinite_width_ntk
from ntkcond.networks.activations import ACTIVATIONS as ACTIVATIONS
from ntkcond.networks.activations import Activation as Activation
from ntkcond.networks.mlp import MLP as MLP
from ntkcond.networks.mlp import LayerGradient as LayerGradient
from ntkcond.ntk.eigenvalues import Extremes as Extremes
from ntkcond.ntk.eigenvalues import Spectrum as Spectrum
from ntkcond.ntk.empirical import empirical_ntk as empirical_ntk
from ntkcond.run.errors import UserError as UserError

__all__: list[str]
__version__: str
