import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CertificateAuthority } from '../../lab/api-server/pki.ts';
import { createCa } from '../../lab/api-server/pki.ts';
import type { HttpsClient, Trust } from '../../src/kube/https-client.ts';

/** A server for the tests. */
export interface WebServerPlan {
  readonly ca: CertificateAuthority;
  /** The names of its certificate; the tests use 127.0.0.1. */
  readonly names: readonly string[];
  readonly validity?: { readonly notBefore?: Date; readonly notAfter?: Date };
  readonly answer: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly text: string;
  } | null;
}

export interface WebWorld {
  readonly web: HttpsClient;
  /** Starts a server and returns its origin. */
  serve(plan: WebServerPlan): Promise<string>;
  close(): Promise<void>;
}

const JSON_ANSWER = { status: 200, headers: { 'Content-Type': 'application/json; charset=utf-8', Date: 'Tue, 01 Jan 2030 00:00:00 GMT' } };
const HOUR = 3_600_000;

/** The common behaviour of every Web implementation. */
export function webContract(name: string, start: (machine: readonly string[]) => Promise<WebWorld>): void {
  describe(`${name} is a Web`, () => {
    let world: WebWorld;
    let ours: CertificateAuthority;
    let theirs: CertificateAuthority;
    const trusting = ({ certPem }: CertificateAuthority): Trust => ({ kind: 'ca', pem: certPem });
    const server = (plan: Partial<WebServerPlan>) =>
      world.serve({ ca: ours, names: ['127.0.0.1'], answer: { ...JSON_ANSWER, text: '{"größe":1}' }, ...plan });
    beforeAll(async () => {
      [ours, theirs] = [await createCa(), await createCa()];
      world = await start([ours.certPem]);
    });
    afterAll(() => world.close());

    it('returns the response of a server with a trusted CA', async () => {
      const answer = await world.web.get({ url: `${await server({})}/x?y=z`, trust: trusting(ours) });
      expect(answer).toMatchObject({
        kind: 'answer',
        status: 200,
        contentType: 'application/json',
        date: new Date('2030-01-01T00:00:00Z'),
        location: null,
        text: '{"größe":1}',
        peer: { names: ['127.0.0.1'] },
      });
    });

    it.each([404, 500])('returns a response of status %d, too', async (status) => {
      const url = await server({ answer: { status, headers: {}, text: '' } });
      expect(await world.web.get({ url, trust: trusting(ours) })).toMatchObject({ kind: 'answer', status, contentType: '' });
    });

    it('does not follow redirects', async () => {
      const url = await server({ answer: { status: 302, headers: { Location: 'https://elsewhere.example/' }, text: '' } });
      expect(await world.web.get({ url, trust: trusting(ours) })).toMatchObject({ status: 302, location: 'https://elsewhere.example/' });
    });

    it('trusts the CAs of the local host if requested', async () => {
      expect(await world.web.get({ url: await server({}), trust: { kind: 'machine' } })).toMatchObject({ kind: 'answer' });
      const url = await server({ ca: theirs });
      expect(await world.web.get({ url, trust: { kind: 'machine' } })).toMatchObject({ issue: { kind: 'unknown-authority' } });
    });

    it('rejects a server of another CA, also one with the same name', async () => {
      const answer = await world.web.get({ url: await server({ ca: theirs }), trust: trusting(ours) });
      expect(answer).toMatchObject({ kind: 'failed', issue: { kind: 'unknown-authority', peer: { names: ['127.0.0.1'] } } });
    });

    it('rejects a certificate for another name, unless this name is requested', async () => {
      const url = await server({ names: ['api.example.test', '10.0.0.1'] });
      expect(await world.web.get({ url, trust: trusting(ours) })).toMatchObject({
        kind: 'failed',
        issue: { kind: 'wrong-name', host: '127.0.0.1', peer: { names: ['api.example.test', '10.0.0.1'] } },
      });
      expect(await world.web.get({ url, trust: trusting(ours), serverName: 'api.example.test' })).toMatchObject({ kind: 'answer' });
    });

    it('rejects a certificate that has expired or is not yet valid', async () => {
      const now = Date.now();
      const expired = await server({ validity: { notBefore: new Date(now - 2 * HOUR), notAfter: new Date(now - HOUR) } });
      expect(await world.web.get({ url: expired, trust: trusting(ours) })).toMatchObject({ issue: { kind: 'certificate-expired' } });
      const early = await server({ validity: { notBefore: new Date(now + HOUR), notAfter: new Date(now + 2 * HOUR) } });
      expect(await world.web.get({ url: early, trust: trusting(ours) })).toMatchObject({ issue: { kind: 'certificate-not-yet-valid' } });
    });

    it('accepts any certificate without verification, and returns it', async () => {
      const url = await server({ ca: theirs, names: ['somebody'] });
      expect(await world.web.get({ url, trust: { kind: 'unverified' } })).toMatchObject({ kind: 'answer', peer: { names: ['somebody'] } });
    });

    it('limits the size of a response', async () => {
      const url = await server({ answer: { ...JSON_ANSWER, text: 'x'.repeat(2_000) } });
      expect(await world.web.get({ url, trust: trusting(ours), maxBytes: 1_000 })).toEqual({
        kind: 'failed',
        issue: { kind: 'too-large', maxBytes: 1_000 },
      });
    });

    it('times out', async () => {
      const url = await server({ answer: null });
      expect(await world.web.get({ url, trust: trusting(ours), timeoutMs: 50 })).toEqual({
        kind: 'failed',
        issue: { kind: 'timed-out' },
      });
    });

    it('reports a refused connection', async () => {
      expect(await world.web.get({ url: 'https://127.0.0.1:1', trust: trusting(ours) })).toEqual({
        kind: 'failed',
        issue: { kind: 'refused' },
      });
    });

    it('stops at an abort, with its reason', async () => {
      const reason = new Error('enough');
      await expect(world.web.get({ url: await server({}), trust: trusting(ours), signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
      const stop = new AbortController();
      const asking = world.web.get({ url: await server({ answer: null }), trust: trusting(ours), signal: stop.signal });
      stop.abort(reason);
      await expect(asking).rejects.toBe(reason);
    });
  });
}
