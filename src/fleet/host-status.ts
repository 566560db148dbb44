import { createHash } from 'node:crypto';
import { combineFacts } from '../host/facts/fact.ts';
import { fileFacts } from '../host/facts/file-facts.ts';
import { operatingSystem } from '../host/facts/operating-system.ts';
import { CONFIG_YAML } from '../kube/well-known.ts';
import { clientIdentity } from '../kubelet/facts/kubelet-identity.ts';
import { kubeletBinary } from '../kubelet/facts/kubelet-version.ts';

/** What the table of a fleet says of a host, without its health. */
export const statusFacts = combineFacts({
  os: operatingSystem,
  kubelet: kubeletBinary,
  identity: clientIdentity,
  files: fileFacts([CONFIG_YAML]),
});

type StatusFacts = ReturnType<typeof statusFacts.parse>;

export interface HostStatusFacts {
  /** Of the binary, e.g. `v1.36.2`; null: there is none. */
  readonly kubeletVersion: string | null;
  /** The first 12 digits of the SHA-256 of config.yaml; null: there is none. */
  readonly configHash: string | null;
  /** The name it is registered by; null: it has not joined. */
  readonly nodeName: string | null;
}

/** What the answers say for the table. */
export function statusOf({ kubelet, identity, files }: StatusFacts): HostStatusFacts {
  const content = files.get(CONFIG_YAML)?.content;
  const certified = identity.state === 'usable' ? /^system:node:(.+)$/.exec(identity.commonName ?? '')?.[1] : undefined;
  return {
    kubeletVersion: kubelet === null ? null : 'version' in kubelet ? kubelet.version : 'unknown',
    configHash: content === undefined ? null : createHash('sha256').update(content).digest('hex').slice(0, 12),
    nodeName: certified ?? null,
  };
}
