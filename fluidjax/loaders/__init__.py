"""Feeds batches to a program: readers and their decorators, loaders, and positions of readers."""
