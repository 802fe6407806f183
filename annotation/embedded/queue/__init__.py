"""The annotators' pending queue: which record is whose next, so that no two give the same last label.

An annotator and a dataset come in; a page of record ids that are hers for a while goes out. Read `page` first. `tables`
and `record_status` are triggers in Argilla's database, which keep the queue in step.
"""
