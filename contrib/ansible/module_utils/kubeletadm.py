"""Runs kubeletadm and reads its JSON output, for the modules of this folder."""

import json

from ansible.module_utils.basic import AnsibleModule

COMMON = {
    "executable": {"type": "path", "default": "kubeletadm"},
    "kubeconfig": {"type": "path"},
    "ssh_config": {"type": "path"},
    "arguments": {"type": "list", "elements": "str", "default": []},
}

# Exit codes of kubeletadm: done, and changes pending.
DONE, PENDING = 0, 6


def make_module(options, **constraints):
    return AnsibleModule(argument_spec={**COMMON, **options}, supports_check_mode=True, **constraints)


def repeated(option, values):
    return [word for value in values or [] for word in (option, str(value))]


def given(module, *names):
    """Options of the command line for the parameters that have a value."""
    words = []
    for name in names:
        value = module.params.get(name)
        if value not in (None, "", []):
            values = value if isinstance(value, list) else [value]
            words += repeated("--" + name.replace("_", "-"), values)
    return words


def run(module, words, accepted=(DONE, PENDING)):
    """Returns the exit code and the standard output; fails with the messages of kubeletadm for another exit code."""
    options = given(module, "kubeconfig", "ssh_config") + module.params["arguments"]
    command = [module.params["executable"], *words, *options]
    code, out, err = module.run_command(command)
    if code not in accepted:
        events = [event for event in read_events(out) if event.get("level") == "error"]
        reasons = err.strip().splitlines() or [event.get("message", "") for event in events]
        message = "\n".join(reasons) or "no message"
        module.fail_json(msg="kubeletadm %s failed: %s" % (words[0], message), exit_code=code, cmd=command, events=events)
    return code, out


def read_document(module, out):
    try:
        return json.loads(out)
    except ValueError as error:
        module.fail_json(msg="kubeletadm printed no JSON document: %s" % error, stdout=out[:1000])


def read_events(out):
    """The events of a run, one a line. A plan is one document and has none."""
    events = []
    for line in out.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and "code" in event:
            events.append(event)
    return events


def changes_of(document):
    """Subject and changes of each host, and of the cluster; hosts with the same changes share them in a fleet plan."""
    shared = document.get("changes") or {}
    for host in document.get("hosts") or []:
        changes = host.get("changes") or []
        entry = shared.get(changes, {}) if isinstance(changes, str) else {"changes": changes}
        yield host["name"], entry.get("changes") or []
    cluster = document.get("cluster")
    if isinstance(cluster, dict):
        yield "cluster", cluster.get("changes") or []


def diff_of(document):
    """The changes for --diff: a line for each file, unit or object, and the diff of its content."""
    lines = []
    for subject, changes in changes_of(document):
        for change in changes:
            lines.append("%s: %s %s" % (subject, change.get("action") or change.get("kind", "change"), name_of(change)))
            if change.get("diff"):
                lines.append(change["diff"].rstrip("\n"))
    return {"prepared": "".join(line + "\n" for line in lines)}


def name_of(change):
    if "object" in change:
        metadata = change["object"].get("metadata", {})
        names = [metadata.get("namespace"), metadata.get("name", "")]
        return "%s %s" % (change["object"].get("kind", ""), "/".join(name for name in names if name))
    return str(change.get("path") or change.get("unit") or change.get("image") or change.get("reason", ""))


def planned(module, words):
    """A plan in JSON as the result of a module."""
    code, out = run(module, [*words, "-o", "json", "--exit-code"])
    document = read_document(module, out)
    result = {"changed": code == PENDING, "plan": document}
    return {**result, "diff": diff_of(document)} if module._diff else result
