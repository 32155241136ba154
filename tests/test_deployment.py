"""The files for containers and clusters: each is read as its tool reads it."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SERVING = ROOT / "deploy" / "tensorflow_serving"
DOCKERFILES = ["deploy/Dockerfile", "examples/Dockerfile.train"]


# The fields of a JobSet (jobset.x-k8s.io/v1alpha2) beside its jobs, of those that the file uses.
JOBSET = {
    "network": {"enableDNSHostnames": bool, "subdomain": str},
    "failurePolicy": {"maxRestarts": int},
}
# Stands for Python in the scripts: says which worker of which cluster it would be.
PYTHON = 'echo "$TF_CONFIG" | tr -d "\\n"; echo " $@"'


def words(text):
    """Returns the words of a configuration without its comments."""
    return re.sub(r"#.*", "", text).split()


def documents(path):
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all(path.read_text()))


def executable(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)


def workers(output):
    """Returns the addresses, the index and the arguments of each worker that was started."""
    lines = [line.rpartition("} ") for line in output.splitlines()]
    found = [(json.loads(config + "}"), arguments) for config, _, arguments in lines]
    assert all(config["task"]["type"] == "worker" for config, _ in found)
    return [
        (config["cluster"]["worker"], config["task"]["index"], arguments)
        for config, arguments in found
    ]


@pytest.mark.parametrize("path", ["deploy/compose.yaml", "deploy/tensorflow_serving/compose.yaml"])
def test_a_compose_file_follows_the_specification(path):
    schemas = pytest.importorskip("check_jsonschema.builtin_schemas")
    jsonschema = pytest.importorskip("jsonschema")
    (file,) = documents(ROOT / path)
    jsonschema.validate(file, schemas.get_builtin_schema("vendor.compose-spec"))
    (service,) = file["services"].values()
    for volume in service["volumes"]:
        folder = re.sub(r"\$\{MODELS:-(.*?)\}", r"\1", volume).partition(":")[0]
        assert folder.endswith("models") or (ROOT / path).parent.joinpath(folder).is_dir()
    assert service["logging"]["options"]["max-size"]
    if "build" in service:
        context = ROOT / "deploy" / service["build"]["context"]
        assert (context / service["build"]["dockerfile"]).is_file()


def assert_restricted(pod):
    """Asserts what the level "restricted" of the Pod Security Standards asks of a pod."""
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert pod["automountServiceAccountToken"] is False
    security = pod["securityContext"]
    assert security["runAsNonRoot"] is True and security["runAsUser"] > 0
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    for volume in pod["volumes"]:
        assert set(volume) - {"name"} <= {"configMap", "emptyDir", "persistentVolumeClaim"}
    for container in pod["containers"]:
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert not any("hostPort" in port for port in container["ports"])
        mounted = {each["name"] for each in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]}
        assert re.search(r":\d[\w.-]*$|@sha256:\w{64}$", container["image"])


@pytest.mark.parametrize(
    ("path", "kinds"),
    [("deploy", []), ("deploy/tensorflow_serving", ["ConfigMap"])],
    ids=["ours", "TensorFlow Serving"],
)
def test_kubernetes_takes_the_manifest(path, kinds):
    kubernetes = pytest.importorskip("kubernetes_validate")
    found = documents(ROOT / path / "kubernetes.yaml")
    assert [each["kind"] for each in found] == [*kinds, "Deployment", "Service"]
    for each in found:
        kubernetes.validate(each, kubernetes.latest_version(), strict=True)
    *_, deployment, service = found
    assert_restricted(deployment["spec"]["template"]["spec"])
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == labels == deployment["spec"]["selector"]["matchLabels"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    ports = {each["containerPort"] for each in container["ports"]}
    assert {each["port"] for each in service["spec"]["ports"]} == ports
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        (asked,) = (
            container[name][way] for way in ("httpGet", "tcpSocket") if way in container[name]
        )
        assert asked["port"] in ports


def test_the_manifest_of_our_service_fits_its_image_and_its_names():
    deployment, service = documents(ROOT / "deploy" / "kubernetes.yaml")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    assert f"EXPOSE {container['ports'][0]['containerPort']}\n" in dockerfile
    assert (
        f"--uid {deployment['spec']['template']['spec']['securityContext']['runAsUser']} "
        in dockerfile
    )
    name = service["metadata"]["name"]
    namespace = "default"
    names = [name, f"{name}.{namespace}", f"{name}.{namespace}.svc.cluster.local"]
    assert container["args"] == ["--allowed_hosts", *names]
    (command,) = container["lifecycle"]["preStop"].values()
    assert int(command["command"][1]) >= 5
    grace = deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert grace >= 90 + int(command["command"][1])
    probes = {
        name: each["httpGet"]["path"] for name, each in container.items() if name.endswith("Probe")
    }
    assert probes == {
        "startupProbe": "/readyz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }


def test_the_jobs_of_the_jobset_are_jobs():
    kubernetes = pytest.importorskip("kubernetes_validate")
    (jobset,) = documents(ROOT / "examples" / "train-jobset.yaml")
    assert (jobset["apiVersion"], jobset["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
    for name, value in jobset["spec"].items():
        if name != "replicatedJobs":
            assert {key: type(each) for key, each in value.items()}.items() <= JOBSET[name].items()
    (job,) = jobset["spec"]["replicatedJobs"]
    assert set(job) <= {"name", "replicas", "template"}
    whole = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job["name"]},
        **job["template"],
    }
    kubernetes.validate(whole, kubernetes.latest_version(), strict=True)
    pod = job["template"]["spec"]["template"]["spec"]
    assert_restricted(pod)
    (shared,) = (
        volume for volume in pod["volumes"] if volume.get("emptyDir", {}).get("medium") == "Memory"
    )
    (container,) = pod["containers"]
    assert {"name": shared["name"], "mountPath": "/dev/shm"} in container["volumeMounts"]
    dockerfile = (ROOT / "examples" / "Dockerfile.train").read_text()
    assert f" -t {container['image']} ." in dockerfile
    assert f"\nWORKDIR {container['workingDir']}\n" in dockerfile
    assert f"--uid {pod['securityContext']['runAsUser']} " in dockerfile


def test_a_pod_of_the_jobset_is_the_worker_of_its_index(tmp_path):
    (jobset,) = documents(ROOT / "examples" / "train-jobset.yaml")
    (job,) = jobset["spec"]["replicatedJobs"]
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    executable(tmp_path / ".venv" / "bin" / "python", PYTHON)
    variables = {each["name"]: each["value"] for each in container["env"]}
    run = subprocess.run(
        [*container["command"], *container["args"]],
        cwd=tmp_path,
        env={**os.environ, **variables, "JOB_COMPLETION_INDEX": "3"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    ((addresses, index, arguments),) = workers(run.stdout)
    count = job["template"]["spec"]["completions"]
    name = jobset["metadata"]["name"]
    subdomain = jobset["spec"]["network"]["subdomain"]
    port = container["ports"][0]["containerPort"]
    assert addresses == [f"{name}-{job['name']}-0-{i}.{subdomain}:{port}" for i in range(count)]
    assert index == 3
    assert arguments == "-m nmt train -m /data/model --config /data/options.json"


def test_slurm_starts_a_worker_for_each_task(tmp_path):
    """With srun and scontrol in the place of Slurm's."""
    script = (ROOT / "examples" / "train.slurm").read_text()
    directives = dict(
        re.findall(r"^#SBATCH --([\w-]+)=(\S+)$", script.partition("\nset ")[0], re.MULTILINE)
    )
    kept = {
        "job-name",
        "nodes",
        "ntasks-per-node",
        "gpus-per-task",
        "cpus-per-task",
        "time",
        "signal",
    }
    assert set(directives) == kept
    nodes = int(directives["nodes"])
    tasks = int(directives["ntasks-per-node"])
    executable(tmp_path / ".venv" / "bin" / "python", PYTHON)
    requeued = "[ $1 = requeue ] && { touch requeued-$2; exit; }; "
    executable(
        tmp_path / "bin" / "scontrol", requeued + "printf 'node%s\\n' $(seq " + str(nodes) + ")"
    )
    srun = 'echo "$SRUN_CPUS_PER_TASK" >&2; while [[ $1 == --* ]]; do shift; done; '
    srun += 'for i in $(seq 0 $((SLURM_NTASKS - 1))); do SLURM_PROCID=$i "$@"; done'
    executable(tmp_path / "bin" / "srun", srun)
    slurm = {
        "SLURM_JOB_ID": "1234567",
        "SLURM_JOB_NODELIST": "node[1-2]",
        "SLURM_NTASKS": str(nodes * tasks),
    }
    slurm |= {
        "SLURM_CPUS_PER_TASK": directives["cpus-per-task"],
        "SLURM_NTASKS_PER_NODE": str(tasks),
    }
    slurm |= {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    command = ["bash", ROOT / "examples" / "train.slurm", "-m", "a model"]
    run = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **slurm}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert (
        run.stderr == directives["cpus-per-task"] + "\n"
    )  # for srun, which does not take it from the job
    found = workers(run.stdout)
    assert [index for _, index, _ in found] == list(range(nodes * tasks))
    ((addresses, _, arguments),) = {
        (tuple(addresses), 0, arguments) for addresses, _, arguments in found
    }
    assert len(set(addresses)) == nodes * tasks and arguments == "-m nmt train -m a model"
    hosts = [f"node{number // tasks + 1}" for number in range(nodes * tasks)]
    assert [address.partition(":")[0] for address in addresses] == hosts
    assert all(1024 < int(address.partition(":")[2]) < 32768 for address in addresses)
    assert not list(tmp_path.glob("requeued-*"))
    executable(tmp_path / ".venv" / "bin" / "python", "exit 143")
    for restarts, requeued in (("10", False), ("9", True)):
        again = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, **slurm, "SLURM_RESTART_COUNT": restarts}
        )
        assert (again.returncode, (tmp_path / "requeued-1234567").exists()) == (143, requeued)


