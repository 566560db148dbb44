import { defineFact } from './fact.ts';

/** The Linux distribution of a host. `packageFamily` determines the file of `KUBELET_EXTRA_ARGS`. Null: unknown. */
export const operatingSystem = defineFact(
  {
    id: { kind: 'command', argv: ['id', '-u'] },
    machine: { kind: 'command', argv: ['uname', '-m'] },
    nodename: { kind: 'command', argv: ['uname', '-n'] },
    hostnameFile: { kind: 'file', path: '/etc/hostname' },
    release: { kind: 'file', path: '/etc/os-release' },
  },
  ({ id, machine, nodename, hostnameFile, release }) => {
    const os = parseOsRelease(release?.content ?? '');
    // As kubeadm 1.36 util/node.go.
    const hostname = (nodename.exitCode === 0 ? nodename.stdout : (hostnameFile?.content?.replace(/^#.*$/gm, '') ?? ''))
      .trim()
      .toLowerCase();
    return {
      uid: id.exitCode === 0 ? Number(id.stdout.trim()) : null,
      machine: machine.exitCode === 0 ? machine.stdout.trim() : null,
      prettyName: os.get('PRETTY_NAME') ?? null,
      packageFamily: packageFamily(`${os.get('ID') ?? ''} ${os.get('ID_LIKE') ?? ''}`),
      hostname: hostname === '' ? null : hostname,
    };
  },
);

/** Reads os-release(5): shell-like assignments, values quoted or not. */
export function parseOsRelease(text: string): ReadonlyMap<string, string> {
  const entries: [string, string][] = [];
  for (const line of text.split('\n')) {
    const match = /^([A-Z_][A-Z0-9_]*)=(.*)$/.exec(line.trim());
    if (match) entries.push([match[1] as string, unquote(match[2] as string)]);
  }
  return new Map(entries);
}

function unquote(value: string): string {
  if (/^'.*'$/.test(value)) return value.slice(1, -1);
  return /^".*"$/.test(value) ? value.slice(1, -1).replace(/\\(["\\$`])/g, '$1') : value;
}

function packageFamily(ids: string): 'deb' | 'rpm' | null {
  if (/\b(debian|ubuntu|raspbian)\b/.test(ids)) return 'deb';
  return /\b(?:rhel|fedora|centos|rocky|almalinux|amzn|ol|suse|sles|photon|azurelinux|mariner|openEuler)\b|\bopensuse/.test(ids)
    ? 'rpm'
    : null;
}
