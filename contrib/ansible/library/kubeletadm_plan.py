#!/usr/bin/python
"""The changes that a fleet file would make."""

from ansible.module_utils.kubeletadm import given, make_module, planned

DOCUMENTATION = r"""
module: kubeletadm_plan
short_description: Plan a fleet file of kubeletadm
description:
  - Runs C(kubeletadm plan) and returns the plan. Changes nothing on hosts; run it on the controller (C(delegate_to: localhost)).
options:
  file: {description: The fleet file., type: path, required: true}
  limit: {description: Hosts or groups to plan., type: list, elements: str}
  out: {description: File to save the plan to; not written in check mode., type: path}
  kubeconfig: {description: Kubeconfig of the cluster., type: path}
  ssh_config: {description: OpenSSH client configuration., type: path}
  executable: {description: The program., type: path, default: kubeletadm}
  arguments: {description: Further options of the command line., type: list, elements: str, default: []}
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
"""

EXAMPLES = r"""
- name: What would change?
  kubeletadm_plan: {file: fleet.yaml, out: plan.json}
  delegate_to: localhost
  register: planned
"""

RETURN = r"""
changed: {description: Whether changes are pending., type: bool, returned: always}
plan: {description: The document that C(kubeletadm plan -o json) prints., type: dict, returned: always}
"""


def main():
    options = {
        "file": {"type": "path", "required": True},
        "limit": {"type": "list", "elements": "str"},
        "out": {"type": "path"},
    }
    module = make_module(options)
    written = [] if module.check_mode else ["out"]
    module.exit_json(**planned(module, ["plan", *given(module, "file", "limit", *written)]))


if __name__ == "__main__":
    main()
