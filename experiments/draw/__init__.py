"""DRAW on binarized MNIST: a recurrent network draws digits step by step.

Reference: Ba et al. (2016), section 6.4.
"""
