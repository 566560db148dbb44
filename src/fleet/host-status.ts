import { createHash } from 'node:crypto';
import { combineFacts } from '../host/facts/fact.ts';
import { fileFacts } from '../host/facts/file-facts.ts';
import { operatingSystem } from '../host/facts/operating-system.ts';
import { KUBELET_CONFIG_FILE } from '../kube/well-known.ts';
import type { HostText } from '../kubelet/effective/running-config.ts';
import { clientIdentity } from '../kubelet/facts/kubelet-identity.ts';
import { kubeletBinary } from '../kubelet/facts/kubelet-version.ts';

/** Facts for the status table of a fleet, without the kubelet's health. */
export const statusFacts = combineFacts({
  os: operatingSystem,
  kubelet: kubeletBinary,
  identity: clientIdentity,
  files: fileFacts([KUBELET_CONFIG_FILE]),
});

type StatusFacts = ReturnType<typeof statusFacts.parse>;

export interface HostStatusFacts {
  /** Version of the binary, e.g. `v1.36.2`; null: not installed. */
  readonly kubeletVersion: string | null;
  /** The first 12 digits of the SHA-256 of config.yaml and the drop-in files over it; null: no file. */
  readonly configHash: string | null;
  /** The registered name; null: not joined. */
  readonly nodeName: string | null;
}

/**
 * Converts facts to table values.
 * @param dropIns drop-in files of `--config-dir`, in merge order
 */
export function statusOf({ kubelet, identity, files }: StatusFacts, dropIns: readonly HostText[] = []): HostStatusFacts {
  const content = files.get(KUBELET_CONFIG_FILE)?.content;
  const texts = [content ?? '', ...dropIns.map(({ text }) => text)].join('\0');
  const certified = identity.state === 'usable' ? /^system:node:(.+)$/.exec(identity.commonName ?? '')?.[1] : undefined;
  return {
    kubeletVersion: kubelet === null ? null : 'version' in kubelet ? kubelet.version : 'unknown',
    configHash: content === undefined ? null : createHash('sha256').update(texts).digest('hex').slice(0, 12),
    nodeName: certified ?? null,
  };
}
