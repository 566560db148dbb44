import type { Problem } from '../../base/errors.ts';
import type { WebFailureCause } from '../../kube/https-client.ts';
import type { ProxyRefusal } from '../../kube/proxy.ts';
import type { ClockReading } from './clock-reading.ts';
import * as problems from './discovery-problems.ts';

/** Context of a connection failure. */
export interface FailureContext {
  /** The queried endpoint, for messages. */
  readonly endpoint: string;
  /** The expected issuer of the server certificate, as a noun: `the pinned CA`. */
  readonly expectedCa: string;
  readonly clock: ClockReading;
}

/** Why the request failed; `wait` when the cause may be temporary, such as a server that is starting. */
export interface ExplainedFailure {
  readonly kind: 'wait' | 'refuse';
  readonly problem: Problem;
}

/**
 * Explains why a server did not respond.
 * @see kubeadm 1.36 discovery, which waits until `timeouts.discovery` for any cause
 */
export function explainFailure(issue: WebFailureCause, { endpoint, expectedCa, clock }: FailureContext): ExplainedFailure {
  const wait = (problem: Problem): ExplainedFailure => ({ kind: 'wait', problem });
  const refuse = (problem: Problem): ExplainedFailure => ({ kind: 'refuse', problem });
  switch (issue.kind) {
    case 'refused':
      return wait(problems.unreachable(endpoint, 'connection refused'));
    case 'no-route':
      return wait(problems.unreachable(endpoint, 'no route to host', 'Check the address and the network'));
    case 'dns':
      return wait(
        issue.temporary
          ? problems.unreachable(endpoint, 'DNS does not answer', 'Check DNS on the local host')
          : problems.unreachable(endpoint, 'DNS cannot resolve the name', 'Check the address and DNS on the local host'),
      );
    case 'timed-out':
      return wait(problems.unreachable(endpoint, 'timed out'));
    case 'closed':
      return wait(
        problems.unreachable(
          endpoint,
          'the server closed the connection without an answer',
          'Check the API server and any load balancer or firewall in front of it',
        ),
      );
    case 'not-tls':
      return refuse(problems.notAnApiServer(endpoint, NOT_TLS[issue.speaks ?? 'other']));
    case 'not-http':
      return refuse(problems.notAnApiServer(endpoint, 'the server uses TLS but not HTTP'));
    case 'wants-client-certificate':
      return refuse(problems.notAnApiServer(endpoint, 'the server requires a client certificate, as etcd does'));
    case 'tls-version':
      return refuse(problems.tlsFailed(endpoint, 'no common TLS version: the server may support only TLS 1.1 or older'));
    case 'tls-handshake':
      return refuse(problems.tlsFailed(endpoint, `the TLS handshake failed (${issue.why})`));
    case 'unknown-authority':
    case 'other-certificate':
      return refuse(problems.untrustedServer(endpoint, expectedCa, issue.peer));
    case 'wrong-name':
      return refuse(problems.wrongServerName(endpoint, issue.host, issue.peer));
    case 'certificate-expired':
      return refuse(problems.serverCertificateTime(endpoint, { peer: issue.peer, when: 'expired', clock }));
    case 'certificate-not-yet-valid':
      return refuse(problems.serverCertificateTime(endpoint, { peer: issue.peer, when: 'early', clock }));
    case 'proxy-refused':
      return explainProxy(endpoint, issue);
    case 'proxy-unreachable':
      return wait(problems.proxyProblem(endpoint, `the proxy ${issue.proxy}: ${issue.why}`, null));
    case 'proxy-unusable':
      return refuse(problems.proxyProblem(endpoint, issue.why, null));
    case 'too-large':
      return refuse(problems.notAnApiServer(endpoint, `the response is larger than ${issue.maxBytes} bytes`));
    case 'other':
      return wait(problems.unreachable(endpoint, `the connection failed (${issue.code})`));
  }
}

const NOT_TLS = {
  ssh: 'the server is an SSH server',
  http: 'the server uses HTTP without TLS',
  other: 'the server does not use TLS',
} as const;

function explainProxy(endpoint: string, { proxy, refusal }: { readonly proxy: string; readonly refusal: ProxyRefusal }): ExplainedFailure {
  const problem = problems.proxyProblem(endpoint, `the proxy ${proxy} refused the connection ${refusal.why}`, refusal.kind);
  return { kind: refusal.kind === 'failure' ? 'wait' : 'refuse', problem };
}
