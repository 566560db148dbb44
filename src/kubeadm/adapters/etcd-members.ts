import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Clock } from '../../base/clock.ts';
import { AppError, isAppError } from '../../base/errors.ts';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { waitUntil } from '../../base/wait-until.ts';
import { dialingAgent } from '../../kube/adapters/dialing-agent.ts';
import { explainNetworkError } from '../../kube/adapters/network-failure.ts';
import { checkServerIdentity } from '../../kube/adapters/server-identity.ts';
import type { Dial } from '../../kube/dial.ts';
import { ETCD_PAUSE, type EtcdCluster, type EtcdMemberState } from '../../kube/etcd-cluster.ts';
import { type EtcdCredentials, type EtcdFailure, validateEtcdCredentials } from '../control-plane/etcd-credentials.ts';

export interface EtcdMembersOptions extends EtcdCredentials {
  /** `https://ADDRESS:2379` of the members; the first one that responds is used. */
  readonly endpoints: readonly string[];
  readonly dial?: Dial | undefined;
  readonly clock: Clock;
  /** Timeout of one call over all endpoints; default 10,000. */
  readonly requestTimeoutMs?: number;
}

/** kubeadm 1.36: timeouts.etcdAPICall. */
const CHANGE_MS = 120_000;
/**
 * Messages of etcd for states that pass: a learner that is not in sync, a member that started less than 5 s ago, another
 * learner, an election, a member that stops because it was removed (etcd 3.6 api/v3rpc/rpctypes).
 */
const TEMPORARY =
  /in sync with leader|unhealthy cluster|not enough started members|too many learner members|no leader|leader changed|request timed out|server stopped/;
/** gRPC status: a learner that is not in sync cannot be promoted yet. */
const FAILED_PRECONDITION = 9;

/**
 * Makes the port over etcd's gRPC gateway, with a client certificate.
 * @see etcd 3.5 api/etcdserverpb/rpc.proto (Cluster), and GET /health
 */
export function etcdMembers(options: EtcdMembersOptions): EtcdCluster {
  const { clock } = options;
  const query = (path: string, body: JsonObject = {}): Promise<JsonObject> => queryAny(options, path, body);
  const members = async (): Promise<readonly EtcdMemberState[]> => {
    const { members: found } = await query('/v3/cluster/member/list');
    return (Array.isArray(found) ? found.filter(isJsonObject) : []).map((member) => ({
      name: text(member.name),
      id: text(member.ID),
      peerURLs: texts(member.peerURLs),
      clientURLs: texts(member.clientURLs),
      isLearner: member.isLearner === true,
    }));
  };
  /** Repeats a change that etcd refuses only for now. A refused change that the members show is complete. */
  const change = (path: string, body: JsonObject, isMade: (members: readonly EtcdMemberState[]) => boolean): Promise<void> =>
    waitUntil<void, unknown>(
      { clock },
      {
        probe: async () => {
          try {
            await query(path, body);
            return { done: undefined };
          } catch (error) {
            if (!isAppError(error, 'ETCD_REFUSED')) throw error;
            const known = await members().catch((listing: unknown) => {
              if (!isTemporary(listing)) throw listing;
              return null;
            });
            if (known !== null && isMade(known)) return { done: undefined };
            if (!isTemporary(error)) throw error;
            return { pending: error };
          }
        },
        timeoutMs: CHANGE_MS,
        pauseMs: ETCD_PAUSE,
        timedOut: (error) => {
          throw error;
        },
      },
    );
  return {
    members,
    addLearner: (peerURL) =>
      change('/v3/cluster/member/add', { peerURLs: [peerURL], isLearner: true }, (members) =>
        members.some(({ peerURLs }) => peerURLs.includes(peerURL)),
      ),
    promote: (id) =>
      change('/v3/cluster/member/promote', { ID: id }, (members) => members.some((member) => member.id === id && !member.isLearner)),
    remove: (id) => change('/v3/cluster/member/remove', { ID: id }, (members) => members.every((member) => member.id !== id)),
    health: async () => {
      const { health, reason } = await queryAny(options, '/health', null);
      return { healthy: health === 'true' || health === true, reason: text(reason) };
    },
  };
}

