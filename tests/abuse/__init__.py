"""Programs that abuse a worker's machine, each run with the profile and with the one defence that stops it removed."""
