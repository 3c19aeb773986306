"""The files of deploy/ name what the code has: commands, settings, ports, paths, metrics."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import debian
import pytest
import yaml

from liveboard import __version__, config
from liveboard.config import Settings, documented_keys

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file())
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
MANIFESTS: list[dict[str, Any]] = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
ALERTS: list[dict[str, Any]] = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"][0]["rules"]
ALERT_TESTS: list[dict[str, Any]] = yaml.safe_load((DEPLOY / "alerts_test.yml").read_text())["tests"]
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana.json").read_text())
METRICS = "".join((ROOT / f"src/liveboard/{place}/metrics.py").read_text() for place in ("serving", "orchestrator"))
OF_PROXY = {"LIVEBOARD_LISTEN", "LIVEBOARD_SERVER_1", "LIVEBOARD_SERVER_2"}
OF_PROMETHEUS = {"up", "process_resident_memory_bytes", "process_cpu_seconds_total"}
# As /metrics/executors/prometheus of Spark 4.3 has them.
OF_EXECUTORS = {
    f"metrics_executor_{name}"
    for name in (
        "JVMHeapMemory_bytes",
        "JVMOffHeapMemory_bytes",
        "MajorGCTime_seconds_total",
        "MinorGCTime_seconds_total",
        "ProcessTreeJVMRSSMemory_bytes",
        "activeTasks",
        "failedTasks_total",
    )
}


def manifest(kind: str, name: str) -> dict[str, Any]:
    """A Kubernetes object."""
    [found] = [each for each in MANIFESTS if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


PODS = [
    (kind, manifest(kind, f"liveboard-{name}")["spec"]["template"])
    for kind, name in (("StatefulSet", "pipeline"), ("Deployment", "server"))
]


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
def test_every_variable_is_a_setting(file: Path) -> None:
    known = {f"LIVEBOARD_{key.upper().replace('.', '_')}" for key in documented_keys()} | {"LIVEBOARD_BOARD"} | OF_PROXY
    named = set(re.findall(r"\bLIVEBOARD_[A-Z0-9_]+", file.read_text()))
    assert {name.removesuffix("_FILE") for name in named} - known == set()


def test_every_command_is_there() -> None:
    text = subprocess.run([sys.executable, "-m", "liveboard", "--help"], capture_output=True, text=True, check=True)
    commands = set(re.findall(r"^    ([a-z]+) ", text.stdout, re.MULTILINE))
    units = "".join(path.read_text() for path in (DEPLOY / "systemd").iterdir())
    named = set(re.findall(r"^ExecStart=\S+/liveboard (\w+)", units, re.MULTILINE))
    named |= {service["command"][0] for service in COMPOSE["services"].values() if "command" in service}
    named |= {container["args"][0] for _, pod in PODS for container in pod["spec"]["containers"]}
    assert named == {"serve", "pipeline"}
    assert named <= commands


def test_ports_agree() -> None:
    metrics = re.findall(r"METRICS_PORT=(\d+)", DOCKERFILE)[0]
    server = str(Settings().server.port)
    assert re.findall(r"^EXPOSE (.+)$", DOCKERFILE, re.MULTILINE) == [f"{server} {metrics}"]
    places = [container["ports"][0]["containerPort"] for _, pod in PODS for container in pod["spec"]["containers"]]
    assert [str(port) for port in places] == [metrics, server]
    assert [pod["metadata"]["annotations"]["prometheus.io/port"] for _, pod in PODS] == [metrics, server]
    scraped = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    targets = [target for job in scraped for each in job["static_configs"] for target in each["targets"]]
    assert targets == [f"server-1:{server}", f"server-2:{server}", f"pipeline:{metrics}", "pipeline:4040"]
    assert {target.split(":")[0] for target in targets} <= COMPOSE["services"].keys()
    assert manifest("Service", "liveboard-pipeline")["spec"]["ports"][0]["port"] == int(metrics)
    proxy = COMPOSE["services"]["balancer"]["environment"]
    assert {proxy[f"LIVEBOARD_SERVER_{number}"] for number in (1, 2)} == set(targets[:2])
    unit = (DEPLOY / "systemd" / "liveboard-pipeline.service").read_text()
    assert f"LIVEBOARD_PIPELINE_METRICS_PORT={metrics}" in unit


def test_sparks_executors_are_scraped_where_its_ui_is_on() -> None:
    [job] = [
        job
        for job in yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
        if job["static_configs"][0]["targets"] == ["pipeline:4040"]
    ]
    assert job["metrics_path"] == "/metrics/executors/prometheus"
    told = {"LIVEBOARD_SPARK_CONF": COMPOSE["services"]["pipeline"]["environment"]["LIVEBOARD_SPARK_CONF"]}
    assert config.load(None, told).spark.conf == {"spark.ui.enabled": "true", "spark.ui.killEnabled": "false"}


def test_the_image_has_a_version_and_takes_what_it_needs_alone() -> None:
    image = f"liveboard:{__version__}"
    services = [service for service in COMPOSE["services"].values() if "build" in service]
    containers = [container for _, pod in PODS for container in pod["spec"]["containers"]]
    assert {each["image"] for each in (*services, *containers)} == {image}
    assert {container["imagePullPolicy"] for container in containers} == {"IfNotPresent"}
    assert f"-t {image} ." in DOCKERFILE
    [copied] = re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE)
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert ignored == ["*", *(f"!{name}" for name in copied.split())]
    secret = (DEPLOY / COMPOSE["secrets"]["key"]["file"]).relative_to(ROOT)
    assert f"/{secret}" in (ROOT / ".gitignore").read_text().splitlines()


def test_nothing_runs_as_root() -> None:
    [user] = re.findall(r"^USER (\d+)$", DOCKERFILE, re.MULTILINE)
    assert int(user) > 0
    for _, pod in PODS:
        assert pod["spec"]["securityContext"]["runAsNonRoot"]
        assert pod["spec"]["securityContext"]["runAsUser"] == int(user)
        assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["spec"]["containers"]:
            assert not container["securityContext"]["allowPrivilegeEscalation"]
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    for unit in (DEPLOY / "systemd").iterdir():
        assert "DynamicUser=yes" in unit.read_text()


def test_probes_ask_what_is_there_for_it() -> None:
    [server] = PODS[1][1]["spec"]["containers"]
    assert server["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert server["readinessProbe"]["httpGet"]["path"] == "/readyz"
    [pipeline] = PODS[0][1]["spec"]["containers"]
    assert {pipeline[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")} == {"/metrics"}
    assert "GET /readyz" in (DEPLOY / "haproxy.cfg").read_text()
    assert "/healthz" in str(COMPOSE["services"]["server-1"]["healthcheck"])


def test_pods_get_no_variables_that_are_no_settings() -> None:
    # Kubernetes makes some of the name of every Service, and `liveboard` is one.
    with pytest.raises(config.ConfigError, match="LIVEBOARD_SERVICE_HOST"):
        config.load(None, {"LIVEBOARD_SERVICE_HOST": "10.0.0.1"})
    assert [pod["spec"]["enableServiceLinks"] for _, pod in PODS] == [False, False]


def test_what_is_mounted_is_what_is_used() -> None:
    [storage] = re.findall(r"LIVEBOARD_STORAGE_DIR=(\S+)", DOCKERFILE)
    for name in ("pipeline", "pipeline-2", "server-1", "server-2"):
        mounted = dict(volume.split(":") for volume in COMPOSE["services"][name]["volumes"])
        assert mounted[name] == storage
        assert mounted.keys() <= COMPOSE["volumes"].keys()
    for name in ("balancer", "prometheus"):
        files = [volume.split(":")[0] for volume in COMPOSE["services"][name]["volumes"] if volume.startswith("./")]
        assert files
        assert [file for file in files if not (DEPLOY / file).is_file()] == []
    for _, pod in PODS:
        [container] = pod["spec"]["containers"]
        assert storage in [mount["mountPath"] for mount in container["volumeMounts"]]
        assert container["args"][-1] == "/etc/liveboard/liveboard.toml"


@pytest.fixture
def in_manifests(tmp_path: Path) -> Settings:
    """The configuration that the manifests have."""
    (tmp_path / "liveboard.toml").write_text(manifest("ConfigMap", "liveboard")["data"]["liveboard.toml"])
    return config.load(tmp_path / "liveboard.toml", {})


def test_the_configuration_in_the_manifests_is_one(in_manifests: Settings) -> None:
    assert not in_manifests.kafka.embedded


def test_every_pipeline_waits_for_its_turn_and_goes_on_from_the_others_checkpoints(in_manifests: Settings) -> None:
    [home] = re.findall(r"^WORKDIR (\S+)$", DOCKERFILE, re.MULTILINE)
    [made] = re.findall(r"^RUN mkdir (.+)$", DOCKERFILE, re.MULTILINE)
    for name in ("pipeline", "pipeline-2"):
        service = COMPOSE["services"][name]
        assert service["command"] == ["pipeline", "--standby"]
        shared = service["environment"]["LIVEBOARD_STORAGE_CHECKPOINTS"]
        assert f"checkpoints:{shared}" in service["volumes"]
        assert shared in [f"{home}/{directory}" for directory in made.split()]
    pod = PODS[0][1]["spec"]
    [container] = pod["containers"]
    assert container["args"][:2] == ["pipeline", "--standby"]
    [mount] = [each for each in container["volumeMounts"] if each["mountPath"] == in_manifests.storage.checkpoints]
    [volume] = [each for each in pod["volumes"] if each["name"] == mount["name"]]
    claim = manifest("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"])
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert " pipeline --standby " in (DEPLOY / "systemd" / "liveboard-pipeline.service").read_text()


def test_kafka_is_the_one_that_comes_with_liveboard() -> None:
    [version] = re.findall(r'name="kafka_2.13" rev="([^"]+)"', (ROOT / "ivy.xml").read_text())
    assert COMPOSE["services"]["broker"]["image"] == f"apache/kafka:{version}"
    embedded = dict(re.findall(r"^([a-z.]+)=(.*)$", (ROOT / "src/liveboard/kafka/broker.py").read_text(), re.MULTILINE))
    told = COMPOSE["services"]["broker"]["environment"]
    composed = {name.removeprefix("KAFKA_").lower().replace("_", "."): value for name, value in told.items()}
    assert {"auto.create.topics.enable", "log.retention.ms"} <= composed.keys()
    same = {name for name in composed.keys() & embedded.keys() if "{" not in embedded[name]}
    assert {name: composed[name] for name in same} == {name: embedded[name] for name in same}


def test_selectors_find_their_pods() -> None:
    for kind, pod in PODS:
        [found] = [each for each in MANIFESTS if each["kind"] == kind]
        labels = pod["metadata"]["labels"]
        assert found["spec"]["selector"]["matchLabels"] == labels
        [spread] = pod["spec"]["topologySpreadConstraints"]
        assert spread["labelSelector"]["matchLabels"] == labels
    headless = manifest("Service", manifest("StatefulSet", "liveboard-pipeline")["spec"]["serviceName"])["spec"]
    assert (headless["clusterIP"], headless["selector"]) == ("None", PODS[0][1]["metadata"]["labels"])
    server = PODS[1][1]["metadata"]["labels"]
    assert manifest("Service", "liveboard")["spec"]["selector"] == server
    assert manifest("PodDisruptionBudget", "liveboard-server")["spec"]["selector"]["matchLabels"] == server


EXPRESSIONS = {rule["alert"]: rule["expr"] for rule in ALERTS} | {
    f"{panel['title']}, {target['refId']}": target["expr"]
    for panel in DASHBOARD["panels"]
    for target in panel["targets"]
}
SERIES = {each["series"]: each["series"] for test in ALERT_TESTS for each in test["input_series"]}


@pytest.mark.parametrize("expression", (EXPRESSIONS | SERIES).values(), ids=EXPRESSIONS | SERIES)
def test_every_metric_is_there(expression: str) -> None:
    inside = re.sub(r'"[^"]*"|by \([^)]*\)', "", expression)
    names = set(re.findall(r"\b((?:liveboard|process|metrics_executor)_[A-Za-z_]+|up)\b", inside))
    assert names
    known = set(re.findall(r'"(liveboard_[a-z_]+)"', METRICS))
    known |= {f"{name}_total" for name in known} | {f"{name}_bucket" for name in known} | OF_PROMETHEUS | OF_EXECUTORS
    assert names - known == set()


def test_every_alert_has_its_page_in_the_runbook() -> None:
    runbook = (ROOT / "docs/runbook.md").read_text()
    assert re.findall(r"^## (\w+)$", runbook, re.MULTILINE) == [rule["alert"] for rule in ALERTS]
    for rule in ALERTS:
        assert rule["annotations"]["runbook"] == f"docs/runbook.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in ("critical", "warning")


@pytest.mark.parametrize(
    "command",
    [
        ("hadolint", DEPLOY / "Dockerfile"),
        ("kubernetes-validate", "--strict", *sorted(DEPLOY.glob("kubernetes*.yaml"))),
    ],
    ids=lambda command: command[0],
)
def test_the_image_and_the_manifests_are_as_their_checkers_want_them(command: tuple[str | Path, ...]) -> None:
    program, *arguments = command
    check(Path(sys.prefix, "bin", program), *arguments)


def test_prometheus_takes_what_it_scrapes_and_its_alerts_are_raised_when_they_must(tmp_path: Path) -> None:
    promtool = debian.unpack("promtool", "prometheus", "the test of the alerts", tmp_path)
    check(promtool, "check", "config", DEPLOY / "prometheus.yml")
    check(promtool, "test", "rules", DEPLOY / "alerts_test.yml")


def test_haproxy_starts_also_where_a_name_leads_nowhere_yet() -> None:
    haproxy = debian.provide("haproxy", "haproxy", "the test of its configuration")
    places = {"LISTEN": "127.0.0.1:8080", "SERVER_1": "server-1.invalid:8080", "SERVER_2": "127.0.0.1:8081"}
    environment = {f"LIVEBOARD_{name}": place for name, place in places.items()}
    check(haproxy, "-c", "-f", DEPLOY / "haproxy.cfg", **environment)


@pytest.mark.skipif(not debian.find("systemd-analyze"), reason="this machine has no systemd")
@pytest.mark.parametrize("unit", sorted((DEPLOY / "systemd").iterdir()), ids=lambda path: path.name)
def test_systemd_takes_the_units(unit: Path, tmp_path: Path) -> None:
    copy = tmp_path / unit.name.replace("@", "@8081")
    shipped = unit.read_text().replace("/opt/liveboard/bin/liveboard", "/bin/true")
    with_secrets = re.sub(r"^#(?=[A-Z]\w+=)", "", shipped, flags=re.MULTILINE)
    assert re.findall(r"^LoadCredential=kafka:", with_secrets, re.MULTILINE)
    for text in (shipped, with_secrets):
        copy.write_text(text)
        assert check("systemd-analyze", "verify", copy) == ""


def check(*command: str | Path, **environment: str) -> str:
    """What a checker says, which must be content."""
    variables = {**os.environ, **environment}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=variables)
    assert done.returncode == 0, done.stdout
    return done.stdout
