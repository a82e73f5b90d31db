"""Benchmarks: absolute times are reported, never asserted."""
