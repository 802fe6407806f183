"""Argilla on one machine, without Docker, or its parts on PostgreSQL: started by `annotation serve` and by `docker/`.

    annotation serve ── launch ──pipe── guardian ─┬─ web      argilla-server under uvicorn, changed as `patches` says
                                                  ├─ worker   Argilla's background jobs
                                                  └─ valkey   the job queue
                               └─ upkeep   a look through the database each night, and backups on time
    docker/compose.yaml ── service ── migrate, web, worker …, one container each

A home folder and an address come in; a running server and the owner's key go out. Read `launch` first. From the lowest
up: `home` (files, logs, backups), `sql` (statements that stand in files beside their modules), `search` and `queue`
(SQL), `page` (scripts and styles), `patches` (what we change in argilla-server, its search engine included), `edge` and
`connections` (what stands before it), `database` (what we add to Argilla's).
"""
