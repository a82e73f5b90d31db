"""Hearth keeper: liveness checks and matching commits, paid per call."""
