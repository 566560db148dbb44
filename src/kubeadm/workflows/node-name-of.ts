import type { ClientIdentity } from '../../kubelet/facts/kubelet-identity.ts';
import { readFlagsEnv } from '../../kubelet/flags-env.ts';

export interface NodeNameFacts {
  readonly identity: ClientIdentity;
  /** Text of the host's memory of its node; empty: there is none. */
  readonly memory: string;
  /** Text of kubeadm-flags.env. */
  readonly flagsEnv: string;
  readonly hostname: string | null;
}

const OVERRIDE = '--hostname-override=';

/**
 * The name that a host says its Node has: of its certificate, the flag, its settings, else its hostname. It is data for messages and guesses; what is done in the cluster needs
 * `identifyNode`.
 */
export function nodeNameOf({ identity, memory, flagsEnv, hostname }: NodeNameFacts): string | null {
  const certified = identity.state === 'usable' ? /^system:node:(.+)$/.exec(identity.commonName ?? '')?.[1] : undefined;
  const overridden = readFlagsEnv(flagsEnv)
    .findLast((word) => word.startsWith(OVERRIDE))
    ?.slice(OVERRIDE.length);
  const saved = /^ {2}name: (.+)$/m.exec(memory)?.[1];
  return certified ?? overridden ?? saved ?? hostname;
}
