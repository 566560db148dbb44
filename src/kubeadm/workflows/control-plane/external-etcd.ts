import { type AppError, isAppError } from '../../../base/errors.ts';
import { Secret } from '../../../base/text/secret.ts';
import { waitUntil } from '../../../base/wait-until.ts';
import type { FileFact } from '../../../host/facts/query.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import { isTransientEtcdError } from '../../../kube/etcd-cluster.ts';
import type { ExternalEtcd } from '../../config/model.ts';
import type { Finding } from '../../preflight/check.ts';
import type { ConnectEtcd } from './etcd-access.ts';

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
