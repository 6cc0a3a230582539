"""The implementation of ``fluid.profiler``."""
