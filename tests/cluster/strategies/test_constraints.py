"""The engine of constraints, and what the table refuses, in the API server's words."""

from typing import Any

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.kinds.gated import served
from berth.cluster.resources import Object
from berth.cluster.schemas.types import Schema, object_of
from berth.cluster.strategies import syntax
from berth.cluster.strategies.constraint_table import TABLE
from berth.cluster.strategies.constraints import ITSELF, Constraints, at_least, required, said
from berth.cluster.strategies.defaults import DEFAULTS
from berth.runtime.release import RELEASES

META = {"name": "x"}
SPACED = {**META, "namespace": "d"}


def reachable(schema: Schema | None, known: dict[str, Schema]) -> dict[str, Schema]:
    if schema is not None and schema.name not in known:
        known[schema.name] = schema
        for field in schema.fields.values():
            reachable(object_of(field.type), known)
    return known


def test_the_table_speaks_of_fields_that_there_are() -> None:
    gates = {"GenericWorkload", "CompositePodGroup", "DRADeviceTaintRules"}
    fields: dict[str, set[str]] = {}
    for release in RELEASES:
        known: dict[str, Schema] = {}
        for resource in served(gates, release):
            reachable(resource.schema, known)
        for name, schema in known.items():
            fields.setdefault(name.removeprefix("io.k8s.api."), set()).update(schema.fields)
    for table in (TABLE, DEFAULTS):
        assert table.keys() <= fields.keys()
        for name, of_type in table.items():
            assert set(of_type) - {ITSELF} <= fields[name], name


def test_a_constraint_holds_wherever_its_type_is() -> None:
    constraints = Constraints(
        {"core.v1.ContainerPort": {"containerPort": (at_least(1),), "name": (required(),)}}
    )
    container = {"name": "c", "image": "i", "ports": [{"containerPort": 0, "name": "a"}, {}]}
    spec = {"containers": [container], "initContainers": [container], "restartPolicy": "Sometimes"}
    found = constraints.violations(find("", "v1", "pods").schema, {"spec": spec})
    assert [str(error) for error in found] == [
        "spec.containers[0].ports[0].containerPort: Invalid value: 0: "
        "must be greater than or equal to 1",
        "spec.containers[0].ports[1].name: Required value",
        "spec.initContainers[0].ports[0].containerPort: Invalid value: 0: "
        "must be greater than or equal to 1",
        "spec.initContainers[0].ports[1].name: Required value",
        'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", '
        '"OnFailure"',
    ]


def test_the_table_comes_before_the_enums() -> None:
    table = {"core.v1.PodSpec": {"hostname": (said(syntax.dns1123_label),)}}
    schema, obj = find("", "v1", "pods").schema, {"spec": {"dnsPolicy": "x", "hostname": "X"}}
    fields = [error.field for error in Constraints(table).violations(schema, obj)]
    assert fields == ["spec.hostname", "spec.dnsPolicy"]


FLOW = {"priorityLevelConfiguration": {"name": "global-default"}}
PATHS = {"backend": {"service": {"name": "s", "port": {"number": 80}}}, "pathType": "Prefix"}


def ingress(**path: Any) -> Object:
    rule = {"host": "a.example.com", "http": {"paths": [{**PATHS, "path": "/", **path}]}}
    return {"metadata": SPACED, "spec": {"rules": [rule]}}


SYSCTLS = "template.spec.securityContext.sysctls"
BAD_SYSCTL = (
    "must have at most 253 characters and match regex "
    r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
)
MOUNTS = "template.spec.containers[0].volumeMounts"


def pod_template(spec: Object, *, sysctls: Any = (), mounts: Any = ()) -> Object:
    container: Object = {"name": "c", "image": "i", "imagePullPolicy": "Always"}
    if mounts:
        container["volumeMounts"] = [{"name": "v", **mount} for mount in mounts]
    valid = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "containers": [container]}
    context = {"securityContext": {"sysctls": sysctls}} if sysctls else {}
    return {"metadata": SPACED, "template": {"spec": {**valid, **context, **spec}}}


