# Stands in for redis:7.4.7-bookworm, which cannot be fetched everywhere: Debian's Redis 7.0 with the same user, folder
# and volume, https://github.com/redis/docker-library-redis
FROM python:3.11.14-slim-bookworm
RUN groupadd -r -g 999 redis && useradd -r -g redis -u 999 redis
RUN apt-get update -q && apt-get install -qy --no-install-recommends redis-server
RUN install -d -o redis -g redis /data
VOLUME /data
WORKDIR /data
CMD ["redis-server"]
