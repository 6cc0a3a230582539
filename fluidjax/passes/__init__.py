"""Rewrites of programs: functions from a frozen desc to a frozen desc, one pass a module. None is there yet."""
