import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The result of a stand-in command: lines on stdout and an exit code. */
export interface CommandAnswer {
  readonly exitCode: number;
  readonly lines: readonly string[];
}

/** Commands that query the lab; the others below are plain shell. */
const ASKING = ['systemctl', 'journalctl', 'kubelet', 'crictl', 'curl', 'uname', 'getent', 'ip'];

const ASK = `#!/bin/sh
# A stand-in: asks the lab over file descriptors 3 and 4. The lock is for commands that run at the same time.
exec 9<"$KUBELETADM_ROOT" && flock 9
printf '%s\\n' "\${0##*/} $*" >&3
IFS= read -r head <&4
n=\${head#* }
while [ "$n" -gt 0 ]; do IFS= read -r line <&4; printf '%s\\n' "$line"; n=$((n - 1)); done
exit "\${head%% *}"
`;

/**
 * The revert service runs with the host's own commands. Its timer does not run, because lab hosts have no
 * clock of their own.
 */
const SYSTEMCTL = ASK.replace(
  '\n',
  `
case "$*" in
  'start kubeletadm-revert.service') exec /bin/sh "$KUBELETADM_ROOT/var/lib/kubeletadm/revert" timer;;
  'is-active --quiet kubeletadm-revert.timer') exit 0;;
esac
`,
);

/** Container runtimes and the logind of the local host must not appear on the lab's hosts. */
const ABSENT = ['containerd', 'ctr', 'crio', 'podman', 'docker', 'systemd-analyze', 'busctl'];

/** The lab's hosts have only the user root: files of the local user are shown as root's. */
const PLAIN: Readonly<Record<string, string>> = {
  id: '#!/bin/sh\necho 0\n',
  nproc: '#!/bin/sh\necho 4\n',
  chown: '#!/bin/sh\nexit 0\n',
  sync: '#!/bin/sh\nexit 0\n',
  losetup: '#!/bin/sh\nexit 0\n',
  mount: '#!/bin/sh\nexit 0\n',
  // Processes of the host are those of its kubelet.
  cat: '#!/bin/sh\ncase $1 in /proc/[0-9]*) exec /bin/cat "$KUBELETADM_ROOT$1";; esac\nexec /bin/cat "$@"\n',
  sha256sum: `#!/bin/sh
if [ $# -eq 1 ] && [ -e "$KUBELETADM_ROOT$1" ]; then exec /usr/bin/sha256sum "$KUBELETADM_ROOT$1"; fi
exec /usr/bin/sha256sum "$@"
`,
  stat: `#!/bin/sh
if [ "$1" = -f ]; then echo cgroup2fs; exit; fi
format= rest=$2; shift 2
while :; do
  case $rest in *%[ugUG]*) ;; *) break;; esac
  before=\${rest%%%[ugUG]*}; rest=\${rest#"$before"}
  case $rest in %[ug]*) owner=0;; *) owner=root;; esac
  format=$format$before$owner; rest=\${rest#%?}
done
exec /usr/bin/stat -c "$format$rest" "$@"
`,
};

/** Node.js wrapper that resolves a program path below the root of the host. */
function nodeCommand(): string {
  const node = `'${process.execPath.replaceAll("'", "'\\''")}'`;
  return `#!/bin/sh
case $1 in /*) p=$1; shift; exec ${node} "$KUBELETADM_ROOT$p" "$@";; esac
exec ${node} "$@"
`;
}

/** Writes the stand-in commands into a directory that comes first on the PATH of the lab's hosts. */
export async function writeStandInCommands(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  const absent = Object.fromEntries(ABSENT.map((name) => [name, '#!/bin/sh\nexit 127\n']));
  const all = { ...Object.fromEntries(ASKING.map((name) => [name, ASK])), systemctl: SYSTEMCTL, node: nodeCommand(), ...PLAIN, ...absent };
  for (const [name, text] of Object.entries(all)) {
    await writeFile(join(directory, name), text);
    await chmod(join(directory, name), 0o755);
  }
}
