import { AppError } from '../../../base/errors.ts';
import { revealText, Secret, type SensitiveText } from '../../../base/text/secret.ts';
import type { Host } from '../../../host/access/host.ts';
import type { DefinedPhase, Phase, PhaseContext } from '../../../host/phase.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import type { EtcdCluster } from '../../../kube/etcd-cluster.ts';
import { KUBE_SYSTEM } from '../../../kube/well-known.ts';
import type { EtcdCredentials } from '../../control-plane/etcd-credentials.ts';
import { pkiPath } from '../../pki/certificate-list.ts';
import { API_SERVER_PENDING, apiServerNotUp } from './api-access.ts';

/** Connects to the members of an etcd cluster from a host. */
export type ConnectEtcd = (
  options: EtcdCredentials & {
    readonly endpoints: readonly string[];
    readonly host: Host;
    /** `timeouts.etcdAPICall`; default: two minutes. */
    readonly changeTimeoutMs?: number | undefined;
  },
) => Promise<EtcdCluster>;

/** Access to etcd members, which may not run yet. */
export interface EtcdAccess {
  /** Null while credentials or addresses are missing. Connects once. */
  reach(context: PhaseContext): Promise<EtcdCluster | null>;
}

export const NO_ETCD_ACCESS: EtcdAccess = { reach: async () => null };

/** Annotation of kubeadm's etcd Pods. */
const CLIENT_URLS = 'kubeadm.kubernetes.io/etcd.advertise-client-urls';

/**
 * The client URLs of the etcd members, from the annotations of their Pods.
 * @see kubeadm 1.36 util/etcd: annotation of the Pods with component=etcd
 */
export async function etcdEndpoints(admin: Cluster): Promise<readonly string[]> {
  const { items } = await admin.list(
    { apiVersion: 'v1', kind: 'Pod', namespace: KUBE_SYSTEM },
    { labelSelector: 'component=etcd,tier=control-plane' },
  );
  return items.flatMap(({ metadata }) => metadata.annotations?.[CLIENT_URLS]?.split(',')[0] ?? []);
}

/**
 * Access to etcd with the client certificate of its health checks.
 * @param endpointsOf null: the endpoints are unknown
 * @throws (reach) AppError ETCD_UNREACHABLE if no etcd Pod exists
 */
export function etcdAccess(options: {
  readonly connect: ConnectEtcd;
  readonly certificatesDir: string;
  readonly textAt: (path: string) => SensitiveText | null;
  readonly endpointsOf: (context: PhaseContext) => Promise<readonly string[] | null>;
}): EtcdAccess {
  const { connect, certificatesDir, textAt, endpointsOf } = options;
  let connected: EtcdCluster | null = null;
  return {
    reach: async (context) => {
      if (connected !== null) return connected;
      const files = {
        ca: pkiPath(certificatesDir, 'etcd/ca', 'crt'),
        certificate: pkiPath(certificatesDir, 'etcd/healthcheck-client', 'crt'),
        key: pkiPath(certificatesDir, 'etcd/healthcheck-client', 'key'),
      };
      const [ca, certificate, key] = [textAt(files.ca), textAt(files.certificate), textAt(files.key)];
      const endpoints = await endpointsOf(context);
      if (endpoints === null || ca === null || certificate === null || key === null) return null;
      if (endpoints.length === 0) throw noPods();
      const [caPem, certificatePem, keyPem] = [revealText(ca), revealText(certificate), new Secret(revealText(key))];
      connected = await connect({ endpoints, caPem, certificatePem, keyPem, files, host: context.host });
      return connected;
    },
  };
}

function noPods(): AppError {
  const message = 'the cluster has no etcd Pods (component=etcd in kube-system), but kubeadm-config configures a local etcd';
  return new AppError({ code: 'ETCD_UNREACHABLE', message, hint: 'Check kubectl -n kube-system get pods -l component=etcd' });
}

/** Input of a workflow that changes etcd members. */
export interface EtcdPhaseInput {
  readonly etcdApi: EtcdAccess;
  /** Etcd may be absent or unreachable: the phases are then deferred instead of failing. */
  readonly mayLackEtcd: boolean;
}

/**
 * Adapts a phase to a workflow that changes etcd members: `etcdApi` provides its `etcd`. The phase is deferred while
 * etcd is unreachable.
 * @param isSkipped whether the phase is skipped and needs no etcd
 * @throws (ready) AppError API_SERVER_NOT_UP if etcd is still unreachable when the phase is run
 */
export function deferUntilEtcd<Whole extends EtcdPhaseInput, Part>(
  phase: DefinedPhase<Part>,
  select: (input: Whole) => Part,
  isSkipped: (part: Part) => boolean,
): Phase<Whole> {
  const selected = phase.select(select);
  return {
    ...selected,
    contextFor: async (context, input) => (isSkipped(select(input)) ? context : { ...context, etcd: await input.etcdApi.reach(context) }),
    ready: async (context, input) => {
      if (context.etcd == null && !input.mayLackEtcd && !isSkipped(select(input))) throw apiServerNotUp(context.host.name);
      await selected.ready(context, input);
    },
    inspect: async (context, input) =>
      context.etcd == null && !isSkipped(select(input)) ? API_SERVER_PENDING : selected.inspect(context, input),
  };
}
