"""Tests of worker.attempt."""
