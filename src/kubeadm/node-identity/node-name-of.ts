import { type ClientIdentity, registeredNode } from '../../kubelet/facts/kubelet-identity.ts';
import { readFlagsEnv } from '../../kubelet/flags/flags-env.ts';

const OVERRIDE = '--hostname-override=';

/**
 * The Node name that a host claims: by certificate, --hostname-override, saved settings, or hostname. The claim is
 * unverified and only for messages and defaults; changes in the cluster require `identifyNode`.
 * @param facts.nodeSettings text of the node settings saved on the host; empty: none
 * @param facts.flagsEnv text of kubeadm-flags.env
 */
export function nodeNameOf({
  identity,
  nodeSettings,
  flagsEnv,
  hostname,
}: {
  readonly identity: ClientIdentity;
  readonly nodeSettings: string;
  readonly flagsEnv: string;
  readonly hostname: string | null;
}): string | null {
  const overridden = readFlagsEnv(flagsEnv)
    .findLast((word) => word.startsWith(OVERRIDE))
    ?.slice(OVERRIDE.length);
  const saved = /^ {2}name: (.+)$/m.exec(nodeSettings)?.[1];
  return registeredNode(identity) ?? overridden ?? saved ?? hostname;
}
