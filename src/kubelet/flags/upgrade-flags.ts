import type { Arg } from '../../base/arg.ts';
import type { Catalogue, Minor } from '../catalogue/catalogue.ts';
import { parseCommandLine } from './command-line.ts';
import { readFlagsEnv } from './flags-env.ts';

interface UpgradeFlagsOptions {
  readonly minor: Minor;
  readonly catalogue: Catalogue;
  /** Move the socket to instance-config.yaml. */
  readonly moveSocket: boolean;
}

export interface UpgradedFlags {
  /** The remaining flags, in their order. */
  readonly flags: readonly Arg[];
  /** Flags written by kubeadm that this kubelet no longer has: it would not start with them. */
  readonly dropped: readonly Arg[];
  /** The last `container-runtime-endpoint`, kept or removed. */
  readonly criSocket: string | null;
  /** Whether the file must be rewritten. */
  readonly changed: boolean;
}

/**
 * Flags that a version of kubeadm wrote and a later kubelet rejects.
 * @see kubeadm 1.11 to 1.35 phases/kubelet/flags.go
 */
const KUBEADM_MADE: ReadonlySet<string> = new Set([
  'pod-infra-container-image',
  'container-runtime',
  'network-plugin',
  'cni-conf-dir',
  'cni-bin-dir',
  'dynamic-config-dir',
]);

/**
 * Computes kubeadm-flags.env for an upgraded node. kubeadm's own rewrite sorts the flags and damages quoted
 * values; here order and values are preserved.
 * @param text content of the file; empty: no file
 * @see kubeadm 1.36 phases/upgrade/postupgrade.go (the socket), 1.35 (`pod-infra-container-image`)
 */
export function upgradeFlags(text: string, { minor, catalogue, moveSocket }: UpgradeFlagsOptions): UpgradedFlags {
  const found = parseCommandLine(readFlagsEnv(text), { minor, catalogue }).flags.map(
    ({ name, value }): Arg => ({ name, value: quoted(value) }),
  );
  const isGone = ({ name }: Arg): boolean => KUBEADM_MADE.has(name) && catalogue.flag(name, minor) === null;
  const isSocket = ({ name }: Arg): boolean => name === 'container-runtime-endpoint';
  const dropped = found.filter(isGone);
  const flags = found.filter((flag) => !isGone(flag) && !(moveSocket && isSocket(flag)));
  return { flags, dropped, criSocket: found.findLast(isSocket)?.value ?? null, changed: flags.length < found.length };
}

/** The value in a form that stays one word: quoted if it contains spaces, quotes or backslashes. */
function quoted(value: string): string {
  return /[\s"'\\]/.test(value) ? `"${value.replace(/["\\]/g, '\\$&')}"` : value;
}
