"""Settings: of the command line and its projects, and of the files that daemons read."""
