import { defineFact, type Fact } from '../facts/fact.ts';

/** Supported package managers. `yum` is the one of RHEL 7 and its derivatives. */
export type PackageManager = 'apt' | 'dnf' | 'yum';

export interface PackageFacts {
  /** Null: no supported package manager. */
  readonly manager: PackageManager | null;
  /** Version by name of the completely installed packages. */
  readonly installed: ReadonlyMap<string, string>;
  /** Packages held at their version, with apt. */
  readonly held: ReadonlySet<string>;
}

export function packageFacts(names: readonly string[]): Fact<PackageFacts> {
  return defineFact({ found: { kind: 'command', argv: ['sh', '-c', ASK, 'sh', ...names] } }, ({ found }) => parsePackages(found.stdout));
}

const ASK = `if command -v apt-get >/dev/null; then
  echo 'manager apt'
  dpkg-query -W -f '\${db:Status-Status} \${Package} \${Version}\\n' "$@" 2>/dev/null
  apt-mark showhold "$@" 2>/dev/null | sed 's/^/held /'
elif command -v rpm >/dev/null; then
  for m in dnf yum; do if command -v $m >/dev/null; then echo "manager $m"; break; fi; done
  rpm -q --qf 'installed %{NAME} %{VERSION}-%{RELEASE}\\n' "$@" 2>/dev/null
fi
true`;

/** Parses `manager apt`, `installed NAME VERSION`, `held NAME`; ignores other output. */
export function parsePackages(text: string): PackageFacts {
  let manager: PackageManager | null = null;
  const installed = new Map<string, string>();
  const held = new Set<string>();
  for (const line of text.split('\n')) {
    const [word, name = '', version = ''] = line.split(' ');
    if (word === 'manager') manager = name as PackageManager;
    else if (word === 'installed' && version !== '') installed.set(name, version);
    else if (word === 'held') held.add(name);
  }
  return { manager, installed, held };
}
