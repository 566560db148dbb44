import { execFileSync } from 'node:child_process';

/** Flags of etcd 3.6 under the names that they had before, and where probes ask then. */
const BEFORE_3_6: ReadonlyMap<string, string> = new Map([
  ['--feature-gates=InitialCorruptCheck=true', '--experimental-initial-corrupt-check=true'],
  ['--watch-progress-notify-interval=5s', '--experimental-watch-progress-notify-interval=5s'],
  ['/livez', '/health'],
  ['/readyz', '/health'],
]);

/**
 * Kubernetes 1.36 brings etcd 3.6; a machine may have an older one.
 * @returns what an argument or path of the manifest is for that etcd
 */
export function asKnownTo(etcd: string): (text: string) => string {
  const [, minor = '0'] = /^etcd Version: 3\.(\d+)/.exec(execFileSync(etcd, ['--version'], { encoding: 'utf8' })) ?? [];
  return Number(minor) >= 6 ? (text) => text : (text) => BEFORE_3_6.get(text) ?? text;
}
