#!/bin/sh
# network-add-on.sh flannel|calico|cilium SUBNET PODS: installs a network add-on in the cluster, on the interface of SUBNET:
# the first interface of a Vagrant machine leads to the internet only. Runs as root on cp1, any number of times.
set -eu
add_on=$1 subnet=$2 pods=$3
KUBECONFIG=/etc/kubernetes/admin.conf
export KUBECONFIG

# The releases and their checksums.
flannel=v0.28.9 flannel_sha256=e875824be2f552b45711dbda91af81b17eb961d00025d914d9fef18fad8f09c0
calico=v3.32.1 calico_sha256=a1df919d9721cf667accdc3e72848911b0cb25cfab7d2478ad0c996302c95744
cilium=1.20.1 cilium_cli=v0.19.7
case $(uname -m) in
  x86_64) arch=amd64 cilium_cli_sha256=cd15e0983bf0acc7946cd05d453d1e58376ea92dec2642e745212df2b07d8852 ;;
  aarch64) arch=arm64 cilium_cli_sha256=9482937f14061fb239f2dbb2f97f4103de1b101f5d5defbff319f294f9bd540f ;;
  *) echo "network-add-on.sh: $(uname -m) is not supported. Use a machine with x86_64 or aarch64" >&2; exit 1 ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fetch() { # URL SHA256 FILE
  curl -fsSL --retry 5 -o "$3" "$1"
  echo "$2  $3" | sha256sum -c --quiet - || { echo "network-add-on.sh: the checksum of $1 is not $2" >&2; exit 1; }
}

case $add_on in
  flannel)
    fetch "https://raw.githubusercontent.com/flannel-io/flannel/$flannel/Documentation/kube-flannel.yml" "$flannel_sha256" "$work/manifest"
    sed "s|^\( *\)- --kube-subnet-mgr\$|&\n\1- --iface-regex=^$(echo "$subnet" | sed 's/\./\\\\./g')\\\\.|; s|\"Network\": \"10.244.0.0/16\"|\"Network\": \"$pods\"|" "$work/manifest" |
      kubectl apply -f -
    ;;
  calico)
    fetch "https://raw.githubusercontent.com/projectcalico/calico/$calico/manifests/calico.yaml" "$calico_sha256" "$work/manifest"
    sed "s|^\( *\)- name: CLUSTER_TYPE\$|\1- name: IP_AUTODETECTION_METHOD\n\1  value: cidr=$subnet.0/24\n\1- name: CALICO_IPV4POOL_CIDR\n\1  value: $pods\n&|" "$work/manifest" |
      kubectl apply --server-side --force-conflicts -f -
    ;;
  cilium)
    if kubectl -n kube-system get daemonset cilium >/dev/null 2>&1; then exit; fi
    fetch "https://github.com/cilium/cilium-cli/releases/download/$cilium_cli/cilium-linux-$arch.tar.gz" "$cilium_cli_sha256" "$work/cli"
    tar -xzf "$work/cli" -C /usr/local/bin --no-same-owner cilium
    # The chart has no checksum here: TLS and the publisher of Cilium's charts are trusted for this version.
    cilium install --version "$cilium" --set "ipam.operator.clusterPoolIPv4PodCIDRList={$pods}"
    cilium status --wait
    ;;
  *) echo "network-add-on.sh: $add_on is not supported. Use flannel, calico or cilium" >&2; exit 2 ;;
esac
