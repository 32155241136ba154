"""The experiments of the papers: a folder for each task.

`reporting` makes reports, and `runs` makes trainings of Keras models. `python -m experiments --task
TASK [DATA]` trains what is not trained yet, measures, and writes a report. A folder is a task if it
has a `task.py`; see `README.md`.
"""
