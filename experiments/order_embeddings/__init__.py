"""Order embeddings of images and captions.

Reference: Ba et al. (2016), section 6.1; Zhang & Sennrich (2019), section 6.3.
"""
