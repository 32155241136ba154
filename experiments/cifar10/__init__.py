"""CIFAR-10: a convolutional network with a norm in every layer.

Zhang & Sennrich (2019), section 6.4.
"""
