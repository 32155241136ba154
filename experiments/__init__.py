"""The experiments of the papers: a folder for each task, `reporting` for reports, `runs` for
Keras trainings.

`python -m experiments --task TASK [DATA]` trains what is not trained yet, measures, and writes a
report. A folder is a task if it has a `task.py`; see `README.md`.
"""
