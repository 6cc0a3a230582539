"""Hostile files: mutated copies of every kind of file that is read. `python -m tests.fuzz` runs
many (docs/testing.md).
"""
