#!/bin/sh
# pod-network.sh SUBNET NUMBER OTHER...: a pod network without any add-on. SUBNET.NUMBER has the pods 10.244.NUMBER.0/24,
# with routes to the pods of the other nodes. For a real network add-on, remove /etc/cni/net.d/10-lab.conflist and the
# unit.
set -eu
subnet=$1 number=$2
shift 2

install -d /etc/cni/net.d
cat >/etc/cni/net.d/10-lab.conflist <<CNI
{
  "cniVersion": "1.0.0",
  "name": "lab",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "cni0",
      "isGateway": true,
      "ipMasq": true,
      "hairpinMode": true,
      "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.$number.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
CNI

{
  printf '[Unit]\nDescription=Routes to the pods of the other hosts\nAfter=network-online.target\nWants=network-online.target\n'
  printf '[Service]\nType=oneshot\nRemainAfterExit=yes\n'
  for other in "$@"; do
    [ "$other" = "$number" ] || printf 'ExecStart=/sbin/ip route replace 10.244.%s.0/24 via %s.%s\n' "$other" "$subnet" "$other"
  done
  printf '[Install]\nWantedBy=multi-user.target\n'
} >/etc/systemd/system/pod-routes.service
systemctl daemon-reload
systemctl enable -q pod-routes.service
systemctl restart pod-routes.service
