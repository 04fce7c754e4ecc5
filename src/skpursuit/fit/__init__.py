"""The best coefficients on a support: least squares, Newton for other losses, merged supports, dependence."""
