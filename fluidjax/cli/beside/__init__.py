"""What old scripts import beside paddle, for where it is not installed: six, and distutils, which
Python 3.12 dropped.
"""
