#!/bin/sh
# cluster.sh [up|down]: the machines of the Vagrantfile, and a cluster made of them by kubeletadm.
#   up (default)  boot and provision them, write fleet.yaml, bring up the cluster; run it again after a change of fleet.yaml
#   down          destroy them, and forget their host keys
# KUBELETADM: how to run kubeletadm here (default: the bundle that npm run build makes). The other variables are those of the Vagrantfile.
set -eu
cd "$(dirname "$0")"
KUBELETADM=${KUBELETADM:-node $PWD/../dist/kubeletadm.mjs}
SUBNET=${SUBNET:-192.168.56}
MODE=${MODE:-host}
KNOWN=.vagrant/known_hosts
SSH_CONFIG=.vagrant/ssh_config
say() { printf '\n# %s\n' "$*"; }

# kubeletadm on this machine. The machines are new and on a network of this host alone: their keys are learnt at first sight, and kept from then on.
adm() { say "kubeletadm $*"; $KUBELETADM "$@"; }
guest() { ssh -F "$SSH_CONFIG" -o UserKnownHostsFile=$KNOWN -o StrictHostKeyChecking=accept-new "$@"; }

machines() {
  say 'vagrant up'
  vagrant up
  vagrant ssh-config >"$SSH_CONFIG"
}

# From here over SSH, by a fleet file.
from_here() {
  [ -f fleet.yaml ] || adm fleet init --from-vagrant "$SSH_CONFIG" --node-ip "$SUBNET.0/24"
  adm apply --ssh-known-hosts "$KNOWN" --ssh-accept-new
  say 'Try, in this directory: kubectl --kubeconfig admin.conf get nodes -o wide; kubeletadm fleet status --ssh-known-hosts '"$KNOWN"
}

# Each guest by itself, as one would with kubeadm.
inside() {
  say 'cp1: kubeletadm init'
  guest cp1 "sudo kubeletadm init --apiserver-advertise-address $SUBNET.10 --node-ip $SUBNET.0/24 --skip-token-print"
  join=$(guest cp1 'sudo kubeletadm token create --ttl 1h --print-join-command')
  sed -n 's/^Host //p' "$SSH_CONFIG" | grep -vx cp1 | while read -r worker; do
    say "$worker: kubeletadm join"
    # The token goes by standard input.
    printf 'exec kubeletadm %s --node-ip %s.0/24\n' "${join#kubeadm }" "$SUBNET" | guest "$worker" 'sudo sh'
  done
  guest cp1 'sudo cat /etc/kubernetes/admin.conf' | (umask 077 && cat >admin.conf)
  say 'Try, in this directory: kubectl --kubeconfig admin.conf get nodes -o wide; vagrant ssh cp1'
}

case ${1:-up} in
  up)
    [ "$MODE" = host ] || [ -f ../dist/kubeletadm.mjs ] || { echo 'cluster.sh: there is no bundle for the guests: run npm ci && npm run build first' >&2; exit 2; }
    machines
    case $MODE in
      host) from_here ;;
      inside) inside ;;
      *) echo "cluster.sh: MODE=$MODE: host or inside" >&2; exit 2 ;;
    esac
    ;;
  down)
    vagrant destroy -f
    rm -f "$KNOWN" "$SSH_CONFIG" admin.conf
    ;;
  *) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
