"""The page: its built files, and the server that `hearth web` runs on loopback."""
