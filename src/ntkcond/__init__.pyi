from ntkcond.library.closest import closest_pair as closest_pair
from ntkcond.library.eigen import eigendecomposition as eigendecomposition
from ntkcond.library.kernel import Kernel as Kernel
from ntkcond.library.kernel import load as load
from ntkcond.library.of_module import condition_number as condition_number
from ntkcond.library.of_module import kernel as kernel
from ntkcond.library.operators import jacobian as jacobian
from ntkcond.library.operators import ntk_operator as ntk_operator
from ntkcond.library.public import extreme_eigenvalues as extreme_eigenvalues
from ntkcond.library.public import gradient_angle as gradient_angle
from ntkcond.library.public import infinite_width_ntk as infinite_width_ntk
from ntkcond.networks.activations import ACTIVATIONS as ACTIVATIONS
from ntkcond.networks.mlp import MLP as MLP
from ntkcond.ntk.eigenvalues import Spectrum as Spectrum
from ntkcond.ntk.empirical import empirical_ntk as empirical_ntk
from ntkcond.run.errors import UserError as UserError

__version__: str
