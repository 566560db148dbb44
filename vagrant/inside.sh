#!/bin/sh
# inside.sh: installs kubeletadm in a guest, for MODE=inside, with the distribution's Node.js if it is recent
# enough, otherwise with the official build.
set -eu
version=v20.19.5
export DEBIAN_FRONTEND=noninteractive

new_enough() { command -v node >/dev/null && node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'; }

new_enough || apt-get install -y -qq --no-install-recommends nodejs
if ! new_enough; then
  case $(uname -m) in x86_64) machine=x64 ;; aarch64) machine=arm64 ;; *) echo "inside.sh: Node.js has no official build for $(uname -m)" >&2; exit 1 ;; esac
  build=node-$version-linux-$machine.tar.gz
  cd "$(mktemp -d)"
  curl -fsSLO "https://nodejs.org/dist/$version/$build"
  curl -fsSL "https://nodejs.org/dist/$version/SHASUMS256.txt" | grep " $build\$" | sha256sum -c --quiet
  tar -xzf "$build" -C /usr/local --strip-components=1 --no-same-owner
fi

rm -rf /usr/local/lib/kubeletadm/chunks && mkdir -p /usr/local/lib/kubeletadm
tar -xzf /tmp/kubeletadm.tgz -C /usr/local/lib/kubeletadm --no-same-owner
printf '#!/bin/sh\nexec node /usr/local/lib/kubeletadm/kubeletadm.mjs "$@"\n' >/usr/local/bin/kubeletadm
chmod 0755 /usr/local/bin/kubeletadm
