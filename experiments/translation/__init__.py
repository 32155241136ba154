"""Machine translation on the patched baseline:

Tables 1, 2 and 4, Figures 1 to 4 of Zhang & Sennrich (2019).
"""