/** @param body null: a GET */
async function queryAny(options: EtcdMembersOptions, path: string, body: JsonObject | null): Promise<JsonObject> {
  const failures: string[] = [];
  let blamed: EtcdFailure | null = null;
  for (const endpoint of options.endpoints) {
    try {
      return await queryOne(options, new URL(path, endpoint), body);
    } catch (error) {
      if (isAppError(error)) throw error;
      const issue = explainEtcdError(error, options, options.clock.now());
      failures.push(`${endpoint}: ${issue.why}`);
      if (issue.isTls) blamed ??= issue;
    }
  }
  if (blamed !== null)
    throw new AppError({ code: 'ETCD_TLS_FAILED', message: `cannot query etcd: ${failures.join('; ')}`, hint: blamed.hint });
  const message = `etcd does not answer: ${failures.join('; ') || 'no etcd endpoint is known'}`;
  throw new AppError({
    code: 'ETCD_UNREACHABLE',
    message,
    hint: 'Check that the etcd Pods run (kubectl -n kube-system get pods -l component=etcd), and that port 2379 is open between the control planes',
  });
}

async function queryOne(options: EtcdMembersOptions, url: URL, body: JsonObject | null): Promise<JsonObject> {
  const { caPem, certificatePem, keyPem, dial, requestTimeoutMs = 10_000 } = options;
  const tls = { ca: caPem, cert: certificatePem, key: keyPem.reveal(), checkServerIdentity };
  const agent = dial === undefined ? new HttpsAgent(tls) : dialingAgent(dial, tls);
  const payload = body === null ? null : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const request = httpsRequest(url, {
      method: payload === null ? 'GET' : 'POST',
      agent,
      headers: payload === null ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(payload) },
      timeout: requestTimeoutMs,
    });
    request.once('timeout', () => request.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })));
    request.once('error', reject);
    request.once('response', (response) => {
      let reported = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        reported += chunk;
      });
      response.once('error', reject);
      response.once('end', () => {
        try {
          resolve(readAnswer(response.statusCode ?? 0, reported));
        } catch (error) {
          reject(error);
        }
      });
    });
    request.end(payload ?? undefined);
  });
}

function readAnswer(status: number, reported: string): JsonObject {
  const answer: unknown = JSON.parse(reported === '' ? '{}' : reported);
  const object = isJsonObject(answer) ? answer : {};
  if (status === 200) return object;
  const message = text(object.message) || text(object.error) || reported;
  throw refused(object.code === FAILED_PRECONDITION ? message : `${status}: ${message}`);
}

function isTemporary(error: unknown): boolean {
  return isAppError(error, 'ETCD_REFUSED') && TEMPORARY.test(error.message);
}

function refused(message: string): AppError {
  return new AppError({
    code: 'ETCD_REFUSED',
    message: `etcd rejected the request: ${message}`,
    hint: 'Check the members of the etcd cluster: etcdctl member list',
  });
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}

const SERVER_EXPIRED =
  'Renew the certificate on the host of this etcd member (kubeletadm certs renew etcd-server), or synchronize the clocks of both hosts';

/**
 * Explains why an etcd member could not be queried.
 * @returns `isTls`: the cause is a certificate of either side, so waiting does not help
 */
export function explainEtcdError(error: unknown, credentials: EtcdCredentials, now: Date): EtcdFailure & { readonly isTls: boolean } {
  const { code = '', message = '' } = error as { readonly code?: string; readonly message?: string };
  const { files } = credentials;
  const plain = explainNetworkError(error);
  const own = validateEtcdCredentials(credentials, now);
  // A server that rejects the client certificate sends an alert or closes the connection.
  if (/ALERT/i.test(`${code} ${message}`) || (own !== null && /ECONNRESET|EPIPE/.test(code))) {
    const why = `etcd rejects the client certificate${own === null ? ` ${files.certificate}` : `: ${own.why}`}`;
    return {
      why,
      hint: own?.hint ?? 'Add the CA that signed the client certificate to the file of the etcd flag --trusted-ca-file',
      isTls: true,
    };
  }
  if (!/CERT|VERIFY|ISSUER|OSSL/.test(code)) return { ...plain, isTls: false };
  if (own !== null) return { ...own, isTls: true };
  if (/OSSL/.test(code)) return { ...plain, isTls: false };
  if (/EXPIRED|NOT_YET_VALID/.test(code)) return { why: plain.why, hint: SERVER_EXPIRED, isTls: true };
  if (/ALTNAME|HOSTNAME/.test(code))
    return {
      why: plain.why,
      hint: 'Renew the certificate on the host of this etcd member: kubeletadm certs renew etcd-server',
      isTls: true,
    };
  const hint = `Put the CA of the etcd cluster into ${files.ca}`;
  return { why: `the server certificate is not signed by the CA in ${files.ca}`, hint, isTls: true };
}
