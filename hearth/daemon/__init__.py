"""What every long-running program of Hearth shares: a key that signs, health over HTTP, logs, and the loop's pauses."""
