#!/usr/bin/env python3
"""A stand-in for the kubelet on lab hosts: reads its files as the real one would, serves healthz, bootstraps itself, and dies of what the real one dies of."""
import http.server
import os
import re
import shlex
import subprocess
import sys
import time

VERSION = os.environ.get("STAND_IN_KUBELET_VERSION", "v1.36.2")
# Error message for any configuration, if this file exists.
REFUSAL = "/run/stand-in-kubelet-refuses"
CURRENT_PEM = "/var/lib/kubelet/pki/kubelet-client-current.pem"


def die(message):
    stamp = time.strftime("%m%d %H:%M:%S")
    escaped = message.replace("\\", "\\\\").replace('"', '\\"')
    print(f'E{stamp}.000000 {os.getpid():7d} run.go:72] "command failed" err="{escaped}"', file=sys.stderr, flush=True)
    sys.exit(1)


def flags():
    found = {}
    for word in sys.argv[1:]:
        name, _, value = word.lstrip("-").partition("=")
        found[name] = value
    return found


def scalar(text, field):
    match = re.search(rf"^{field}: *(.*)$", text, re.M)
    return match.group(1).strip().strip('"') if match else ""


def read_config(path):
    if not os.path.exists(path):
        die(f'failed to load kubelet config file, path: {path}, error: failed to load Kubelet config file {path}, error failed to read kubelet config file "{path}", error: open {path}: no such file or directory')
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if os.path.exists(REFUSAL):
        with open(REFUSAL, encoding="utf-8") as file:
            die(file.read().strip())
    max_pods = scalar(text, "maxPods")
    if max_pods.startswith("-"):
        die(f"failed to validate kubelet configuration, error: invalid configuration: maxPods (--max-pods) {max_pods} must not be a negative number, path: &TypeMeta{{Kind:,APIVersion:,}}")
    return text


def check_files(text):
    tls = scalar(text, "tlsCertFile")
    if tls and not os.path.exists(tls):
        die(f"failed to run Kubelet: open {tls}: no such file or directory")
    ca = re.search(r"^ +clientCAFile: *(.*)$", text, re.M)
    if ca and not os.path.exists(ca.group(1)):
        die(f"failed to run Kubelet: open {ca.group(1)}: no such file or directory")


def bootstrap(given):
    kubeconfig, first = given.get("kubeconfig", ""), given.get("bootstrap-kubeconfig", "")
    if os.path.exists(kubeconfig):
        return
    if not os.path.exists(first):
        die(f"failed to run Kubelet: unable to load bootstrap kubeconfig: stat {first}: no such file or directory")
    name = given.get("hostname-override") or os.uname().nodename
    os.makedirs(os.path.dirname(CURRENT_PEM), exist_ok=True)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "365", "-subj", f"/O=system:nodes/CN=system:node:{name}", "-keyout", CURRENT_PEM + ".key", "-out", CURRENT_PEM + ".crt"], check=True, stderr=subprocess.DEVNULL)
    with open(CURRENT_PEM, "w", encoding="utf-8") as out:
        for part in (".crt", ".key"):
            with open(CURRENT_PEM + part, encoding="utf-8") as file:
                out.write(file.read())
            os.remove(CURRENT_PEM + part)
    with open(first, encoding="utf-8") as file:
        cluster = "".join(line for line in file if re.match(r" +(certificate-authority-data|server):", line))
    with open(kubeconfig, "w", encoding="utf-8") as file:
        os.chmod(kubeconfig, 0o600)
        file.write(f"apiVersion: v1\nclusters:\n- cluster:\n{cluster}  name: default-cluster\ncontexts:\n- context:\n    cluster: default-cluster\n    namespace: default\n    user: default-auth\n  name: default-context\ncurrent-context: default-context\nkind: Config\nusers:\n- name: default-auth\n  user:\n    client-certificate: {CURRENT_PEM}\n    client-key: {CURRENT_PEM}\n")


class Healthz(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        ok = self.path == "/healthz"
        self.send_response(200 if ok else 404)
        self.end_headers()
        self.wfile.write(b"ok" if ok else b"not found")

    def log_message(self, *args):
        pass


def main():
    if "--version" in sys.argv:
        print(f"Kubernetes {VERSION}")
        return
    given = flags()
    config = read_config(given.get("config", ""))
    if given.get("exit-on-lock-contention") == "true" and not given.get("lock-file"):
        die("failed to run Kubelet: cannot exit on lock file contention: no lock file specified")
    check_files(config)
    bootstrap(given)
    port = int(scalar(config, "healthzPort") or 10248)
    print("I " + shlex.join(sys.argv), file=sys.stderr, flush=True)
    http.server.ThreadingHTTPServer((scalar(config, "healthzBindAddress") or "127.0.0.1", port), Healthz).serve_forever()


main()
