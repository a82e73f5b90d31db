"""Hearth: a GPU job market in which the chain is the scheduler."""

__version__ = "0.1.0"
