#!/bin/sh
# pod-network.sh SUBNET NUMBER: a pod network without any add-on, for CNI=routes. SUBNET.NUMBER has the pods
# 10.244.NUMBER.0/24, with routes to the pods of all other machines that the lab can have, also those added later.
set -eu
subnet=$1 number=$2

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

# cp1 is .10, worker90 is .100.
for other in $(seq 10 100); do
  [ "$other" = "$number" ] || echo "route replace 10.244.$other.0/24 via $subnet.$other"
done >/etc/pod-routes
cat >/etc/systemd/system/pod-routes.service <<'UNIT'
[Unit]
Description=Routes to the pods of the other hosts
After=network-online.target
Wants=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/sbin/ip -batch /etc/pod-routes

[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
systemctl enable -q pod-routes.service
systemctl restart pod-routes.service
