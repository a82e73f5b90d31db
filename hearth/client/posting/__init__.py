"""Posting a job: its sources, its plan, its price, its journal, and the transaction."""
