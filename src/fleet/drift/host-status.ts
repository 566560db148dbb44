import { createHash } from 'node:crypto';
import { isAppError } from '../../base/errors.ts';
import type { Host } from '../../host/access/host.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { operatingSystem } from '../../host/facts/operating-system.ts';
import type { Catalogue, Minor } from '../../kubelet/catalogue/catalogue.ts';
import type { KubeletSetup } from '../../kubelet/effective/kubelet-setup.ts';
import { assessNextStart } from '../../kubelet/effective/next-start.ts';
import { observeKubeletSetups } from '../../kubelet/effective/observe-kubelet.ts';
import { clientIdentity, registeredNode } from '../../kubelet/facts/kubelet-identity.ts';
import { kubeletBinary } from '../../kubelet/facts/kubelet-version.ts';
import type { Drift } from './drift.ts';

/** Facts for the status table of a fleet, without the kubelet's configuration and health. */
export const statusFacts = combineFacts({ os: operatingSystem, kubelet: kubeletBinary, identity: clientIdentity });

export function statusOf({ kubelet, identity }: ReturnType<typeof statusFacts.parse>): {
  readonly kubeletVersion: string | null;
  readonly nodeName: string | null;
} {
  return {
    kubeletVersion: kubelet === null ? null : 'version' in kubelet ? kubelet.version : 'unknown',
    nodeName: registeredNode(identity),
  };
}

/** The configuration of a kubelet, and what its next start would change. */
export interface KubeletStatus {
  /**
   * The first 12 digits of the SHA-256 of the configuration file and the drop-in files over it that the running kubelet reads,
   * else those of its next start; null: no file.
   */
  readonly configHash: string | null;
  readonly node: string | null;
  readonly minor: Minor | null;
  /** Changes that the running kubelet has not read. */
  readonly pending: readonly Drift[];
  /** Reasons for which the next start would fail. */
  readonly failures: readonly Drift[];
}

/**
 * Reads the configuration of a host's kubelet for status and drift. A kubelet that is missing or cannot start with its
 * files is a state, and no error.
 */
export async function observeKubeletStatus(host: Host, catalogue: Catalogue, signal?: AbortSignal): Promise<KubeletStatus> {
  const kubelet = (why: string): Drift => ({ what: 'unit kubelet', why });
  try {
    const observed = await observeKubeletSetups(host, catalogue, signal);
    const { changes, failures } = assessNextStart(observed, catalogue);
    return {
      configHash: configHash(observed.setup),
      node: observed.nodeName,
      minor: observed.minor,
      // A new program is an upgrade of the package.
      pending: changes.filter(({ code }) => code !== 'VERSION_REPLACED').map(({ message }) => kubelet(message)),
      failures: failures.map((why) => kubelet(`a restart would fail: ${why}`)),
    };
  } catch (error) {
    if (!isAppError(error, 'KUBELET_MISSING') && !isAppError(error, 'KUBELET_UNSUPPORTED')) throw error;
    const missing = error.problems.filter(({ code }) => code === 'KUBELET_MISSING');
    const failures = missing.map(({ message }) => kubelet(`a restart would fail: ${message}`));
    return { configHash: null, node: null, minor: null, pending: [], failures };
  }
}

function configHash({ configFile, dynamicConfig, dropIns }: KubeletSetup): string | null {
  const file = dynamicConfig ?? configFile;
  if (file === null && dropIns.length === 0) return null;
  const texts = [file?.text ?? '', ...dropIns.map(({ text }) => text)].join('\0');
  return createHash('sha256').update(texts).digest('hex').slice(0, 12);
}
