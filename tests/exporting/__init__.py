"""Programs in other runtimes' formats."""
