"""Skip-thoughts: sentence vectors that predict the sentences around them (Ba et al.

2016, section 6.3).
"""
