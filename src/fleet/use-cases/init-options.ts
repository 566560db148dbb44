import type { Reporter } from '../../base/reporter.ts';
import { withDocument } from '../../host/run-settings.ts';
import type { LoadedConfig } from '../../kubeadm/config/load.ts';
import { NodeGroups } from '../../kubeadm/render/node-groups.ts';
import { controlPlaneInputs, releaseOf } from '../../kubeadm/use-cases/control-plane-inputs.ts';
import { initTokens } from '../../kubeadm/use-cases/init-phases.ts';
import { durationMs, isForKubelet } from '../../kubeadm/use-cases/node-options.ts';
import type { InitOptions } from '../../kubeadm/workflows/init.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { nodeOptionsOf, type PlannedHost } from '../file/model.ts';
import type { FleetRunPorts } from '../ports.ts';
import { readFleetPatches, registrationOf } from './fleet-configuration.ts';

/**
 * The settings of init from its documents, overridden by the host settings of the fleet file.
 * @param input.first the control plane
 * @param input.given the cluster, if it exists
 * @param input.showCertificateKey receives the key of the certificates; the certificates are uploaded in this case
 */
export async function fleetInitOptions(
  services: FleetRunPorts,
  input: Pick<InitOptions, 'run' | 'given' | 'opened'> &
    Partial<Pick<InitOptions, 'showCertificateKey'>> & {
      readonly first: PlannedHost;
      readonly file: string;
      readonly reporter: Reporter;
      readonly config: LoadedConfig;
    },
): Promise<InitOptions> {
  const { first, file, reporter, config, given, opened, showCertificateKey } = input;
  const init = config.init ?? {};
  const patches = await readFleetPatches(services, init, { file, reporter });
  const run = withDocument(input.run, { skipPhases: init.skipPhases });
  return {
    templates: await services.templates(),
    catalogue: await loadCatalogue(),
    groups: new NodeGroups(),
    ...nodeOptionsOf(first),
    nodeRegistration: registrationOf(init, first.nodeRegistration),
    settings: [],
    patches: patches.filter(isForKubelet),
    staticPodPatches: patches.filter((patch) => !isForKubelet(patch)),
    skipPreflight: false,
    run,
    staged: false,
    kubeletHealthCheckMs: durationMs(init.timeouts?.kubeletHealthCheck, 240_000),
    cluster: config.cluster ?? {},
    kubelet: config.kubelet ?? null,
    kubeProxy: config.kubeProxy ?? null,
    localAPIEndpoint: init.localAPIEndpoint ?? {},
    advertisesNodeIP: true,
    timeouts: init.timeouts ?? {},
    ...(await controlPlaneInputs(services, { isLocal: false, staged: false })),
    given,
    releaseOf: (label, ci) => releaseOf(services, label, ci),
    forceUpload: false,
    ...(await initTokens(services, init, run)),
    makesTokens: (init.bootstrapTokens ?? []).length > 0,
    uploadCerts: showCertificateKey !== undefined,
    certificateKey: null,
    showCertificateKey: showCertificateKey ?? (() => undefined),
    withholdCertificateKey: true,
    withholdToken: true,
    showJoinCommand: () => undefined,
    opened,
  };
}
