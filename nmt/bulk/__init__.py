"""Translates many text shards with an export, as an Apache Beam pipeline.

Needs an environment of its own.
"""
