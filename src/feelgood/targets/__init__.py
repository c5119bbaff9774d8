"""What MCMC agents sample: models, what is remembered, the energy, the feel-good bonus.

Imports `core` and `numerics`.
"""
