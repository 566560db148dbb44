import { onAbort } from '../../src/base/abort.ts';
import type {
  HttpsClient,
  HttpsRequest,
  HttpsResponse,
  PeerCertificate,
  WebFailure,
  WebFailureCause,
} from '../../src/kube/https-client.ts';

/** The answer of a server; missing members have defaults. `silence` never answers. */
export type FakeReply = (Partial<HttpsResponse> & { readonly issue?: undefined }) | { readonly issue: WebFailureCause } | 'silence';

export interface FakeServer {
  /** PEM of the CA that signed its certificate; absent: an unknown CA. */
  readonly authority?: string;
  /** PEM of its certificate, for clients that pin it. */
  readonly certificate?: string;
  /** The names in its certificate; default: the requested name. */
  readonly names?: readonly string[];
  readonly notBefore?: Date;
  readonly notAfter?: Date;
  reply(request: HttpsRequest): FakeReply;
}

export interface FakeWeb extends HttpsClient {
  readonly requests: readonly HttpsRequest[];
}

export interface FakeWebOptions {
  /** By origin, e.g. `https://10.0.0.1:6443`. */
  readonly servers: Readonly<Record<string, FakeServer>>;
  /** PEM of the CAs of the local host. */
  readonly machine?: readonly string[];
  readonly now?: () => Date;
}

/** A web of described servers. Certificates are validated like in Node.js. */
export function fakeWeb({ servers, machine = [], now = () => new Date() }: FakeWebOptions): FakeWeb {
  const requests: HttpsRequest[] = [];
  return {
    requests,
    get: async (request) => {
      request.signal?.throwIfAborted();
      requests.push(request);
      const url = new URL(request.url);
      const server = servers[url.origin];
      if (server === undefined) return failed({ kind: 'refused' });
      const host = request.serverName ?? url.hostname.replace(/^\[|\]$/g, '');
      const peer = peerOf(server, host);
      const untrusted = validate(request, server, peer, { host, machine, now: now() });
      if (untrusted !== null) return failed(untrusted);
      const reply = server.reply(request);
      if (reply === 'silence') return silence(request);
      if (reply.issue !== undefined) return failed(reply.issue);
      const answer: HttpsResponse = {
        kind: 'answer',
        status: 200,
        contentType: 'application/json',
        date: now(),
        location: null,
        text: '',
        peer,
        ...reply,
      };
      const maxBytes = request.maxBytes ?? 4 * 1024 * 1024;
      return Buffer.byteLength(answer.text) > maxBytes ? failed({ kind: 'too-large', maxBytes }) : answer;
    },
  };
}

function failed(issue: WebFailureCause): WebFailure {
  return { kind: 'failed', issue };
}

function validate(
  { trust }: HttpsRequest,
  { authority, certificate, notBefore, notAfter }: FakeServer,
  peer: PeerCertificate,
  { host, machine, now }: { readonly host: string; readonly machine: readonly string[]; readonly now: Date },
): WebFailureCause | null {
  if (trust.kind === 'unverified' || trust.kind === 'plain') return null;
  if (trust.kind === 'certificate') return trust.pem === certificate ? null : { kind: 'other-certificate', peer };
  const known = trust.kind === 'machine' ? machine.join('') : trust.pem;
  if (authority === undefined || !known.includes(authority.trim())) return { kind: 'unknown-authority', peer };
  if (notBefore !== undefined && now < notBefore) return { kind: 'certificate-not-yet-valid', peer };
  if (notAfter !== undefined && now > notAfter) return { kind: 'certificate-expired', peer };
  return peer.names.includes(host) ? null : { kind: 'wrong-name', host, peer };
}

function peerOf({ names, notBefore, notAfter }: FakeServer, host: string): PeerCertificate {
  return {
    subject: 'CN=kube-apiserver',
    issuer: 'CN=kubernetes',
    notBefore: notBefore ?? new Date('2020-01-01T00:00:00Z'),
    notAfter: notAfter ?? new Date('2040-01-01T00:00:00Z'),
    names: names ?? [host],
  };
}

function silence({ signal }: HttpsRequest): Promise<WebFailure> {
  return new Promise((resolve, reject) => {
    if (signal === undefined) return resolve(failed({ kind: 'timed-out' }));
    onAbort(signal, reject);
    setImmediate(() => resolve(failed({ kind: 'timed-out' })));
  });
}
