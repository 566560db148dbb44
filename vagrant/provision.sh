#!/bin/sh
# provision.sh MINOR [PACKAGE...]: installs the prerequisites of a Kubernetes node: kernel settings, containerd, runc, and
# from the repository of MINOR the kubelet and PACKAGEs. Runs as root in a guest, any number of times.
# CONTAINERD_VERSION, CONTAINERD_SHA256, RUNC_VERSION, RUNC_SHA256: other releases than those below.
set -eu
minor=$1
shift
export DEBIAN_FRONTEND=noninteractive

# The official releases and the checksums of their files for this architecture.
containerd=2.3.4 runc=1.4.3
case $(uname -m) in
  x86_64)
    arch=amd64
    containerd_sha256=9d68969855fbf676cdb8ed758e420fb048d61f984f61de3e53eddfebe484d168
    runc_sha256=f6ae8efc0fa40079e1475e97cbe9d1bd3f106a28d6af78a11d9f1bd565515e60
    ;;
  aarch64)
    arch=arm64
    containerd_sha256=a985fbb7e18fc0362d31a055338f5d7b0e087a3e27f14c70d1c5965399a29f95
    runc_sha256=633301e2e32f8a5ad54031aab4901eb00308bec677dd15faa2751e8f9dab5ca4
    ;;
  *) echo "provision.sh: $(uname -m) is not supported. Use a box for x86_64 or aarch64" >&2; exit 1 ;;
esac
if [ -n "${CONTAINERD_VERSION:-}" ]; then containerd=$CONTAINERD_VERSION containerd_sha256=${CONTAINERD_SHA256:?}; fi
if [ -n "${RUNC_VERSION:-}" ]; then runc=$RUNC_VERSION runc_sha256=${RUNC_SHA256:?}; fi

# Debian's timers run apt at boot, too.
systemctl disable -q --now apt-daily.timer apt-daily-upgrade.timer 2>/dev/null || true
systemctl stop apt-daily.service apt-daily-upgrade.service 2>/dev/null || true
apt() { apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=5 -qq "$@"; }

fetch() { # URL SHA256 FILE
  curl -fsSL --retry 5 -o "$3" "$1"
  echo "$2  $3" | sha256sum -c --quiet - || { rm -f "$3"; echo "provision.sh: the checksum of $1 is not $2" >&2; exit 1; }
}

# By default a kubelet does not start while swap is on.
swapoff -a
sed -i '/^[^#].*[[:space:]]swap[[:space:]]/s/^/#/' /etc/fstab

printf 'overlay\nbr_netfilter\n' >/etc/modules-load.d/kubernetes.conf
modprobe overlay
modprobe br_netfilter
printf 'net.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 1\nnet.bridge.bridge-nf-call-ip6tables = 1\n' >/etc/sysctl.d/90-kubernetes.conf
sysctl -q --system

apt update
apt install -y --no-install-recommends ca-certificates curl gpg

# containerd with its defaults, but with the cgroup driver of the kubelet: systemd. kubernetes-cni installs the network
# plugins in containerd's default directory, /opt/cni/bin.
releases="containerd $containerd $containerd_sha256 runc $runc $runc_sha256"
if [ "$(cat /usr/local/share/lab-releases 2>/dev/null)" != "$releases" ]; then
  work=$(mktemp -d)
  file=containerd-$containerd-linux-$arch.tar.gz
  fetch "https://github.com/containerd/containerd/releases/download/v$containerd/$file" "$containerd_sha256" "$work/$file"
  fetch "https://github.com/opencontainers/runc/releases/download/v$runc/runc.$arch" "$runc_sha256" "$work/runc"
  tar -xzf "$work/$file" -C /usr/local --no-same-owner
  install -m 0755 "$work/runc" /usr/local/sbin/runc
  rm -rf "$work"
  install -d /etc/containerd
  cat >/etc/containerd/config.toml <<'TOML'
version = 3

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = true
TOML
  cat >/etc/systemd/system/containerd.service <<'UNIT'
[Unit]
Description=containerd container runtime
After=network.target dbus.service

[Service]
ExecStart=/usr/local/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
UNIT
  systemctl daemon-reload
  systemctl enable -q containerd
  systemctl restart containerd
  echo "$releases" >/usr/local/share/lab-releases
fi

repository=https://pkgs.k8s.io/core:/stable:/v$minor/deb
# The server of the packages also has the key, so its fingerprint is pinned, as for `install: packages` in a fleet file.
fingerprint=DE15B14486CD377B9E876E1A234654DA9A296436
release=$(mktemp)
curl -fsSL --retry 5 "$repository/Release.key" -o "$release"
found=$(gpg --batch --show-keys --with-colons "$release" | awk -F: '$1 == "pub" { primary = 1 } $1 == "fpr" && primary { print $10; primary = 0 }')
if [ "$found" != "$fingerprint" ]; then
  rm -f "$release"
  echo "provision.sh: the key of $repository is ${found:-no OpenPGP key}, not $fingerprint" >&2
  exit 1
fi
install -D -m 0644 "$release" /etc/apt/keyrings/kubernetes.asc
rm -f "$release"
echo "deb [signed-by=/etc/apt/keyrings/kubernetes.asc] $repository/ /" >/etc/apt/sources.list.d/kubernetes.list
apt update
apt install -y --no-install-recommends kubelet cri-tools kubernetes-cni conntrack iptables "$@"
apt-mark hold kubelet >/dev/null
