"""The annotators' pending queue: which record is whose next, so that no two give the same last label.

An annotator and a dataset come in; a page of record ids that are theirs for a while goes out. Read `page` first;
`holds` says who looks at what, `mixed` where controls come among their other work, `practice` what has to be passed
before it. `tables` are triggers in Argilla's database, which keep the queue and each record's status in step.
"""
