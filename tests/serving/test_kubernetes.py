"""The Kubernetes manifests, without a cluster."""

import runpy

import pytest

from tests.serving.proxy_process import EXPORT

yaml = pytest.importorskip("yaml")
FOLDER = EXPORT / "kubernetes"
FILES = sorted(FOLDER.glob("*.yaml"))
VERSION = "1.31"  # of Kubernetes; the validator has its schemas


def documents(*files):
    """Return the documents of files by kind and name."""
    return {
        (document["kind"], document["metadata"]["name"]): document
        for file in files
        for document in yaml.safe_load_all(file.read_text())
    }


@pytest.fixture(scope="module")
def cluster():
    return documents(*FILES)


@pytest.fixture(scope="module")
def pod(cluster):
    return cluster["Deployment", "translator"]["spec"]["template"]


@pytest.fixture(scope="module")
def containers(pod):
    return {each["name"]: each for each in pod["spec"]["containers"]}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_manifests_follow_their_schema(file):
    validator = pytest.importorskip("kubernetes_validate")
    for document in documents(file).values():
        validator.validate(document, VERSION, strict=True)


def test_config_maps_contain_the_shipped_files(cluster):
    script = runpy.run_path(str(FOLDER / "write_configuration.py"))
    expected = script["configuration"]()
    assert (FOLDER / "configuration.yaml").read_text() == expected, (
        "python export/kubernetes/write_configuration.py"
    )
    for name, files in script["MAPS"].items():
        data = cluster["ConfigMap", name]["data"]
        assert data == {
            file.rpartition("/")[2]: (EXPORT / file).read_text()
            for file in files
        }


def test_commands_and_images_equal_those_of_compose(containers):
    compose = yaml.safe_load((EXPORT / "compose.yaml").read_text())
    services = compose["services"]
    assert containers["server"]["args"] == services["translator"]["command"]
    assert containers["proxy"]["command"] == services["proxy"]["command"]
    for name, other in (("server", "translator"), ("proxy", "proxy")):
        assert containers[name]["image"] == services[other]["image"]
    (probe,) = containers["server"]["startupProbe"]["exec"]["command"][2:]
    script = services["translator"]["healthcheck"]["test"][-1]
    assert probe == script.replace("$$", "$")


def pods(cluster, pod):
    filling = cluster["Pod", "translator-models"]
    return [pod["spec"], filling["spec"]]


def test_containers_have_minimal_privileges(cluster, pod):
    for spec in pods(cluster, pod):
        context = spec["securityContext"]
        assert context["runAsNonRoot"] is True and context["runAsUser"] > 0
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["automountServiceAccountToken"] is False
        for container in spec["containers"]:
            privileges = container["securityContext"]
            assert privileges["allowPrivilegeEscalation"] is False
            assert privileges["readOnlyRootFilesystem"] is True
            assert privileges["capabilities"] == {"drop": ["ALL"]}
            resources = container["resources"]
            assert {"cpu", "memory"} <= resources["requests"].keys()
            assert "memory" in resources["limits"]


def test_mounted_volumes_exist(cluster, pod, containers):
    volumes = {each["name"]: each for each in pod["spec"]["volumes"]}
    mounted = set()
    for container in containers.values():
        paths = [mount["mountPath"] for mount in container["volumeMounts"]]
        # No mount inside another one, which may be read-only.
        assert not [a for a in paths for b in paths if a.startswith(b + "/")]
        for mount in container["volumeMounts"]:
            mounted.add(mount["name"])
            writable = "emptyDir" in volumes[mount["name"]]
            assert mount.get("readOnly", False) is not writable
    assert mounted == volumes.keys()
    for volume in volumes.values():
        if "configMap" in volume:
            assert ("ConfigMap", volume["configMap"]["name"]) in cluster
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            assert ("PersistentVolumeClaim", claim) in cluster
    # No manifest contains a token or key.
    assert not [kind for kind, _ in cluster if kind == "Secret"]


def test_probes_have_suitable_times(containers):
    for container in containers.values():
        for name in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert container[name]["timeoutSeconds"] >= 1
    server = containers["server"]
    start, ready = server["startupProbe"], server["readinessProbe"]
    assert start["periodSeconds"] * start["failureThreshold"] >= 300
    assert ready["periodSeconds"] * ready["failureThreshold"] <= 60
    # A busy server must not be restarted.
    assert "tcpSocket" in server["livenessProbe"]


def test_only_the_proxy_is_reachable(cluster, pod, containers):
    labels = pod["metadata"]["labels"]
    service = cluster["Service", "translator"]["spec"]
    (port,) = service["ports"]
    names = {
        each["name"]: each["containerPort"]
        for container in containers.values()
        for each in container["ports"]
    }
    assert names[port["targetPort"]] == 8443
    policy = cluster["NetworkPolicy", "translator"]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["egress"] == []
    for rule in policy["ingress"]:
        ports = [each["port"] for each in rule["ports"]]
        assert ports == ([8501] if "from" in rule else [8443])
    for selector in (
        service["selector"],
        policy["podSelector"]["matchLabels"],
        cluster["PodDisruptionBudget", "translator"]["spec"]["selector"][
            "matchLabels"
        ],
    ):
        assert selector.items() <= labels.items()


def test_minimum_replicas_exceed_the_disruption_budget(cluster):
    scaling = cluster["HorizontalPodAutoscaler", "translator"]["spec"]
    assert scaling["scaleTargetRef"]["name"] == "translator"
    budget = cluster["PodDisruptionBudget", "translator"]["spec"]
    assert budget["minAvailable"] < scaling["minReplicas"]
    assert scaling["minReplicas"] < scaling["maxReplicas"]
