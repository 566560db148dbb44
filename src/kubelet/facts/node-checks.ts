import { defineFact } from '../../host/facts/fact.ts';

/**
 * Facts for kubeadm's node preflight checks, in addition to files. Null: unknown (an image, another system).
 */
interface NodeChecks {
  /** Names of swap areas in use. */
  readonly swaps: readonly string[] | null;
  readonly cgroupVersion: 1 | 2 | null;
  readonly kernelRelease: string | null;
  readonly ipv4Forward: boolean | null;
  readonly ipv6Forward: boolean | null;
  /** Commands required by kubeadm that are missing on PATH. */
  readonly missingCommands: readonly string[] | null;
}

/** Commands required by kubeadm 1.36 on every node; conntrack only up to 1.31. */
const REQUIRED_COMMANDS = ['losetup', 'mount', 'cp', 'conntrack'] as const;

export const nodeChecks = defineFact(
  {
    swaps: { kind: 'file', path: '/proc/swaps' },
    cgroup: { kind: 'command', argv: ['stat', '-f', '-c', '%T', '/sys/fs/cgroup'] },
    kernel: { kind: 'command', argv: ['uname', '-r'] },
    forward4: { kind: 'file', path: '/proc/sys/net/ipv4/ip_forward' },
    forward6: { kind: 'file', path: '/proc/sys/net/ipv6/conf/default/forwarding' },
    commands: {
      kind: 'command',
      argv: ['sh', '-c', `for c in ${REQUIRED_COMMANDS.join(' ')}; do command -v $c >/dev/null || echo $c; done`],
    },
  },
  ({ swaps, cgroup, kernel, forward4, forward6, commands }): NodeChecks => ({
    swaps: swaps?.content === undefined ? null : parseSwaps(swaps.content),
    cgroupVersion: cgroup.exitCode === 0 ? (cgroup.stdout.trim() === 'cgroup2fs' ? 2 : 1) : null,
    kernelRelease: kernel.exitCode === 0 ? kernel.stdout.trim() : null,
    ipv4Forward: forward4?.content === undefined ? null : forward4.content.trim() === '1',
    ipv6Forward: forward6?.content === undefined ? null : forward6.content.trim() === '1',
    missingCommands: commands.exitCode === 0 ? commands.stdout.split('\n').filter(Boolean) : null,
  }),
);

/** Swap areas in /proc/swaps, without its header line. */
export function parseSwaps(text: string): readonly string[] {
  return text
    .split('\n')
    .slice(1)
    .flatMap((line) => line.trim().split(/\s+/)[0] || []);
}
