# Stands in for postgres:15.18-bookworm, which cannot be fetched everywhere: Debian's PostgreSQL 15 with the same user,
# folders, volume, signal and settings, https://github.com/docker-library/postgres/blob/master/15/bookworm/Dockerfile
FROM python:3.11.14-slim-bookworm
RUN groupadd -r -g 999 postgres && useradd -r -g postgres -u 999 -d /var/lib/postgresql -s /bin/bash postgres
RUN apt-get update -q && apt-get install -qy --no-install-recommends postgresql-common \
    && sed -i 's/^#create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf \
    && apt-get install -qy --no-install-recommends postgresql-15 \
    && sed -i "s/^#listen_addresses = 'localhost'/listen_addresses = '*'/" \
       /usr/share/postgresql/15/postgresql.conf.sample
RUN install -d -o postgres -g postgres -m 1777 /var/lib/postgresql/data \
    && install -d -o postgres -g postgres -m 3777 /var/run/postgresql
COPY postgres-entrypoint /usr/local/bin/
ENV LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin:/usr/lib/postgresql/15/bin PGDATA=/var/lib/postgresql/data
VOLUME /var/lib/postgresql/data
ENTRYPOINT ["postgres-entrypoint"]
STOPSIGNAL SIGINT
CMD ["postgres"]
