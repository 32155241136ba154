"""The paper's translation experiments on the patched baseline: `python -m experiments [DATA]` trains and reports.

A batch of work flows one way: `plan` reads what there is to train (`rows/`) and on what (`corpora/`), `runs` trains one
row and leaves a log of it, `activations`, `timing`, `invariance` and `significance` measure what is no training,
`sections/` make a table and a plot of each of these, and `report` writes them down.
"""
