"""Rewrites of a program for the devices of a mesh, and how the result runs there."""
