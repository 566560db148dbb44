import type { KubeletAcceptance } from '../../kubelet/facts/kubelet-acceptance.ts';
import type { Finding } from './check.ts';

const ID = 'KubeletConfigAccepted';

/**
 * Turns the kubelet's own validation of its configuration into findings. A rejection of the host (cgroup v1)
 * is reported by `SystemVerification` instead.
 * @param version of the kubelet, e.g. `v1.36.2`
 */
export function kubeletConfigAccepted(acceptance: KubeletAcceptance, version: string): readonly Finding[] {
  switch (acceptance.verdict) {
    case 'accepted':
      return [];
    case 'refused': {
      if (acceptance.isHost) return [];
      const message = `kubelet ${version} would fail at startup with this configuration: ${acceptance.cause}`;
      return [{ id: ID, severity: 'error', message, hint: acceptance.hint }];
    }
    case 'unknown':
      return [{ id: ID, severity: 'warning', message: `kubelet ${version} could not validate this configuration: ${acceptance.why}` }];
  }
}
