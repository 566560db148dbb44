#!/usr/bin/python
"""Applies a fleet file."""

from ansible.module_utils.kubeletadm import DONE, diff_of, given, make_module, planned, read_document, read_events, run

DOCUMENTATION = r"""
module: kubeletadm_apply
short_description: Apply a fleet file of kubeletadm
description:
  - Runs C(kubeletadm apply --yes). In check mode it runs C(kubeletadm plan). Run it once, on the controller
    (C(delegate_to: localhost), C(run_once: true)); kubeletadm connects to the hosts itself.
options:
  file: {description: The fleet file., type: path, required: true}
  limit: {description: Hosts or groups to change., type: list, elements: str}
  canary: {description: Hosts that are changed first., type: str}
  allow: {description: Most disruptive class of changes., type: str, choices: [safe, new-pods-only, drain, unsafe]}
  reason: {description: Reason that the hosts record., type: str}
  kubeconfig: {description: Kubeconfig of the cluster., type: path}
  ssh_config: {description: OpenSSH client configuration., type: path}
  executable: {description: The program., type: path, default: kubeletadm}
  arguments: {description: Further options of C(plan) and C(apply)., type: list, elements: str, default: []}
  apply_arguments:
    description: Options of C(apply) alone, such as C(--max-unavailable). Not used in check mode.
    type: list
    elements: str
    default: []
attributes:
  check_mode: {support: full}
  diff_mode: {support: full, details: The diff is planned immediately before the run.}
"""

EXAMPLES = r"""
- name: Configure the kubelets
  kubeletadm_apply: {file: fleet.yaml, canary: edge-1, reason: "{{ ansible_run_tags | join(' ') }}"}
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
changed: {description: Whether a host was changed., type: bool, returned: always}
hosts: {description: Number of hosts by result., type: dict, returned: success and not in check mode}
plan: {description: The plan., type: dict, returned: in check mode}
"""


def main():
    options = {
        "file": {"type": "path", "required": True},
        "limit": {"type": "list", "elements": "str"},
        "canary": {"type": "str"},
        "allow": {"type": "str", "choices": ["safe", "new-pods-only", "drain", "unsafe"]},
        "reason": {"type": "str"},
        "apply_arguments": {"type": "list", "elements": "str", "default": []},
    }
    module = make_module(options)
    selection = given(module, "file", "limit", "canary", "allow")
    if module.check_mode:
        module.exit_json(**planned(module, ["plan", *selection]))
    diff = {}
    if module._diff:
        diff = {"diff": diff_of(read_document(module, run(module, ["plan", *selection, "-o", "json"])[1]))}
    own = [*given(module, "reason"), *module.params["apply_arguments"]]
    out = run(module, ["apply", "--yes", "-o", "json", *selection, *own], accepted=(DONE,))[1]
    ends = [event for event in read_events(out) if event["code"] == "RUN_ENDED"]
    hosts = ends[-1].get("data", {}) if ends else {}
    module.exit_json(changed=hosts.get("changed", 0) > 0, hosts=hosts, **diff)


if __name__ == "__main__":
    main()
