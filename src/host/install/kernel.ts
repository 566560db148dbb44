import { renderTemplate, type Templates } from '../../codec/render-template.ts';
import { defineFact, type Fact, mapFact } from '../facts/fact.ts';
import { fileFacts } from '../facts/file-facts.ts';
import type { FileFact } from '../facts/query.ts';
import type { HostChange, PhasePlan } from '../plan/change.ts';
import { diffFile, previousFile } from '../plan/diff-file.ts';

export const MODULES_FILE = '/etc/modules-load.d/kubeletadm.conf';
export const SYSCTLS_FILE = '/etc/sysctl.d/90-kubeletadm.conf';
const FSTAB = '/etc/fstab';
const SWAPS = '/proc/swaps';

export const MODULE_NAME = /^[A-Za-z0-9][\w-]{0,63}$/;

/** The name of a sysctl, with dots, or with slashes if a part contains a dot. */
export const SYSCTL_NAME = /^[A-Za-z0-9_-]+[./][A-Za-z0-9_:.@-]+(?:\/[A-Za-z0-9_:.@-]+)*$/;

export interface ModuleFacts {
  readonly file: FileFact | null;
  /** Modules that are loaded or built in. */
  readonly loaded: ReadonlySet<string>;
}

export function moduleFacts(modules: readonly string[]): Fact<ModuleFacts> {
  return defineFact(
    {
      file: { kind: 'file', path: MODULES_FILE },
      found: { kind: 'command', argv: ['sh', '-c', LOADED, 'sh', ...modules] },
    },
    ({ file, found }) => ({ file, loaded: new Set(found.stdout.split('\n').filter(Boolean)) }),
  );
}

const LOADED = `built=$(tr - _ <"/lib/modules/$(uname -r)/modules.builtin" 2>/dev/null)
for m; do n=$(echo "$m" | tr - _)
  if [ -d "/sys/module/$n" ]; then echo "$m"; else case "$built" in */"$n".ko*) echo "$m";; esac; fi
done; true`;

/** Writes the file for the next boot, and loads modules that are not loaded. */
export function planModules(templates: Templates, modules: readonly string[], { file, loaded }: ModuleFacts): PhasePlan {
  const changes: readonly HostChange[] = [
    ...ownFile(file, MODULES_FILE, String(renderTemplate(templates, MODULES_FILE, { modules }))),
    ...modules.flatMap((module): HostChange[] =>
      loaded.has(module) ? [] : [{ kind: 'load-module', module, reason: 'the module is not loaded' }],
    ),
  ];
  return changes.length > 0
    ? { changes }
    : { changes, noop: modules.length === 0 ? 'no kernel modules are declared' : `${modules.join(', ')}: loaded` };
}

/** Written if declared; removed if no longer declared. */
function ownFile(found: FileFact | null, path: string, content: string): readonly HostChange[] {
  if (content !== '') {
    const change = diffFile(found, { path, content, mode: 0o644, owner: 'root:root' });
    return change === null ? [] : [change];
  }
  if (found === null) return [];
  return [{ kind: 'remove-file', path, before: previousFile(found), reason: 'no longer declared' }];
}

export interface SysctlFacts {
  readonly file: FileFact | null;
  /** By name; null: the kernel has no such parameter. */
  readonly values: ReadonlyMap<string, string | null>;
}

export function sysctlFacts(names: readonly string[]): Fact<SysctlFacts> {
  return mapFact(fileFacts([SYSCTLS_FILE, ...names.map(sysctlPath)]), (files) => ({
    file: files.get(SYSCTLS_FILE) ?? null,
    values: new Map(names.map((name) => [name, files.get(sysctlPath(name))?.content ?? null])),
  }));
}

/** Path below /proc/sys. As in sysctl(8), the first separator (dot or slash) separates the parts. */
export function sysctlPath(name: string): string {
  const parts = /^[^./]*\//.test(name) ? name : name.replace(/[./]/g, (sign) => (sign === '.' ? '/' : '.'));
  return `/proc/sys/${parts}`;
}

/** Writes the file for the next boot, and sets parameters with another value. */
export function planSysctls(templates: Templates, declared: Readonly<Record<string, string>>, { file, values }: SysctlFacts): PhasePlan {
  const entries = Object.entries(declared);
  const changes: readonly HostChange[] = [
    ...ownFile(file, SYSCTLS_FILE, String(renderTemplate(templates, SYSCTLS_FILE, { sysctls: declared }))),
    ...entries.flatMap(([name, value]): HostChange[] => {
      const now = values.get(name) ?? null;
      if (now !== null && words(now) === words(value)) return [];
      return [{ kind: 'set-sysctl', name, value, reason: now === null ? 'not set yet' : `the current value is ${words(now)}` }];
    }),
  ];
  return changes.length > 0
    ? { changes }
    : { changes, noop: entries.length === 0 ? 'no kernel parameters are declared' : 'all parameters have the declared values' };
}

/** The kernel separates numbers with tabs. */
function words(value: string): string {
  return value.trim().split(/\s+/).join(' ');
}

export interface SwapFacts {
  readonly fstab: FileFact | null;
  readonly active: readonly string[];
}

export const swapFacts: Fact<SwapFacts> = mapFact(fileFacts([FSTAB, SWAPS]), (files) => {
  const lines = (files.get(SWAPS)?.content ?? '').split('\n').slice(1);
  return { fstab: files.get(FSTAB) ?? null, active: lines.flatMap((line) => line.split(/\s+/)[0] || []) };
});

function isSwapLine(line: string): boolean {
  if (!line.includes('swap')) return false;
  const [device = '', , type] = line.trim().split(/\s+/);
  return type === 'swap' && !device.startsWith('#');
}

/** Disables swap now and at boot: its lines in /etc/fstab become comments. */
export function planSwapOff({ fstab, active }: SwapFacts): PhasePlan {
  const text = fstab?.content ?? '';
  const lines = text.split('\n').map((line) => (isSwapLine(line) ? `# ${line}` : line));
  const content = lines.join('\n');
  const change =
    fstab === null || content === text ? null : diffFile(fstab, { path: FSTAB, content, mode: fstab.mode, owner: fstab.owner });
  const changes: readonly HostChange[] = [
    ...(change === null ? [] : [change]),
    ...(active.length === 0 ? [] : [{ kind: 'turn-off-swap', reason: `${active.join(', ')}: active` } as const]),
  ];
  const named = new Set(text.split('\n').flatMap((line) => (/^\s*#/.test(line) ? [] : (line.trim().split(/\s+/)[0] ?? []))));
  // A UUID or label in fstab may refer to any of them.
  const others = [...named].some((name) => name.includes('=')) ? [] : active.filter((name) => !named.has(name));
  const warnings = others.map((name) => ({
    code: 'SWAP_COMES_BACK',
    message: `swap on ${name} was not enabled by ${FSTAB}, so a systemd unit may enable it again at boot. Find the unit with systemctl list-units --type swap, then mask the unit`,
  }));
  return { changes, ...(changes.length > 0 ? {} : { noop: 'swap is off' }), ...(warnings.length === 0 ? {} : { warnings }) };
}
