"""Permutation-invariant MNIST: a 784-1000-1000-10 network with batches of 128 and 4.

Reference: Ba et al. (2016), section 6.6.
"""
