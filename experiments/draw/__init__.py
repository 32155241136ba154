"""DRAW on binarized MNIST: a recurrent network that draws digits step by step (Ba et al.

2016, section 6.4).
"""
