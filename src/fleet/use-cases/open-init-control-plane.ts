import { AppError } from '../../base/errors.ts';
import { Secret } from '../../base/text/secret.ts';
import { phaseSelection } from '../../host/run-workflow.ts';
import type { LoadedConfig } from '../../kubeadm/config/load.ts';
import {
  controlPlaneConnector,
  etcdConnector,
  observeLocalCaDirectories,
  observeLocalDefaultRoute,
  proxyEnvironment,
  releaseOf,
} from '../../kubeadm/use-cases/control-plane-inputs.ts';
import { phaseSkipTest } from '../../kubeadm/use-cases/init-phases.ts';
import type { ReadNodeOptions } from '../../kubeadm/use-cases/node-options.ts';
import { type OpenedCluster, operatorNodeTrust } from '../../kubeadm/use-cases/open-cluster.ts';
import type { ApiAccess } from '../../kubeadm/workflows/control-plane/api-access.ts';
import { type InitControlPlaneOptions, initControlPlaneWorkflow } from '../../kubeadm/workflows/init-control-plane.ts';
import { type HostTarget, isLocalHost, targetName } from '../host-target.ts';
import type { NodeCommandPorts } from '../ports.ts';

/** Options for a new control plane. */
export interface ControlPlaneRequest {
  readonly uploadCerts: boolean;
  readonly skipCertificateKeyPrint: boolean;
  /** Directory for the kubeconfigs that `init phase kubeconfig` generates. Undefined: /etc/kubernetes. */
  readonly kubeconfigDir: string | undefined;
}

export interface ControlPlaneInput {
  readonly config: LoadedConfig;
  readonly request: ControlPlaneRequest;
  readonly node: ReadNodeOptions;
  readonly targets: readonly HostTarget[];
  /** The cluster of `--kubeconfig`, for a phase alone. */
  readonly opened: OpenedCluster;
  /** Receives each connection to the new API server, which the caller closes. */
  readonly onAccess: (access: ApiAccess) => void;
  /** Receives the key of the certificates that upload-certs uploaded. */
  readonly onCertificateKey: (key: Secret) => void;
}

/**
 * The workflow of `init` and `init phase NAME...` without an API server, and the options that only it has.
 * @throws AppError USAGE (exit code 2) for several hosts
 */
export async function openInitControlPlane(services: NodeCommandPorts, input: ControlPlaneInput) {
  const { config, request, node, targets, opened } = input;
  const given = opened.cluster;
  const init = config.init ?? {};
  if (targets.length > 1) throw oneHost(targets);
  const options = {
    kubeProxy: config.kubeProxy ?? null,
    configOrigins: config.origins,
    localAPIEndpoint: init.localAPIEndpoint ?? {},
    timeouts: init.timeouts ?? {},
    proxyEnvironment: isLocalHost(targets[0]) ? proxyEnvironment(services.env) : [],
    issuer: await services.certificateIssuer(),
    selects: phaseSelection(node.run),
    skips: phaseSkipTest(node.run),
    localDefaultRoute: node.staged ? await observeLocalDefaultRoute(services) : {},
    localCaDirectories: node.staged ? await observeLocalCaDirectories(services) : [],
    connect: controlPlaneConnector(services),
    connectEtcd: etcdConnector(services),
    given,
    trust: given === null ? null : operatorNodeTrust(services, opened),
    releaseOf: (label, ci) => releaseOf(services, label, ci),
    kubeconfigDir: request.kubeconfigDir,
    uploadCerts: request.uploadCerts,
    certificateKey: init.certificateKey ?? null,
    certsToken: node.run.dryRun ? new Secret(`dryrun.${'1'.repeat(16)}`) : await services.newToken(),
    showCertificateKey: input.onCertificateKey,
    withholdCertificateKey: request.skipCertificateKeyPrint,
    opened: input.onAccess,
  } satisfies Partial<InitControlPlaneOptions>;
  return { workflow: initControlPlaneWorkflow, options };
}

function oneHost(targets: readonly HostTarget[]): AppError {
  const names = targets.map(targetName).join(', ');
  const message = `init bootstraps the first control plane of a cluster on one host, but ${targets.length} hosts were given: ${names}`;
  const hint = 'Run kubeletadm init with one --host, then join the other hosts: kubeletadm join --control-plane';
  return new AppError({ code: 'USAGE', message, hint }, { exitCode: 2 });
}
