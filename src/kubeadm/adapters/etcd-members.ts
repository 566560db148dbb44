import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { type Duplex, PassThrough } from 'node:stream';
import type { Clock } from '../../base/clock.ts';
import { AppError, isAppError } from '../../base/errors.ts';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { waitUntil } from '../../base/wait-until.ts';
import { DialingAgent } from '../../kube/adapters/dialing-agent.ts';
import { explainNetworkError } from '../../kube/adapters/network-failure.ts';
import { checkServerIdentity } from '../../kube/adapters/server-identity.ts';
import type { Dial } from '../../kube/dial.ts';
import {
  ETCD_API_CALL_MS,
  ETCD_PAUSE,
  type EtcdCluster,
  type EtcdMemberState,
  type EtcdWait,
  isTransientEtcdError,
} from '../../kube/etcd-cluster.ts';
import type { EtcdTarget } from '../control-plane/cluster-target.ts';
import { type EtcdCredentials, type EtcdFailure, validateEtcdCredentials } from '../control-plane/etcd-credentials.ts';

/** The first endpoint that responds is used. */
interface EtcdMembersOptions extends Omit<EtcdTarget, 'from'> {
  readonly dial?: Dial | undefined;
  readonly clock: Clock;
  /** Timeout of a call of one endpoint; default 10,000. */
  readonly requestTimeoutMs?: number;
}

/** gRPC status: a learner that is not in sync cannot be promoted yet. */
const FAILED_PRECONDITION = 9;
/** gRPC status: invalid argument, permission denied, not implemented, not authenticated. */
const DENIED: readonly unknown[] = [3, 7, 12, 16];

/**
 * Makes the port over etcd's gRPC gateway, with a client certificate.
 * @see etcd 3.5 api/etcdserverpb/rpc.proto (Cluster), and GET /health
 */
export function etcdMembers(options: EtcdMembersOptions): EtcdCluster {
  const members = async (): Promise<readonly EtcdMemberState[]> => {
    const { members: found } = await queryAny(options, '/v3/cluster/member/list', {});
    return (Array.isArray(found) ? found.filter(isJsonObject) : []).map((member) => ({
      name: text(member.name),
      id: text(member.ID),
      peerURLs: texts(member.peerURLs),
      clientURLs: texts(member.clientURLs),
      isLearner: member.isLearner === true,
    }));
  };
  const change = (given: Parameters<typeof changeMembers>[2]): Promise<void> => changeMembers(options, members, given);
  return {
    members,
    addLearner: (peerURL, wait) =>
      change({
        path: 'add',
        body: { peerURLs: [peerURL], isLearner: true },
        wait,
        isMade: (known) => known.some(({ peerURLs }) => peerURLs.includes(peerURL)),
        blockedBy: (known) => known.find(({ isLearner }) => isLearner) ?? null,
      }),
    promote: (id, wait) =>
      change({ path: 'promote', body: { ID: id }, wait, isMade: (known) => known.some((member) => member.id === id && !member.isLearner) }),
    remove: (id, wait) => change({ path: 'remove', body: { ID: id }, wait, isMade: (known) => known.every((member) => member.id !== id) }),
    health: async () => {
      const { health, reason } = await queryAny(options, '/health', null);
      return { healthy: health === 'true' || health === true, reason: text(reason) };
    },
    version: async () => text((await queryAny(options, '/version', null)).etcdserver),
  };
}

/**
 * Repeats a change after every error that may pass, until the members show it: each new member triggers a leader
 * election, during which requests time out. The time starts again whenever another host has joined.
 * @see kubeadm 1.36 util/etcd addMember, MemberPromote, RemoveMember
 */
function changeMembers(
  options: EtcdMembersOptions,
  members: () => Promise<readonly EtcdMemberState[]>,
  {
    path,
    body,
    isMade,
    blockedBy = () => null,
    wait,
  }: {
    readonly path: string;
    readonly body: JsonObject;
    readonly isMade: (members: readonly EtcdMemberState[]) => boolean;
    /** The member with which etcd refuses the change until its host has joined. */
    readonly blockedBy?: (members: readonly EtcdMemberState[]) => EtcdMemberState | null;
    readonly wait: EtcdWait | undefined;
  },
): Promise<void> {
  const { clock, changeTimeoutMs = ETCD_API_CALL_MS } = options;
  let since = 0;
  let blocker: EtcdMemberState | null = null;
  return waitUntil<void, AppError>(
    { ...wait, clock },
    {
      probe: async (elapsedMs) => {
        try {
          const known = await members();
          if (isMade(known)) return { done: undefined };
          const other = blockedBy(known);
          if (other?.id !== blocker?.id) since = elapsedMs();
          blocker = other;
          if (other !== null) throw blockedByLearner(other);
          await queryAny(options, `/v3/cluster/member/${path}`, body);
          return { done: undefined };
        } catch (error) {
          if (!isTransientEtcdError(error) || elapsedMs() - since >= changeTimeoutMs) throw error;
          return { pending: error };
        }
      },
      timeoutMs: Number.POSITIVE_INFINITY,
      pauseMs: ETCD_PAUSE,
      describe: ({ message }, waitedMs) => `waiting for etcd to change its members, ${Math.round(waitedMs / 1000)} s: ${message}`,
      timedOut: (error) => {
        throw error;
      },
    },
  );
}

