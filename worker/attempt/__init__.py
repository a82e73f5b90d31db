"""One attempt in stages: fetch, sandbox, results, upload, in a folder of its own, under an executor with threads."""
