"""One attempt at a leased unit, in stages, each of which can be tested alone.

`task` says what is to be done and how a stage can end; `folder` is the attempt's place on disk; `fetch`, `sandbox`,
`results` and `upload` are the stages in their order, and `attempt` goes through them; `underway` knows what runs and
guards the disk; `executor` runs attempts in threads and writes into the journal how they end.
"""