function blockedByLearner({ name, peerURLs }: EtcdMemberState): AppError {
  const member = name || peerURLs[0];
  const message = `etcd takes one new member at a time, and member ${member} has not joined yet`;
  const hint = `Rerun join on the host of ${member}, or remove the member (etcdctl member list, etcdctl member remove), then rerun the command`;
  return new AppError({ code: 'ETCD_UNHEALTHY', message, hint });
}

/**
 * The answer of the first endpoint that accepts the query: a learner serves none, and a removed member stops.
 * @param body null: a GET
 */
async function queryAny(options: EtcdMembersOptions, path: string, body: JsonObject | null): Promise<JsonObject> {
  const failures: string[] = [];
  const blamed: EtcdFailure[] = [];
  let refusal: AppError | null = null;
  for (const endpoint of options.endpoints) {
    try {
      return await queryOne(options, new URL(path, endpoint), body);
    } catch (error) {
      if (isAppError(error)) {
        refusal ??= error;
        continue;
      }
      const issue = explainEtcdError(error, options, options.clock.now());
      failures.push(`${endpoint}: ${issue.why}`);
      if (issue.isTls) blamed.push(issue);
    }
  }
  if (refusal !== null) throw refusal;
  const [first] = blamed;
  if (first !== undefined && blamed.length === options.endpoints.length)
    throw new AppError({ code: 'ETCD_TLS_FAILED', message: `cannot query etcd: ${failures.join('; ')}`, hint: first.hint });
  const message = `etcd does not answer: ${failures.join('; ') || 'no etcd endpoint is known'}`;
  const hint =
    first?.hint ??
    'Check that the etcd Pods run (kubectl -n kube-system get pods -l component=etcd), and that port 2379 is open between the control planes';
  throw new AppError({ code: 'ETCD_UNREACHABLE', message, hint });
}

async function queryOne(options: EtcdMembersOptions, url: URL, body: JsonObject | null): Promise<JsonObject> {
  const { caPem, certificatePem, keyPem, dial, requestTimeoutMs = 10_000 } = options;
  // An external etcd may have a certificate of a public CA, and need none of its clients.
  const ca = caPem === '' ? {} : { ca: caPem };
  const tls = { ...ca, ...(certificatePem === '' ? {} : { cert: certificatePem, key: keyPem.reveal() }), checkServerIdentity };
  const isHttp = url.protocol === 'http:';
  const agent = isHttp ? plainAgent(dial) : dial === undefined ? new HttpsAgent(tls) : new DialingAgent(dial, tls);
  const payload = body === null ? null : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const request = (isHttp ? httpRequest : httpsRequest)(url, {
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

function plainAgent(dial: Dial | undefined): HttpAgent {
  const agent = new HttpAgent();
  if (dial !== undefined)
    agent.createConnection = ({ host, port }, done) => {
      dial({ host: host ?? 'localhost', port: Number(port) }).then(
        (stream) => done?.(null, stream as Duplex),
        (error: Error) => done?.(error, new PassThrough()),
      );
      return undefined;
    };
  return agent;
}

function readAnswer(status: number, reported: string): JsonObject {
  const answer: unknown = JSON.parse(reported === '' ? '{}' : reported);
  const object = isJsonObject(answer) ? answer : {};
  // An unhealthy member answers GET /health with 503 and its reason.
  if (status === 200 || 'health' in object) return object;
  const message = text(object.message) || text(object.error) || reported;
  const isDenied = DENIED.includes(object.code) || (object.code === undefined && [400, 401, 403].includes(status));
  throw new AppError({
    code: isDenied ? 'ETCD_DENIED' : 'ETCD_REFUSED',
    message: `etcd rejected the request: ${object.code === FAILED_PRECONDITION ? message : `${status}: ${message}`}`,
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
