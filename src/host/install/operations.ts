import type { RunCommand } from '../operation/operation.ts';
import type { PackageManager } from '../operation/package-facts.ts';
import { formatMode } from '../plan/diff-file.ts';

/** Waits up to five minutes for another run of the package manager (first boot, unattended upgrades). */
const APT = `export DEBIAN_FRONTEND=noninteractive
n=0
until said=$(apt-get -q update 2>&1 >/dev/null); do
  case $said in *'Could not get lock'*) n=$((n+1)); [ $n -ge 60 ] || { sleep 5; continue; };; esac
  printf '%s\\n' "$said" >&2; exit 1
done
exec apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold \\
  --no-install-recommends --allow-change-held-packages --allow-downgrades install "$@"`;

/** Refreshes the metadata, which does not contain a newly added repository. */
const DNF = `r=$1; shift; exec dnf -y --refresh --setopt="disable_excludes=$r" install "$@"`;
const YUM = `r=$1; shift; exec yum -y --disableexcludes="$r" install "$@"`;

/** Installs packages with dependencies, without recommended packages; keeps configuration files. */
export function installPackages(manager: PackageManager, packages: readonly string[], repositories: readonly string[]): RunCommand {
  const what = `installing ${packages.join(', ')}`;
  if (manager === 'apt') return { kind: 'run', argv: ['sh', '-c', APT, 'sh', ...packages], what };
  return { kind: 'run', argv: ['sh', '-c', manager === 'dnf' ? DNF : YUM, 'sh', repositories.join(','), ...packages], what };
}

const DOWNLOAD = `path=$1 url=$2 sum=$3 mode=$4; mkdir -p "\${path%/*}" && part=$(mktemp "\${path%/*}/.kubeletadm.XXXXXX") || exit 1
trap 'rm -f "$part"' EXIT
if command -v curl >/dev/null; then curl -fsSL --retry 3 -o "$part" -- "$url"
elif command -v wget >/dev/null; then wget -q -O "$part" -- "$url"
else echo 'neither curl nor wget is installed' >&2; false; fi || exit 1
got=$(sha256sum "$part") || exit 1; got=\${got%% *}
[ "$got" = "$sum" ] || { echo "the file has the SHA-256 $got, but $sum is declared" >&2; exit 1; }
chmod "$mode" "$part" && chown root:root "$part" || exit 1
sync "$part" 2>/dev/null; mv -f "$part" "$path"`;

export function downloadFile({ path, url, sha256, mode }: { path: string; url: string; sha256: string; mode: number }): RunCommand {
  return { kind: 'run', argv: ['sh', '-c', DOWNLOAD, 'sh', path, url, sha256, formatMode(mode)], what: `fetching ${url}` };
}

/** The files are owned by root. */
export function extractArchive(path: string, to: string): RunCommand {
  const unpack = /\.t?gz$/.test(path) ? '-xzf' : /\.t?xz$/.test(path) ? '-xJf' : '-xf';
  const program = 'mkdir -p "$2" && exec tar -C "$2" --no-same-owner "$3" "$1"';
  return { kind: 'run', argv: ['sh', '-c', program, 'sh', path, to, unpack], what: `unpacking ${path}` };
}
