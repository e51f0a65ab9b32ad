"""The Kubernetes manifests, without a cluster."""

import shutil
import subprocess

import pytest

from tests.serving.proxy_process import EXPORT

yaml = pytest.importorskip("yaml")
FOLDER = EXPORT / "kubernetes"
FILES = sorted(FOLDER.glob("*.yaml"))
KUSTOMIZATION = yaml.safe_load((EXPORT / "kustomization.yaml").read_text())
VERSION = "1.31"  # of Kubernetes; the validator has its schemas


def documents(*texts):
    """Return the documents of texts by kind and name."""
    return {
        (document["kind"], document["metadata"]["name"]): document
        for text in texts
        for document in yaml.safe_load_all(text)
    }


@pytest.fixture(scope="module")
def cluster():
    """Return what `kubectl apply -k export` creates."""
    found = documents(*(file.read_text() for file in FILES))
    for entry in KUSTOMIZATION["configMapGenerator"]:
        files = [EXPORT / name for name in entry["files"]]
        data = {file.name: file.read_text() for file in files}
        found["ConfigMap", entry["name"]] = {"data": data}
    return found


@pytest.fixture(scope="module")
def pod(cluster):
    return cluster["Deployment", "translator"]["spec"]["template"]


@pytest.fixture(scope="module")
def containers(pod):
    return {each["name"]: each for each in pod["spec"]["containers"]}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_manifests_follow_their_schema(file):
    validator = pytest.importorskip("kubernetes_validate")
    for document in documents(file.read_text()).values():
        validator.validate(document, VERSION, strict=True)


def test_kustomization_contains_the_shipped_files(cluster):
    resources = [EXPORT / name for name in KUSTOMIZATION["resources"]]
    assert sorted(resources) == FILES
    # The deployment names the maps without a hash.
    assert KUSTOMIZATION["generatorOptions"] == {"disableNameSuffixHash": True}
    for name, folder, pattern in (
        ("translator-configuration", EXPORT, "*.config"),
        ("translator-proxy", EXPORT / "proxy", "*"),
        ("translator-page", EXPORT / "demo", "*"),
    ):
        files = {file.name: file.read_text() for file in folder.glob(pattern)}
        assert cluster["ConfigMap", name]["data"] == files


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_kubectl_builds_the_kustomization(cluster):
    command = ["kubectl", "kustomize", str(EXPORT)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    built = documents(done.stdout)
    assert built.keys() == cluster.keys()
    for key, document in cluster.items():
        assert document.items() <= built[key].items()


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


def test_containers_have_minimal_privileges(cluster, pod):
    for each in (pod, cluster["Pod", "translator-models"]):
        spec = each["spec"]
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
    budget = cluster["PodDisruptionBudget", "translator"]["spec"]
    for selector in (
        service["selector"],
        policy["podSelector"]["matchLabels"],
        budget["selector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()


def test_minimum_replicas_exceed_the_disruption_budget(cluster):
    scaling = cluster["HorizontalPodAutoscaler", "translator"]["spec"]
    assert scaling["scaleTargetRef"]["name"] == "translator"
    budget = cluster["PodDisruptionBudget", "translator"]["spec"]
    assert budget["minAvailable"] < scaling["minReplicas"]
    assert scaling["minReplicas"] < scaling["maxReplicas"]
