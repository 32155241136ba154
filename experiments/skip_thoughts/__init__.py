"""Skip-thoughts: sentence vectors that predict the sentences around them.

Reference: Ba et al. (2016), section 6.3.
"""
