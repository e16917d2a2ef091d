"""Privacy audits: whether a mechanism keeps the epsilon that it claims.

Three small protocols: a subject (`subject.Subject`) turns a data set into the transcripts of whole sessions, a
generator of pairs (`pairs`) says on which neighbours to try it, and a tester gives a bound on its privacy loss:
`audit.worst_loss` from the law of the noise, `sampling.lower_bound` from what comes out. `twins` holds subjects that
are broken on purpose.
"""
