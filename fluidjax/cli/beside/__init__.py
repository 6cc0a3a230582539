"""Substitutes for modules that old scripts import beside paddle and that may be missing: six, and
distutils, which Python 3.12 dropped.
"""
