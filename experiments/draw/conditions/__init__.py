"""The kinds of both papers, of an LSTM's cell state.

A file added here is trained and reported with the rest.
"""

from ...runs.kinds import norm_conditions

CONDITIONS = norm_conditions(epsilon=1e-5)