@pytest.mark.parametrize("path", DOCKERFILES)
def test_docker_reads_the_files_and_installs_the_libraries_before_it_copies_the_sources(path):
    found = pytest.importorskip("dockerfile").parse_file(str(ROOT / path))
    assert found[0].cmd == "FROM"
    assert re.search(r":\d+\.\d+\.\d+-\S+$|@sha256:\w{64}$", found[0].value[0])
    steps = [(each.cmd, " ".join(each.value)) for each in found]
    (installs,) = (
        i for i, (cmd, text) in enumerate(steps) if cmd == "RUN" and "pip install" in text
    )
    before = {text for cmd, text in steps[:installs] if cmd == "COPY"}
    after = {text for cmd, text in steps[installs:] if cmd == "COPY"}
    assert after == {"rmsnorm_tf rmsnorm_tf", "nmt nmt"}
    assert not any("nmt" in text.split() for text in before)
    allowed = (ROOT / ".dockerignore").read_text().split()
    sources = [source for text in before | after for source in text.split()[:-1]]
    assert len(sources) > 4
    for source in sources:
        assert (ROOT / source).exists()
        assert f"!{source.partition('/')[0]}" in allowed


def test_the_image_starts_the_service_and_asks_for_its_health():
    found = pytest.importorskip("dockerfile").parse_file(str(ROOT / "deploy" / "Dockerfile"))
    by_name = {each.cmd: each for each in found}
    assert by_name["ENTRYPOINT"].json and by_name["HEALTHCHECK"].json
    assert by_name["ENTRYPOINT"].value[:4] == ("python", "-m", "nmt", "serve")
    assert by_name["EXPOSE"].value[0] == by_name["ENTRYPOINT"].value[-1]
    (check,) = (each for each in by_name["HEALTHCHECK"].value if "urlopen" in each)
    compile(check, "HEALTHCHECK", "exec")


def test_tensorflow_serving_can_read_the_models_configuration():
    config = pytest.importorskip("tensorflow_serving.config.model_server_config_pb2")
    from google.protobuf import text_format

    found = text_format.Parse((SERVING / "models.config").read_text(), config.ModelServerConfig())
    models = found.model_config_list.config
    assert [(model.base_path, model.model_platform) for model in models] == [
        (f"/models/{model.name}", "tensorflow") for model in models
    ]


@pytest.mark.parametrize("name", ["models.config", "batching.config", "monitoring.config"])
def test_kubernetes_has_the_configuration_of_the_compose_file(name):
    manifest = (SERVING / "kubernetes.yaml").read_text()
    (block,) = re.findall(rf"^  {re.escape(name)}: \|\n((?:    .*\n)+)", manifest, re.MULTILINE)
    assert words(block) == words((SERVING / name).read_text())
    assert f"/config/{name}" in manifest
    assert f"/config/{name}" in (SERVING / "compose.yaml").read_text()
