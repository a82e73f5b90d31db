"""One deployment: its ABI, events, network file, profiles, deployment, and what is read from and sent to it."""
