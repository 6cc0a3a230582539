"""Readers of data that lies in local files."""
