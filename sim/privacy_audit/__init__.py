"""Privacy audits: tests of whether a mechanism keeps the epsilon that it claims.

A subject (`subject.Subject`) turns a data set into the transcripts of whole sessions, `pairs` generates the neighbours
to try it on, and a tester bounds its privacy loss: `audit.worst_loss` from the noise distribution,
`sampling.lower_bound` from transcripts. `greybox.faults` compares runs of its code. `twins` holds subjects that are
broken on purpose.
"""
