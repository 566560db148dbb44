import type { Problem } from '../../base/errors.ts';
import { isJsonObject, type JsonObject, parseJsonObject } from '../../base/json.ts';
import { printable } from '../../base/text/printable.ts';
import type { HttpsResponse, WebFailure } from '../../kube/https-client.ts';
import { CLUSTER_INFO_NAME } from '../../kube/well-known.ts';
import { type ClusterInfo, readClusterInfo } from './cluster-info.ts';
import * as problems from './discovery-problems.ts';
import { explainFailure, type FailureContext } from './explain-failure.ts';

/** Meaning of the response to the request for cluster-info. */
export type ClusterInfoReading =
  | { readonly kind: 'found'; readonly info: ClusterInfo }
  /** The cause may be temporary. */
  | { readonly kind: 'wait'; readonly problem: Problem }
  /** An API server that denies access to cluster-info. */
  | { readonly kind: 'denied'; readonly status: 401 | 403 | 404; readonly problem: Problem }
  | { readonly kind: 'refuse'; readonly problem: Problem };

/** Reads the response to an anonymous GET of cluster-info from an untrusted server. */
export function readClusterInfoAnswer(answer: HttpsResponse | WebFailure, context: FailureContext): ClusterInfoReading {
  const { endpoint } = context;
  if (answer.kind === 'failed') return explainFailure(answer.issue, context);
  const { status } = answer;
  const body = parseJsonObject(answer.text);
  if (status === 200 && body !== null) {
    const info = readClusterInfo(body);
    return info === null
      ? refuse(problems.notAnApiServer(endpoint, 'the server returns JSON, but not the requested ConfigMap'))
      : { kind: 'found', info };
  }
  if (body?.kind === 'Status') return readStatus(status, body, endpoint);
  if (status === 407) return refuse(problems.proxyProblem(endpoint, 'a proxy answered with status 407', 'login'));
  if (status === 429 || status >= 500) return wait(problems.serverFailure(endpoint, status, describeBody(answer)));
  if (status >= 300 && status < 400) {
    const where = answer.location === null ? '' : ` to ${printable(answer.location, 100)}`;
    return refuse(problems.notAnApiServer(endpoint, `the server redirects (${status})${where}, which an API server never does`));
  }
  return refuse(
    problems.notAnApiServer(endpoint, `the server is not a Kubernetes API server: status ${status} with ${describeBody(answer)}`),
  );
}

/** A Status object: from an API server or another Kubernetes component. */
function readStatus(status: number, body: JsonObject, endpoint: string): ClusterInfoReading {
  const reported = typeof body.message === 'string' ? printable(body.message) : '';
  if (status === 401) return { kind: 'denied', status, problem: problems.noAnonymousAccess(endpoint) };
  if (status === 403) {
    // Only a component that serves no resources mentions the path.
    if (/ cannot get path /.test(reported)) return refuse(problems.notAnApiServer(endpoint, 'the server is another Kubernetes component'));
    return { kind: 'denied', status, problem: problems.clusterInfoForbidden(endpoint, reported) };
  }
  if (status === 404) {
    const named = isJsonObject(body.details) && body.details.name === CLUSTER_INFO_NAME;
    if (named) return { kind: 'denied', status, problem: problems.noClusterInfo(endpoint) };
    return refuse(problems.notAnApiServer(endpoint, 'the server serves no ConfigMaps (404): it is not the API server of the cluster'));
  }
  return wait(problems.serverFailure(endpoint, status, reported));
}

function describeBody({ contentType, text }: HttpsResponse): string {
  if (contentType === 'text/html' || /^\s*<(?:!doctype|html)/i.test(text)) return 'a web page (text/html)';
  if (text.trim() === '') return 'an empty body';
  const begin = printable(text, 40);
  return `${contentType === '' ? 'no content type' : printable(contentType, 40)}: ${JSON.stringify(begin)}`;
}

function refuse(problem: Problem): ClusterInfoReading {
  return { kind: 'refuse', problem };
}

function wait(problem: Problem): ClusterInfoReading {
  return { kind: 'wait', problem };
}
