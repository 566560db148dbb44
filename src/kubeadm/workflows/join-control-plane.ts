import { AppError } from '../../base/errors.ts';
import { goDurationMs } from '../../base/text/go-duration.ts';
import type { Secret, SensitiveText } from '../../base/text/secret.ts';
import { type ClusterContext, type PhaseContext, withCluster } from '../../host/phase.ts';
import { type Prepared, phaseSelection, type Workflow } from '../../host/run-workflow.ts';
import { KUBERNETES_DIR } from '../../kube/well-known.ts';
import { applyClusterDefaults, type DefaultedCluster } from '../config/defaults.ts';
import { etcdPeerUrl } from '../control-plane/etcd.ts';
import { hasLocalEtcd, localServer } from '../control-plane/model.ts';
import { checkEtcd, type EtcdJoinInput, etcdJoin, etcdManifest, etcdPromote } from '../phases/etcd-members.ts';
import { kubeletStart } from '../phases/kubelet-start.ts';
import { kubeletWaitBootstrap } from '../phases/kubelet-wait-bootstrap.ts';
import { joinMarkControlPlane, type MarkControlPlaneInput } from '../phases/mark-control-plane.ts';
import { markNode } from '../phases/mark-node.ts';
import { downloadCertsPhase, joinPkiPhases, type PkiInput } from '../phases/pki.ts';
import { type PullImagesInput, pullImages } from '../phases/pull-images.ts';
import { saveStartedNodeSettings } from '../phases/save-node-settings.ts';
import { controlPlanePrepare } from '../phases/static-pods.ts';
import { type WaitControlPlaneInput, waitControlPlane } from '../phases/wait-control-plane.ts';
import { waitNode } from '../phases/wait-node.ts';
import type { WriteFilesInput } from '../phases/write-files.ts';
import { pkiPath } from '../pki/certificate-list.ts';
import { JOINING_KUBECONFIGS } from '../pki/kubeconfig-list.ts';
import { downloadCerts } from './certificates/shared-certs.ts';
import {
  type ApiAccess,
  type ApiServerBootstrapInput,
  adminConfAccess,
  type ConnectControlPlane,
  deferUntilApiServer,
  NO_ACCESS,
} from './control-plane/api-access.ts';
import {
  type ConnectEtcd,
  deferUntilEtcd,
  type EtcdAccess,
  type EtcdPhaseInput,
  etcdAccess,
  etcdEndpoints,
  NO_ETCD_ACCESS,
} from './control-plane/etcd-access.ts';
import {
  type ControlPlaneOptions,
  controlPlaneQueries,
  observeControlPlane,
  prepareControlPlane,
  withAdvertiseAddress,
} from './control-plane/prepare-control-plane.ts';
import { type JoinInput, type JoinOptions, joinQueries, prepareJoin, withoutReservedLabels } from './join.ts';
import { readClusterConfiguration } from './node/cluster-baseline.ts';
import { toWarning } from './node/design-observed-node.ts';
import { observeNode } from './node/observe-node.ts';

export interface JoinControlPlaneOptions extends JoinOptions, ControlPlaneOptions {
  readonly connect: ConnectControlPlane;
  readonly connectEtcd: ConnectEtcd;
  /** Decrypts the uploaded certificates; null: they were copied to the host. */
  readonly certificateKey: Secret | null;
  /** Receives each opened connection, so that the caller can close it. */
  readonly opened: (access: ApiAccess) => void;
}

export interface JoinControlPlaneInput extends ApiServerBootstrapInput, EtcdPhaseInput {
  readonly join: JoinInput;
  readonly pull: PullImagesInput;
  readonly download: WriteFilesInput;
  readonly pki: PkiInput;
  readonly manifests: WriteFilesInput;
  readonly etcd: EtcdJoinInput;
  readonly mark: MarkControlPlaneInput;
  readonly wait: WaitControlPlaneInput;
}

const isSkipped = ({ skipped }: EtcdJoinInput): boolean => skipped !== null;

/** Joins a host as an additional control plane. Phases in the order of kubeadm 1.36 join --control-plane. */
export const joinControlPlaneWorkflow: Workflow<JoinControlPlaneOptions, JoinControlPlaneInput> = {
  name: 'join',
  // A phase of older versions of kubeadm, now etcd-join.
  absentPhases: ['control-plane-join/etcd'],
  phases: [
    pullImages.select((input) => input.pull),
    downloadCertsPhase.select((input) => input.download),
    ...joinPkiPhases.map((phase) => phase.select((input: JoinControlPlaneInput) => input.pki)),
    controlPlanePrepare.select((input) => input.manifests),
    deferUntilEtcd(checkEtcd, (input) => input.etcd, isSkipped),
    kubeletStart.select((input) => input.join.kubeletStart),
    saveStartedNodeSettings.select((input) => input.join.save),
    deferUntilEtcd(etcdJoin, (input) => input.etcd, isSkipped),
    deferUntilEtcd(etcdManifest, (input) => input.etcd, isSkipped),
    deferUntilEtcd(etcdPromote, (input) => input.etcd, isSkipped),
    kubeletWaitBootstrap.select((input) => input.join.waitBootstrap),
    waitNode.select((input) => input.join.waitNode),
    deferUntilApiServer(joinMarkControlPlane, (input) => input.mark),
    markNode.select((input) => input.join.markNode),
    waitControlPlane.select((input) => input.wait),
  ],
  // The configuration of the cluster is not known yet: files at other paths cost another round trip.
  queries: (options) => ({
    ...joinQueries(options),
    ...controlPlaneQueries(applyClusterDefaults({}), { kubernetesDir: KUBERNETES_DIR, kubeconfigs: JOINING_KUBECONFIGS }),
  }),
  prepare: withCluster(prepareJoinControlPlane),
};

