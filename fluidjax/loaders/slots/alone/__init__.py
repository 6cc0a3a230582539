"""The ``paddle`` package for a pipe command's Python, whose path contains this folder."""
