"""Names of networks beside the paper's, which `ntkcond.networks.modules` builds.

The Snakefile reads them: no torch.
"""

# Name, and title in figures.
ARCHITECTURES = {
    "plain": "fully connected",
    "biases": "with biases",
    "residual": "residual",
    "normalised": "normalised",
    "convolutional": "convolutional",
}
ON_IMAGES = ("convolutional",)  # which need samples that have a shape
