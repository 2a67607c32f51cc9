"""Neural tangent kernels, empirical and at infinite width: closest pair, rank, spectrum."""