const EXTERNAL = 'etcd is external';

async function prepareJoinControlPlane(
  context: ClusterContext,
  options: JoinControlPlaneOptions,
): Promise<Prepared<JoinControlPlaneInput>> {
  const [node, { cluster, found }] = await Promise.all([
    observeNode(context, withoutReservedLabels(options).options),
    clusterToJoin(context),
  ]);
  const { phases } = joinControlPlaneWorkflow;
  const [observed, download] = await Promise.all([
    observeControlPlane(context, withAdvertiseAddress(options, node), { etcd: cluster.etcd, phases }),
    downloadCerts(context, {
      clusterConfiguration: cluster,
      cluster: context.cluster,
      certificateKey: options.certificateKey,
      mayChown: !options.staged,
    }),
  ]);
  const apiServer = { ...(await options.apiServer()), server: localServer(observed.localAPIEndpoint) };
  const isSelected = phaseSelection(options.run);
  // The keys are generated while the kubelet checks its configuration.
  const [prepared, join] = await Promise.all([
    prepareControlPlane(context, options, {
      node,
      observed,
      cluster,
      kubeconfigs: JOINING_KUBECONFIGS,
      joins: true,
      generates: {
        certificate: () => isSelected('control-plane-prepare/certs'),
        kubeconfig: () => isSelected('control-plane-prepare/kubeconfig'),
      },
      given: download.files,
    }),
    prepareJoin(context, { ...options, apiServer: async () => apiServer }, node),
  ]);
  const etcdCallMs = goDurationMs(prepared.timeouts.etcdAPICall);
  const connectEtcd: ConnectEtcd = (target) => options.connectEtcd({ ...target, changeTimeoutMs: etcdCallMs });
  const routes = routesOf({ ...options, connectEtcd }, cluster, prepared.pki.textAt);
  const components = (['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const).map((name) => prepared.manifests[name]);
  return {
    ...join,
    input: {
      join: { ...join.input, kubeletStart: withoutCa(join.input.kubeletStart, cluster) },
      api: routes.api,
      etcdApi: routes.etcdApi,
      assumeEmptyCluster: false,
      staged: options.staged,
      mayLackEtcd: options.staged,
      pull: prepared.pull,
      download: download.input,
      pki: prepared.pki,
      manifests: {
        files: components.flatMap(({ files }) => files),
        directories: components[0]?.directories ?? [],
        mayChown: !options.staged,
      },
      etcd: {
        nodeName: node.registration.name,
        peerURL: etcdPeerUrl(observed.localAPIEndpoint.advertiseAddress),
        manifestFor: prepared.joiningEtcd,
        timeoutMs: etcdCallMs,
        skipped: hasLocalEtcd(cluster) ? null : EXTERNAL,
      },
      mark: prepared.mark,
      wait: prepared.wait,
    },
    warnings: [...found.warnings, ...join.warnings, ...prepared.preflight.warnings.map(toWarning), ...prepared.warnings],
    refusals: [...download.problems, ...prepared.refusals, ...prepared.preflight.errors, ...join.refusals],
  };
}

/** The phases of the shared certificates write the CA. */
function withoutCa(input: JoinInput['kubeletStart'], { certificatesDir }: DefaultedCluster): JoinInput['kubeletStart'] {
  const { credentials } = input;
  return { ...input, credentials: credentials.filter(({ path }) => path !== pkiPath(certificatesDir, 'ca', 'crt')) };
}

/**
 * The ClusterConfiguration of the cluster to join.
 * @throws AppError CLUSTER_NO_KUBEADM_CONFIG, CONTROL_PLANE_ENDPOINT_MISSING, exit code 3
 */
async function clusterToJoin({ cluster, host }: ClusterContext) {
  const found = await readClusterConfiguration(cluster);
  const refuse = (code: string, message: string, hint: string): AppError =>
    new AppError({ host: host.name, code, message, hint }, { exitCode: 3 });
  if (found.model === null)
    throw refuse(
      'CLUSTER_NO_KUBEADM_CONFIG',
      'cannot read ConfigMap kube-system/kubeadm-config, which configures the control planes of the cluster',
      'Upload the ConfigMap with: kubeletadm init phase upload-config kubeadm',
    );
  if (found.model.controlPlaneEndpoint === undefined)
    throw refuse(
      'CONTROL_PLANE_ENDPOINT_MISSING',
      'the cluster has no controlPlaneEndpoint: all nodes use the address of the first control plane, and cannot use other control planes',
      'Set controlPlaneEndpoint in ConfigMap kube-system/kubeadm-config to an address that reaches all control planes. Then add this address to the SANs of the API server certificate',
    );
  return { cluster: applyClusterDefaults(found.model), found };
}

function routesOf(
  { connect, connectEtcd, opened, staged }: JoinControlPlaneOptions,
  cluster: DefaultedCluster,
  textAt: (path: string) => SensitiveText | null,
): { readonly api: ApiAccess; readonly etcdApi: EtcdAccess } {
  // Nothing runs in a staging directory: no etcd member is added and no Node is awaited.
  if (staged) return { api: NO_ACCESS, etcdApi: NO_ETCD_ACCESS };
  const api = adminConfAccess(connect, textAt);
  const endpointsOf = async (context: PhaseContext): Promise<readonly string[] | null> => {
    const admin = await api.reach(context);
    return admin === null ? null : etcdEndpoints(admin);
  };
  const etcdApi = hasLocalEtcd(cluster)
    ? etcdAccess({ connect: connectEtcd, certificatesDir: cluster.certificatesDir, textAt, endpointsOf })
    : NO_ETCD_ACCESS;
  opened(api);
  return { api, etcdApi };
}
