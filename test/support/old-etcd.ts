import { execFileSync } from 'node:child_process';

/** Flags of etcd 3.6 under their previous names, and the port that probes use then. */
const BEFORE_3_6: ReadonlyMap<string, string> = new Map([
  ['--feature-gates=InitialCorruptCheck=true', '--experimental-initial-corrupt-check=true'],
  ['--watch-progress-notify-interval=5s', '--experimental-watch-progress-notify-interval=5s'],
  ['/livez', '/health'],
  ['/readyz', '/health'],
]);

/**
 * Kubernetes 1.36 deploys etcd 3.6; the local host may have an older one.
 * @returns the argument or path of the manifest in the form of that etcd
 */
export function asKnownTo(etcd: string): (text: string) => string {
  const [, minor = '0'] = /^etcd Version: 3\.(\d+)/.exec(execFileSync(etcd, ['--version'], { encoding: 'utf8' })) ?? [];
  return Number(minor) >= 6 ? (text) => text : (text) => BEFORE_3_6.get(text) ?? text;
}
