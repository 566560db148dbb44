#!/usr/bin/python
"""Assigns a kubelet configuration to Nodes."""

from ansible.module_utils.kubeletadm import DONE, given, make_module, planned, run

DOCUMENTATION = r"""
module: kubeletadm_dynamic_assign
short_description: Assign a kubelet configuration to Nodes with kubeletadm
description:
  - Runs C(kubeletadm dynamic assign). The agents of the Nodes verify the configuration and roll it back if a kubelet becomes
    unhealthy. Run it once, on the controller (C(delegate_to: localhost), C(run_once: true)).
options:
  nodes: {description: Nodes; without them pass O(selector)., type: list, elements: str}
  selector: {description: Label selector of Nodes., type: str}
  file: {description: Configuration or overlay to store in a ConfigMap., type: path}
  configmap: {description: ConfigMap to assign., type: str}
  wait: {description: State to wait for., type: str, default: good}
  max_unavailable: {description: Number or percentage of Nodes that are updated at once., type: str}
  kubeconfig: {description: Kubeconfig of the cluster., type: path}
  executable: {description: The program., type: path, default: kubeletadm}
  arguments: {description: Further options of the command line., type: list, elements: str, default: []}
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
"""

EXAMPLES = r"""
- name: Fewer pods on the edge nodes
  kubeletadm_dynamic_assign: {selector: pool=edge, file: edge-overlay.yaml, max_unavailable: 10%}
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
changed: {description: Whether an assignment was changed., type: bool, returned: always}
plan: {description: The plan., type: dict, returned: always}
"""


def main():
    options = {
        "nodes": {"type": "list", "elements": "str", "default": []},
        "selector": {"type": "str"},
        "file": {"type": "path"},
        "configmap": {"type": "str"},
        "wait": {"type": "str", "default": "good"},
        "max_unavailable": {"type": "str"},
    }
    module = make_module(
        options,
        mutually_exclusive=[("file", "configmap")],
        required_one_of=[("file", "configmap"), ("nodes", "selector")],
    )
    words = ["dynamic", "assign", *module.params["nodes"], *given(module, "selector", "file", "configmap", "max_unavailable")]
    # The plan tells whether anything changes: a second run changes nothing.
    result = planned(module, [*words, "--dry-run"])
    if result["changed"] and not module.check_mode:
        run(module, [*words, "--wait", module.params["wait"], "-o", "json"], accepted=(DONE,))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
