#!/bin/sh
# cluster.sh [up|down]: the virtual machines of the Vagrantfile, and a cluster that kubeletadm creates on them.
#   up (default)  boot and provision them, write fleet.yaml, apply it; rerun it after a change of fleet.yaml or WORKERS
#   down          destroy them, and remove their host keys
# KUBELETADM: command that runs kubeletadm (default: the bundle of npm run build). Vagrantfile describes the other variables.
# WORKERS: default 2, then the number of existing workers. With a lower number the last workers are removed.
set -eu
cd "$(dirname "$0")"
KUBELETADM=${KUBELETADM:-node $PWD/../dist/kubeletadm.mjs}
SUBNET=${SUBNET:-192.168.56}
MODE=${MODE:-host}
KNOWN=.vagrant/known_hosts
SSH_CONFIG=.vagrant/ssh_config
# The fleet.yaml as cluster.sh wrote it, to detect manual edits.
WRITTEN=.vagrant/fleet.yaml
say() { printf '\n# %s\n' "$*"; }

# kubeletadm on the local host. The virtual machines are new and on a host-only network: their host keys are recorded on
# first use and checked afterwards.
adm() { say "kubeletadm $*"; $KUBELETADM "$@"; }
guest() { ssh -F "$SSH_CONFIG" "$@"; }

# The highest number of an existing worker; 0: none.
workers() {
  n=0
  for id in .vagrant/machines/worker*/*/id; do
    if [ ! -e "$id" ]; then continue; fi
    w=${id#.vagrant/machines/worker}; w=${w%%/*}
    if [ "$w" -gt "$n" ]; then n=$w; fi
  done
  echo "$n"
}

# Vagrant's own settings accept any host key.
write_ssh_config() {
  vagrant ssh-config | grep -Ev '^ *(UserKnownHostsFile|StrictHostKeyChecking) ' >"$SSH_CONFIG.new"
  printf 'Host *\n  UserKnownHostsFile "%s"\n  StrictHostKeyChecking accept-new\n  ConnectTimeout 20\n' "$PWD/$KNOWN" >>"$SSH_CONFIG.new"
  mv "$SSH_CONFIG.new" "$SSH_CONFIG"
}

machines() {
  say 'vagrant up'
  vagrant up
  write_ssh_config
}

# Removes the Node, the virtual machine and its host key; an unreachable virtual machine is destroyed, too.
remove_worker() {
  adm reset --force --delete-node --kubeconfig admin.conf --ssh-config "$SSH_CONFIG" --host "$1" ||
    echo "cluster.sh: $1 cannot be reset. If its Node still exists, run kubectl --kubeconfig admin.conf delete node $1" >&2
  vagrant destroy -f "$1"
  address=$(sed -n "/^Host $1\$/,/^\$/s/^ *HostName //p" "$SSH_CONFIG"); port=$(sed -n "/^Host $1\$/,/^\$/s/^ *Port //p" "$SSH_CONFIG")
  if [ -f "$KNOWN" ]; then ssh-keygen -q -f "$KNOWN" -R "$address" -R "[$address]:$port" >/dev/null 2>&1 || true; fi
}

remove_surplus() { # FROM TO
  WORKERS=$2; export WORKERS
  write_ssh_config
  n=$(($1 + 1))
  while [ "$n" -le "$2" ]; do remove_worker "worker$n"; n=$((n + 1)); done
}

# fleet.yaml contains no addresses: it imports them from Vagrant, which may change them.
write_fleet() {
  cat >"$WRITTEN" <<X
# Written by cluster.sh, which never overwrites an edited file. All fields: kubeletadm fleet schema, ../docs/fleet.md
apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
kubernetesVersion: "${KUBERNETES_VERSION:-1.36}"
cluster:
  kubeconfig: admin.conf
baseline:
  nodeIP: $SUBNET.0/24
imports:
  - sshConfig: $SSH_CONFIG
hosts:
  - name: cp1
    role: control-plane
X
  cp "$WRITTEN" fleet.yaml
}
is_edited() { [ -f fleet.yaml ] && ! cmp -s fleet.yaml "$WRITTEN"; }

# From the local host over SSH, with a fleet file.
from_here() {
  is_edited || write_fleet
  grep -q "sshConfig: $SSH_CONFIG" fleet.yaml ||
    echo "cluster.sh: fleet.yaml does not import $SSH_CONFIG. Remove fleet.yaml, or keep its addresses up to date" >&2
  adm apply --yes --ssh-config "$SSH_CONFIG" || {
    code=$?
    echo "cluster.sh: apply failed with exit code $code. Fix the cause and run cluster.sh again; it resumes where it stopped." >&2
    exit $code
  }
  say 'Try, in this directory: kubectl --kubeconfig admin.conf get nodes -o wide; kubeletadm fleet status --ssh-config '"$SSH_CONFIG"
}

# Runs init and join in the guests, like with kubeadm.
inside() {
  say 'cp1: kubeletadm init'
  guest cp1 "sudo kubeletadm init --apiserver-advertise-address $SUBNET.10 --node-ip $SUBNET.0/24 --skip-token-print"
  join=$(guest cp1 'sudo kubeletadm token create --ttl 1h --print-join-command')
  sed -n 's/^Host //p' "$SSH_CONFIG" | grep -vxF -e cp1 -e '*' | while read -r worker; do
    say "$worker: kubeletadm join"
    # The token is passed on standard input.
    printf 'exec kubeletadm %s --node-ip %s.0/24\n' "${join#kubeadm }" "$SUBNET" | guest "$worker" 'sudo sh'
  done
  guest cp1 'sudo cat /etc/kubernetes/admin.conf' | (umask 077 && cat >admin.conf)
  say 'Try, in this directory: kubectl --kubeconfig admin.conf get nodes -o wide; vagrant ssh cp1'
}

present=$(workers)
case ${1:-up} in
  up)
    case $MODE in
      host) ;;
      inside)
        [ -f ../dist/kubeletadm.mjs ] || { echo 'cluster.sh: dist/kubeletadm.mjs does not exist. Run npm ci && npm run build first' >&2; exit 2; }
        mkdir -p .vagrant && tar -czf .vagrant/kubeletadm.tgz -C ../dist kubeletadm.mjs chunks
        ;;
      *) echo "cluster.sh: MODE=$MODE is not valid. Set MODE to host or inside" >&2; exit 2 ;;
    esac
    if [ -z "${WORKERS:-}" ]; then WORKERS=2; for id in .vagrant/machines/cp1/*/id; do if [ -e "$id" ]; then WORKERS=$present; fi; done; fi
    case $WORKERS in
      *[!0-9]*) ;;
      *) if [ "$WORKERS" -lt "$present" ]; then wanted=$WORKERS; remove_surplus "$wanted" "$present"; WORKERS=$wanted; fi ;;
    esac
    export WORKERS
    machines
    if [ "$MODE" = host ]; then from_here; else inside; fi
    ;;
  down)
    if [ "$present" != 0 ]; then WORKERS=$present; export WORKERS; fi
    vagrant destroy -f
    if is_edited; then say 'fleet.yaml was edited and is kept'; else rm -f fleet.yaml; fi
    rm -f "$WRITTEN" "$KNOWN" "$SSH_CONFIG" admin.conf
    ;;
  *) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
