#!/bin/sh
# cluster.sh COMMAND: the cluster on the VMs of the Vagrantfile. Vagrant's triggers run this script.
#   check        can kubeletadm be run on this host?
#   configure    bootstrap the cluster, or update it, with fleet.yaml; can be repeated
#   forget NAME  remove the Node and the host key of a destroyed machine; for cp1, all files of the cluster
# KUBELETADM: command that runs kubeletadm (default: the bundle of npm run build). README.md describes the other variables.
set -eu
cd "$(dirname "$0")"
KUBELETADM=${KUBELETADM:-node $PWD/../dist/kubeletadm.mjs}
SUBNET=${SUBNET:-192.168.56}
MODE=${MODE:-host}
CNI=${CNI:-routes}
KNOWN=.vagrant/known_hosts
SSH_CONFIG=.vagrant/ssh_config
# The fleet.yaml as cluster.sh wrote it, to detect manual edits.
WRITTEN=.vagrant/fleet.yaml
# Pods of flannel, Calico and Cilium. With CNI=routes, pod-network.sh assigns 10.244.NUMBER.0/24.
PODS=10.244.0.0/16
say() { printf '\n# %s\n' "$*"; }

# kubeletadm on the local host. The virtual machines are new and on a host-only network: their host keys are recorded on
# first use and checked afterwards.
adm() { say "kubeletadm $*"; $KUBELETADM "$@"; }
guest() { ssh -F "$SSH_CONFIG" "$@"; }
on_cp1() { guest cp1 "sudo env KUBECONFIG=/etc/kubernetes/admin.conf $*"; }

check() {
  [ "$MODE" = inside ] || $KUBELETADM version >/dev/null || {
    echo "cluster.sh: cannot run $KUBELETADM. Run npm ci && npm run build in the parent directory, or set KUBELETADM" >&2
    exit 2
  }
}

# The Vagrantfile saves the connection of each machine.
write_ssh_config() {
  cat .vagrant/ssh/*.conf >"$SSH_CONFIG.new"
  printf 'Host *\n  UserKnownHostsFile "%s"\n  StrictHostKeyChecking accept-new\n  ConnectTimeout 20\n  LogLevel ERROR\n' "$PWD/$KNOWN" >>"$SSH_CONFIG.new"
  mv "$SSH_CONFIG.new" "$SSH_CONFIG"
}

# fleet.yaml contains no addresses: it imports them from .vagrant/ssh_config, which changes with the VMs.
write_fleet() {
  {
    cat <<X
# Written by cluster.sh, which never overwrites an edited file. All fields: kubeletadm fleet schema, ../docs/fleet.md
apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
kubernetesVersion: "${KUBERNETES_VERSION:-1.36}"
cluster:
  kubeconfig: admin.conf
X
    [ "$CNI" = routes ] || echo '  configuration: .vagrant/cluster.yaml'
    cat <<X
baseline:
  nodeIP: $SUBNET.0/24
imports:
  - sshConfig: $SSH_CONFIG
hosts:
  - name: cp1
    role: control-plane
X
  } >"$WRITTEN"
  printf 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nnetworking:\n  podSubnet: %s\n' "$PODS" >.vagrant/cluster.yaml
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
    echo "cluster.sh: apply failed with exit code $code. Fix the cause and run vagrant up again; it resumes where it stopped." >&2
    exit $code
  }
}

# Runs init and join in the guests, like with kubeadm.
inside() {
  say 'cp1: kubeletadm init'
  pods=; [ "$CNI" = routes ] || pods="--pod-network-cidr $PODS"
  guest cp1 "sudo kubeletadm init --apiserver-advertise-address $SUBNET.10 --node-ip $SUBNET.0/24 $pods --skip-token-print"
  join=$(guest cp1 'sudo kubeletadm token create --ttl 1h --print-join-command')
  sed -n 's/^Host //p' "$SSH_CONFIG" | grep -vxF -e cp1 -e '*' | while read -r worker; do
    say "$worker: kubeletadm join"
    # The token is passed on standard input. The printed command begins with the name of the program.
    printf 'exec kubeletadm %s --node-ip %s.0/24\n' "${join#* }" "$SUBNET" | guest "$worker" 'sudo sh'
  done
  guest cp1 'sudo cat /etc/kubernetes/admin.conf' | (umask 077 && cat >admin.conf)
}

# Booted machines start the control plane again, which takes a while.
wait_for_api_server() {
  guest cp1 'sudo test -f /etc/kubernetes/manifests/kube-apiserver.yaml' || return 0
  say 'wait for the API server'
  on_cp1 "timeout 300 sh -c 'until kubectl get --raw /readyz >/dev/null 2>&1; do sleep 2; done'"
}

configure() {
  write_ssh_config
  wait_for_api_server
  if [ "$MODE" = host ]; then from_here; else inside; fi
  if [ "$CNI" = none ]; then
    say 'CNI=none: the nodes are NotReady until you install a pod network for 10.244.0.0/16'
  else
    if [ "$CNI" != routes ]; then
      say "install $CNI"
      guest cp1 "sudo sh -s -- $CNI $SUBNET $PODS" <network-add-on.sh
    fi
    say 'wait until all nodes are Ready'
    on_cp1 kubectl wait --for=condition=Ready node --all --timeout=10m
  fi
  on_cp1 kubectl get nodes -o wide
  say 'Try, in this directory: kubectl --kubeconfig admin.conf get pods -A; vagrant ssh cp1; kubeletadm fleet status --ssh-config '"$SSH_CONFIG"
}

# An unreachable control plane does not stop vagrant destroy.
forget() {
  if [ "$1" = cp1 ]; then
    if is_edited; then say 'fleet.yaml was edited and is kept'; else rm -f fleet.yaml; fi
    rm -f "$WRITTEN" .vagrant/cluster.yaml "$KNOWN" "$KNOWN.old" "$SSH_CONFIG" admin.conf .vagrant/ssh/*.conf
    return
  fi
  rm -f ".vagrant/ssh/$1.conf"
  [ -f "$SSH_CONFIG" ] || return 0
  on_cp1 kubectl delete node "$1" --ignore-not-found ||
    echo "cluster.sh: the Node of $1 cannot be deleted. If it still exists, run kubectl --kubeconfig admin.conf delete node $1" >&2
  address=$(sed -n "/^Host $1\$/,/^\$/s/^ *HostName //p" "$SSH_CONFIG"); port=$(sed -n "/^Host $1\$/,/^\$/s/^ *Port //p" "$SSH_CONFIG")
  if [ -f "$KNOWN" ]; then ssh-keygen -q -f "$KNOWN" -R "$address" -R "[$address]:$port" >/dev/null 2>&1 || true; fi
  write_ssh_config
}

case ${1:-} in
  check) check ;;
  configure) configure ;;
  forget) forget "${2:?}" ;;
  *) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
