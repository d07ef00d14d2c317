"""The Pod Security Standards: what violates them, and in which words."""

from typing import Any

import pytest

from berth.cluster.pod_security.policy import Policy, Standard, policy_of
from berth.cluster.resources import Object

BASELINE, RESTRICTED = Standard("baseline"), Standard("restricted")

HARDENED: Object = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def spec(*securities: Object, **more: Any) -> Object:
    """Containers ``a``, ``b``... with these security contexts."""
    containers = [
        {"name": name, "image": "i", "securityContext": each}
        for name, each in zip("abcdef", securities or ({},), strict=False)
    ]
    return {"containers": containers, **more}


def with_container(**more: Any) -> Object:
    return {"containers": [{"name": "a", "image": "i", **more}]}


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(spec(), "", id="a plain pod"),
        pytest.param(
            spec({"capabilities": {"add": ["NET_ADMIN", "CHOWN"]}}),
            'non-default capabilities (container "a" must not include "NET_ADMIN" in '
            "securityContext.capabilities.add)",
            id="capabilities",
        ),
        pytest.param(
            spec(hostNetwork=True, hostPID=True, hostIPC=False),
            "host namespaces (hostNetwork=true, hostPID=true)",
            id="namespaces of the node",
        ),
        pytest.param(
            spec(volumes=[{"name": "x", "hostPath": {}}, {"name": "y", "hostPath": {}}]),
            'hostPath volumes (volumes "x", "y")',
            id="files of the node",
        ),
        pytest.param(
            with_container(ports=[{"hostPort": 80}, {"hostPort": 0}, {"hostPort": 443}]),
            'hostPort (container "a" uses hostPorts 443, 80)',
            id="ports of the node",
        ),
        pytest.param(
            with_container(livenessProbe={"httpGet": {"host": "10.0.0.1"}}),
            'probe or lifecycle host (container "a" uses probe or lifecycle host "10.0.0.1")',
            id="probes of other hosts",
        ),
        pytest.param(
            spec({"privileged": True}, {"privileged": True}, {"privileged": False}),
            'privileged (containers "a", "b" must not set securityContext.privileged=true)',
            id="privileged containers",
        ),
        pytest.param(
            spec({"procMount": "Unmasked"}),
            'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
            id="an unmasked /proc",
        ),
        pytest.param(
            spec(
                {"seLinuxOptions": {"type": "spc_t", "user": "u"}},
                securityContext={"seLinuxOptions": {"role": "r"}},
            ),
            'seLinuxOptions (pod and container "a" set forbidden securityContext.seLinuxOptions: '
            'type "spc_t"; user may not be set; role may not be set)',
            id="SELinux options",
        ),
        pytest.param(
            spec(
                {"seccompProfile": {"type": "Unconfined"}},
                securityContext={"seccompProfile": {"type": "Unconfined"}},
            ),
            'seccompProfile (pod and container "a" must not set '
            'securityContext.seccompProfile.type to "Unconfined")',
            id="no filter of system calls",
        ),
        pytest.param(
            spec(securityContext={"sysctls": [{"name": "kernel.msgmax"}]}),
            "forbidden sysctls (kernel.msgmax)",
            id="kernel parameters",
        ),
        pytest.param(
            spec(securityContext={"windowsOptions": {"hostProcess": True}}),
            "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
            id="processes of a Windows node",
        ),
        pytest.param(
            spec(securityContext={"appArmorProfile": {"type": "Unconfined"}}),
            "forbidden AppArmor profile (Unconfined)",
            id="no AppArmor",
        ),
    ],
)
def test_baseline(pod: Object, want: str) -> None:
    assert BASELINE.violations({}, pod) == want


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(spec(HARDENED, HARDENED), "", id="a hardened pod"),
        pytest.param(
            spec(),
            'allowPrivilegeEscalation != false (container "a" must set '
            "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities "
            '(container "a" must set securityContext.capabilities.drop=["ALL"]), '
            'runAsNonRoot != true (pod or container "a" must set '
            "securityContext.runAsNonRoot=true), seccompProfile (pod or container "
            '"a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
            id="a plain pod",
        ),
        pytest.param(
            spec({**HARDENED, "capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}}),
            'unrestricted capabilities (container "a" must not include "CHOWN" in '
            "securityContext.capabilities.add)",
            id="capabilities",
        ),
        pytest.param(
            spec(
                HARDENED,
                volumes=[
                    {"name": "x", "hostPath": {}},
                    {"name": "y", "nfs": {}},
                    {"name": "z", "emptyDir": {}},
                ],
            ),
            'restricted volume types (volumes "x", "y" use restricted volume types '
            '"hostPath", "nfs")',
            id="volumes",
        ),
        pytest.param(
            spec(HARDENED, {**HARDENED, "runAsNonRoot": False}),
            'runAsNonRoot != true (container "b" must not set securityContext.runAsNonRoot=false)',
            id="root by name",
        ),
        pytest.param(
            spec({**HARDENED, "runAsUser": 0}),
            'runAsUser=0 (container "a" must not set runAsUser=0)',
            id="root by number",
        ),
        pytest.param(
            spec(
                {key: HARDENED[key] for key in ("allowPrivilegeEscalation", "capabilities")},
                securityContext={
                    "runAsNonRoot": True,
                    "seccompProfile": {"type": "Localhost"},
                },
            ),
            "",
            id="what the pod says counts for its containers",
        ),
        pytest.param(
            spec({"runAsNonRoot": True}, os={"name": "windows"}),
            "",
            id="a Windows pod has no such things",
        ),
        pytest.param(
            spec(HARDENED, hostNetwork=True),
            "host namespaces (hostNetwork=true)",
            id="and all that baseline forbids",
        ),
    ],
)
def test_restricted(pod: Object, want: str) -> None:
    assert RESTRICTED.violations({}, pod) == want


P = "pod-security.kubernetes.io/"


@pytest.mark.parametrize(
    ("labels", "want", "errors"),
    [
        pytest.param({"team": "a"}, Policy(), [], id="nothing"),
        pytest.param(
            {f"{P}enforce": "baseline", f"{P}enforce-version": "v1.24"},
            Policy(Standard("baseline", "v1.24"), Standard("baseline", "v1.24")),
            [],
            id="what is enforced is warned of too",
        ),
        pytest.param(
            {f"{P}enforce": "baseline", f"{P}warn": "privileged"},
            Policy(BASELINE, Standard()),
            [],
            id="unless that has a level of its own",
        ),
        pytest.param({f"{P}warn": "restricted"}, Policy(Standard(), RESTRICTED), [], id="warned"),
        pytest.param(
            {f"{P}enforce": "secure", f"{P}audit-version": "1.2"},
            Policy(RESTRICTED, Standard()),
            [
                f'metadata.labels[{P}enforce]: Invalid value: "secure": must be one of '
                "privileged, baseline, restricted",
                f'metadata.labels[{P}audit-version]: Invalid value: "1.2": must be "latest" or '
                '"v1.x"',
            ],
            id="nonsense closes the door",
        ),
    ],
)
def test_the_labels_of_a_namespace(labels: Object, want: Policy, errors: list[str]) -> None:
    policy, found = policy_of(labels)
    assert policy == want
    assert [str(each) for each in found] == errors
