"""An attentive reader that fills gaps in novels.

Reference: Zhang & Sennrich (2019), section 6.2; Ba et al. (2016), section 6.2.
"""
