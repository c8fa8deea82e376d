"""The Docker environment: the cluster of ``docker-compose.yml``, with faults by the Docker SDK."""
