"""Content-addressed files: CIDs, canonical documents, UnixFS, ignore rules, stores."""
