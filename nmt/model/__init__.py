"""Models: what training and search may ask of one, and what they are made of."""
