"""Prediction of handwriting (Ba et al. 2016, section 6.5)."""
