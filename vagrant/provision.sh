#!/bin/sh
# provision.sh MINOR: installs the prerequisites of a Kubernetes node: kernel settings, container runtime, kubelet.
# Runs as root in a guest, any number of times.
set -eu
minor=$1
export DEBIAN_FRONTEND=noninteractive

# By default a kubelet does not start while swap is on.
swapoff -a
sed -i '/^[^#].*[[:space:]]swap[[:space:]]/s/^/#/' /etc/fstab

printf 'overlay\nbr_netfilter\n' >/etc/modules-load.d/kubernetes.conf
modprobe overlay
modprobe br_netfilter
printf 'net.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 1\nnet.bridge.bridge-nf-call-ip6tables = 1\n' >/etc/sysctl.d/90-kubernetes.conf
sysctl -q --system

apt-get update -qq
apt-get install -y -qq --no-install-recommends ca-certificates curl containerd

repository=https://pkgs.k8s.io/core:/stable:/v$minor/deb
install -d -m 0755 /etc/apt/keyrings
curl -fsSL "$repository/Release.key" -o /etc/apt/keyrings/kubernetes.asc
echo "deb [signed-by=/etc/apt/keyrings/kubernetes.asc] $repository/ /" >/etc/apt/sources.list.d/kubernetes.list
apt-get update -qq
apt-get install -y -qq --no-install-recommends kubelet cri-tools kubernetes-cni conntrack iptables
apt-mark hold kubelet >/dev/null

# The kubelet and containerd must use the same cgroup driver, systemd. kubernetes-cni installs network plugins in /opt/cni/bin.
install -d /etc/containerd
containerd config default | sed 's/SystemdCgroup = false/SystemdCgroup = true/; s|bin_dir = .*|bin_dir = "/opt/cni/bin"|' >/etc/containerd/config.toml.new
if ! cmp -s /etc/containerd/config.toml.new /etc/containerd/config.toml; then
  mv /etc/containerd/config.toml.new /etc/containerd/config.toml
  systemctl restart containerd
fi
rm -f /etc/containerd/config.toml.new
systemctl enable -q containerd