@pytest.mark.parametrize(
    ("key", "obj", "found"),
    [
        (("networking.k8s.io", "v1", "ingresses"), ingress(), []),
        (
            ("networking.k8s.io", "v1", "ingresses"),
            ingress(path="a"),
            ['spec.rules[0].http.paths[0].path: Invalid value: "a": must be an absolute path'],
        ),
        (
            ("networking.k8s.io", "v1", "ingresses"),
            ingress(backend={}),
            [
                'spec.rules[0].http.paths[0].backend: Invalid value: "": '
                "resource or service backend is required"
            ],
        ),
        (
            ("networking.k8s.io", "v1", "ingresses"),
            {"metadata": SPACED, "spec": {}},
            ["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"],
        ),
        (
            ("networking.k8s.io", "v1", "ingressclasses"),
            {"metadata": META, "spec": {"controller": "nginx"}},
            [
                'spec.controller: Invalid value: "nginx": must be a domain-prefixed path '
                '(such as "acme.io/foo")'
            ],
        ),
        (
            ("flowcontrol.apiserver.k8s.io", "v1", "flowschemas"),
            {"metadata": META, "spec": {**FLOW, "matchingPrecedence": 70000, "rules": [{}]}},
            [
                "spec.matchingPrecedence: Invalid value: 70000: must not be greater than 10000",
                "spec.rules[0].subjects: Required value: subjects must contain at least one value",
                "spec.rules[0]: Required value: at least one of resourceRules and "
                "nonResourceRules has to be non-empty",
            ],
        ),
        (
            ("", "v1", "persistentvolumes"),
            {
                "metadata": META,
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "capacity": {"storage": "1Gi"},
                    "hostPath": {"path": "/a"},
                    "nfs": {"server": "s", "path": "/"},
                },
            },
            ["spec.nfs: Forbidden: may not specify more than 1 volume type"],
        ),
        (
            ("storage.k8s.io", "v1", "volumeattachments"),
            {
                "metadata": META,
                "spec": {
                    "attacher": "example.com",
                    "nodeName": "n",
                    "source": {
                        "inlineVolumeSpec": {
                            "accessModes": ["ReadWriteOnce"],
                            "csi": {"driver": "example.com", "volumeHandle": "v"},
                        }
                    },
                },
            },
            [],
        ),
        (
            ("storage.k8s.io", "v1", "volumeattachments"),
            {
                "metadata": META,
                "spec": {
                    "attacher": "example.com",
                    "nodeName": "n",
                    "source": {"inlineVolumeSpec": {}},
                },
            },
            [
                "spec.source.inlineVolumeSpec.csi: Required value: "
                "has to be specified in the context of inline volumes",
                "spec.source.inlineVolumeSpec.accessModes: Required value",
                "spec.source.inlineVolumeSpec: Required value: must specify a volume type",
            ],
        ),
        (
            ("", "v1", "endpoints"),
            {"metadata": SPACED, "subsets": [{"ports": [{"port": 70000}]}]},
            [
                "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`",
                "subsets[0].ports[0].port: Invalid value: 70000: "
                "must be between 1 and 65535, inclusive",
            ],
        ),
        (
            ("", "v1", "podtemplates"),
            {
                "metadata": SPACED,
                "template": {
                    "spec": {
                        "os": {"name": "plan9"},
                        "hostname": "A",
                        "restartPolicy": "Always",
                        "dnsPolicy": "ClusterFirst",
                        "containers": [
                            {
                                "name": "c",
                                "image": "i",
                                "imagePullPolicy": "Always",
                                "envFrom": [{}],
                                "lifecycle": {"preStop": {}},
                                "securityContext": {"runAsUser": -1},
                            }
                        ],
                    }
                },
            },
            [
                'template.spec.containers[0].envFrom[0]: Invalid value: "": must specify one of: '
                "`configMapRef` or `secretRef`",
                "template.spec.containers[0].securityContext.runAsUser: Invalid value: -1: "
                "must be between 0 and 2147483647, inclusive",
                "template.spec.containers[0].lifecycle.preStop: Required value: "
                "must specify a handler type",
                'template.spec.hostname: Invalid value: "A": a lowercase RFC 1123 label must '
                "consist of lower case alphanumeric characters or '-', and must start and end "
                "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
                "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                'template.spec.os: Unsupported value: "plan9": supported values: "linux", '
                '"windows"',
            ],
        ),
        (
            ("", "v1", "podtemplates"),
            pod_template(
                {"hostNetwork": True, "hostIPC": True},
                sysctls=[
                    {"name": "kernel.shm_rmid_forced", "value": "1"},
                    {"name": "net/ipv4/conf/eth0.100/forwarding", "value": "1"},
                    {"name": "foo-", "value": "1"},
                    {"name": "bar..", "value": "1"},
                    {"name": "", "value": "1"},
                    {"name": "a.b", "value": "1"},
                    {"name": "a.b", "value": "1"},
                    {"name": "a" * 254, "value": "1"},
                ],
            ),
            [
                f'{SYSCTLS}[0].name: Invalid value: "kernel.shm_rmid_forced": '
                "may not be specified when 'hostIPC' is true",
                f'{SYSCTLS}[1].name: Invalid value: "net/ipv4/conf/eth0.100/forwarding": '
                "may not be specified when 'hostNetwork' is true",
                f'{SYSCTLS}[2].name: Invalid value: "foo-": {BAD_SYSCTL}',
                f'{SYSCTLS}[3].name: Invalid value: "bar..": {BAD_SYSCTL}',
                f"{SYSCTLS}[4].name: Required value",
                f'{SYSCTLS}[6].name: Duplicate value: "a.b"',
                f'{SYSCTLS}[7].name: Invalid value: "{"a" * 254}": {BAD_SYSCTL}',
            ],
        ),
        (
            ("", "v1", "podtemplates"),
            pod_template(
                {"volumes": [{"name": "v", "emptyDir": {}}]},
                mounts=[
                    {"subPath": "a/b", "mountPath": "/1"},
                    {"subPathExpr": "$(POD_NAME)/logs..old", "mountPath": "/2"},
                    {"subPathExpr": "$(A)", "subPath": "a", "mountPath": "/3"},
                    {"subPath": "/a", "mountPath": "/4"},
                    {"subPathExpr": "$(A)/../b", "mountPath": "/5"},
                ],
            ),
            [
                f'{MOUNTS}[2].subPathExpr: Invalid value: "$(A)": '
                "subPathExpr and subPath are mutually exclusive",
                f'{MOUNTS}.subPath: Invalid value: "/a": must be a relative path',
                f"{MOUNTS}.subPathExpr: Invalid value: \"$(A)/../b\": must not contain '..'",
            ],
        ),
    ],
)
def test_what_is_refused(key: tuple[str, str, str], obj: Object, found: list[str]) -> None:
    assert [str(error) for error in find(*key).strategy.validate(obj, None)] == found
