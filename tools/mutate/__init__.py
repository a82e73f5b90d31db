"""Mutate the contracts by the operators of their syntax tree, and count how many mutants the tests kill.

`sources` says which tests a source has, `operators` reads one and lists its mutants, `build` compiles one, `run` plays
the tests against it in a forked process, `record` keeps and counts the results.
docs/decisions/0033-measure-tests-by-mutants.md says what is counted how.
"""
