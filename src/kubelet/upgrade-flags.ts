import type { Arg } from '../base/arg.ts';
import type { Catalogue, Minor } from './catalogue.ts';
import { parseCommandLine } from './flags/command-line.ts';
import { readFlagsEnv } from './flags-env.ts';

export interface UpgradeFlagsOptions {
  readonly minor: Minor;
  readonly catalogue: Catalogue;
  /** The socket moves to instance-config.yaml. */
  readonly moveSocket: boolean;
}

export interface UpgradedFlags {
  /** What stays, in its order. */
  readonly flags: readonly Arg[];
  /** Flags of kubeadm's own making that this kubelet has no more: with one of them it would not start. */
  readonly dropped: readonly Arg[];
  /** The last `container-runtime-endpoint`, whether it stays or not. */
  readonly criSocket: string | null;
  /** Whether the file has to be written again. */
  readonly changed: boolean;
}

/** Flags that some version of kubeadm wrote by itself and a later kubelet refuses. @see kubeadm 1.11 to 1.35 phases/kubelet/flags.go */
const KUBEADM_MADE: ReadonlySet<string> = new Set([
  'pod-infra-container-image',
  'container-runtime',
  'network-plugin',
  'cni-conf-dir',
  'cni-bin-dir',
  'dynamic-config-dir',
]);

/**
 * What becomes of kubeadm-flags.env when the node is upgraded. kubeadm's own way of rewriting it sorts the flags and damages quoted values: here order and
 * values stay.
 * @param text of the file; empty: there is none
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

/** The value as it must be written to stay one word: in quotes when it has blanks, quotes or backslashes. */
function quoted(value: string): string {
  return /[\s"'\\]/.test(value) ? `"${value.replace(/["\\]/g, '\\$&')}"` : value;
}
