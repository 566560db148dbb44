import { applyPhases, planPhases } from '../../src/host/apply-phases.ts';
import type { PhaseContext } from '../../src/host/phase.ts';
import { applyClusterDefaults } from '../../src/kubeadm/config/defaults.ts';
import type { ClusterConfiguration } from '../../src/kubeadm/config/model.ts';
import { certsPhases, kubeconfigPhases } from '../../src/kubeadm/phases/pki.ts';
import type { PkiConfiguration } from '../../src/kubeadm/pki/alt-names.ts';
import { KUBECONFIGS } from '../../src/kubeadm/pki/kubeconfig-list.ts';
import { type PkiOptions, type PreparedPki, preparePki } from '../../src/kubeadm/workflows/certificates/prepare-pki.ts';
import { certificateIssuer } from '../../src/x509/adapters/certificate-issuer.ts';
import { type FakeClock, fakeClock } from './fake-clock.ts';
import { type FakeHost, fakeHost } from './fake-host.ts';
import { recordingReporter } from './recording-reporter.ts';

/** The creation time of the certificates in these tests. */
export const NOW = new Date('2030-01-01T00:00:00Z');

/** A cluster node with small keys, limited to its certificates. */
export function pkiNode(cluster: ClusterConfiguration = {}, node: Partial<Omit<PkiConfiguration, 'cluster'>> = {}): PkiConfiguration {
  return {
    cluster: applyClusterDefaults({ kubernetesVersion: 'v1.36.2', encryptionAlgorithm: 'ECDSA-P256', ...cluster }),
    nodeName: 'cp-1',
    localAPIEndpoint: { advertiseAddress: '192.168.56.10', bindPort: 6443 },
    ...node,
  };
}

/** The complete configuration of init. */
export function pkiOptions(node: PkiConfiguration, some: Partial<PkiOptions> = {}): PkiOptions {
  return {
    node,
    kubernetesDir: '/etc/kubernetes',
    kubeconfigs: KUBECONFIGS,
    generates: { certificate: () => true, kubeconfig: () => true },
    issuer: certificateIssuer,
    mayChown: true,
    ...some,
  };
}

export function pkiContext(host: FakeHost = fakeHost(), clock: FakeClock = fakeClock(NOW)): PhaseContext {
  return { host, cluster: null, clock, reporter: recordingReporter() };
}

export const PKI_PHASES = [...certsPhases, ...kubeconfigPhases];

/** Creates the missing certificates on a host, like init. */
export async function makePki(context: PhaseContext, options: PkiOptions): Promise<PreparedPki> {
  const prepared = await preparePki(context, options);
  await applyPhases(PKI_PHASES, context, prepared, await planPhases(PKI_PHASES, context, prepared));
  return prepared;
}
