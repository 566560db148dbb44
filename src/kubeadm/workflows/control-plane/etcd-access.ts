import { AppError, isAppError } from '../../../base/errors.ts';
import { revealText, Secret, type SensitiveText } from '../../../base/text/secret.ts';
import { waitUntil } from '../../../base/wait-until.ts';
import type { Host } from '../../../host/access/host.ts';
import type { FileFact } from '../../../host/facts/query.ts';
import type { DefinedPhase, Phase, PhaseContext } from '../../../host/phase.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { type EtcdCluster, isTransientEtcdError } from '../../../kube/etcd-cluster.ts';
import { KUBE_SYSTEM } from '../../../kube/well-known.ts';
import type { ExternalEtcd } from '../../config/model.ts';
import type { EtcdCredentials } from '../../control-plane/etcd-credentials.ts';
import { pkiPath } from '../../pki/certificate-list.ts';
import type { Finding } from '../../preflight/check.ts';
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

/** Paths on the host of the client certificate of etcd's health checks. */
export function etcdClientFiles(certificatesDir: string): EtcdCredentials['files'] {
  return {
    ca: pkiPath(certificatesDir, 'etcd/ca', 'crt'),
    certificate: pkiPath(certificatesDir, 'etcd/healthcheck-client', 'crt'),
    key: pkiPath(certificatesDir, 'etcd/healthcheck-client', 'key'),
  };
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
      const files = etcdClientFiles(certificatesDir);
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

/** kubeadm 1.36: MinExternalEtcdVersion. */
const OLDEST = [3, 5, 24] as const;
/** kubeadm 1.36: externalEtcdRequestRetries and externalEtcdRequestInterval. */
const RETRY = { timeoutMs: 15_000, pauseMs: () => 5_000 };

/**
 * The preflight check `ExternalEtcdVersion`: each endpoint of an external etcd answers to the host, with a supported version.
 * @param files the files of the host that the configuration names; without one of them, nothing is checked
 * @see kubeadm 1.36 preflight ExternalEtcdVersionCheck
 */
export async function externalEtcdFindings(
  context: PhaseContext,
  connect: ConnectEtcd,
  { endpoints = [], httpEndpoints = [], caFile = '', certFile = '', keyFile = '' }: ExternalEtcd,
  files: ReadonlyMap<string, FileFact | null>,
): Promise<readonly Finding[]> {
  const [caPem, certificatePem, key] = [caFile, certFile, keyFile].map((path) => (path === '' ? '' : files.get(path)?.content));
  if (caPem === undefined || certificatePem === undefined || key === undefined) return [];
  const access = { caPem, certificatePem, keyPem: new Secret(key), files: { ca: caFile, certificate: certFile, key: keyFile } };
  const findings = (httpEndpoints.length > 0 ? httpEndpoints : endpoints).map(async (endpoint): Promise<Finding | null> => {
    const etcd = await connect({ ...access, endpoints: [endpoint], host: context.host });
    return versionFinding(endpoint, await readVersion(context, () => etcd.version()));
  });
  return (await Promise.all(findings)).filter((finding) => finding !== null);
}

function readVersion(context: PhaseContext, query: () => Promise<string>): Promise<string | AppError> {
  return waitUntil<string | AppError, AppError>(context, {
    ...RETRY,
    probe: async () => {
      try {
        return { done: await query() };
      } catch (error) {
        if (isTransientEtcdError(error)) return { pending: error };
        if (isAppError(error)) return { done: error };
        throw error;
      }
    },
    describe: ({ message }, waitedMs) => `waiting for the external etcd, ${Math.round(waitedMs / 1000)} s: ${message}`,
    timedOut: (error) => error,
  });
}

function versionFinding(endpoint: string, version: string | AppError): Finding | null {
  const found = (message: string, hint: string | undefined): Finding => ({ id: 'ExternalEtcdVersion', severity: 'error', message, hint });
  if (typeof version !== 'string') {
    const [problem] = version.problems;
    return found(`cannot read the version of the external etcd: ${problem?.message}`, problem?.hint);
  }
  const parts = /^v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})/.exec(version)?.slice(1).map(Number);
  if (parts === undefined) return found(`the external etcd ${endpoint} reports no version`, 'Check that the endpoint is one of etcd');
  const differs = OLDEST.findIndex((number, i) => parts[i] !== number);
  if (differs < 0 || (parts[differs] ?? 0) > (OLDEST[differs] ?? 0)) return null;
  const message = `the external etcd ${endpoint} has version ${parts.join('.')}, but Kubernetes requires ${OLDEST.join('.')} or later`;
  return found(message, `Upgrade the external etcd to ${OLDEST.join('.')} or later`);
}
