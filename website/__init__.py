"""How docs/*.md become a site: `make docs` (docs/testing.md). The pages stay files that read well
by themselves.
"""
