"""The real parts that tests talk to, started on loopback: a Docker engine, an image registry, Kubo, base images.

`python -m tools.services up|down|status|env`. Each clone of the project has an instance of its own, with its state
under the cache folder; what is slow to make (the Kubo binary, base image archives) is shared between clones.
"""
