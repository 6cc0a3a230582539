"""Rules of ops, by family."""
