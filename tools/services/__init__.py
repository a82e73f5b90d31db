"""The real parts that tests talk to, started on loopback: a Docker engine, an image registry, Kubo, base images, geth,
and a newer engine that gives containers the GPUs of a played driver.

`python -m tools.services up|down|status|env`. Each clone of the project has an instance of its own, with its state
under the cache folder; what is slow to make (programs built from Go modules, base image archives) all clones share.
"""
