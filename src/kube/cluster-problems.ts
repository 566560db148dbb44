import { AppError, type AppErrorOptions, type Problem } from '../base/errors.ts';
import type { KubeObject, ObjectRef } from './object.ts';
import { describeRef, refOf } from './object-ref.ts';

const NOT_AN_API_SERVER = 'Check the server address in the kubeconfig: a proxy or another web server may answer in place of the API server';

/** What an API server said no with: the HTTP status and, where it sent one, the members of its Status object. */
export interface Refusal {
  readonly httpStatus: number;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  /** Added as the hint of the problem. */
  readonly hint?: string | undefined;
}

/** Nothing answers as an API server there. `why` is a clause ("connection refused"), `hint` what to look at. */
export function clusterUnreachable(server: string, why: string, hint: string, options?: AppErrorOptions): AppError {
  return problem({ code: 'CLUSTER_UNREACHABLE', message: `cannot reach the API server ${server}: ${why}`, hint }, options);
}

/** The credentials could not be got at all, so nothing was asked. `why` never holds what a credential plugin printed. */
export function clusterCredentials(server: string, why: string, hint: string, options?: AppErrorOptions): AppError {
  return problem({ code: 'CLUSTER_UNAUTHORIZED', message: `no credentials for the API server ${server}: ${why}`, hint }, options);
}

/** Whether a later attempt may succeed: the API server is unreachable or failing, or something else answers in its place. */
export function mayPass(error: unknown): error is AppError {
  return error instanceof AppError && PASSING.has(error.code);
}

const PASSING: ReadonlySet<string> = new Set(['CLUSTER_UNREACHABLE', 'CLUSTER_ERROR', 'CLUSTER_ANSWER_INVALID']);

/** A kind the server does not serve. */
export function clusterNoSuchKind(server: string, apiVersion: string, kind: string): AppError {
  const hint = 'Check the apiVersion and kind, or install what provides it';
  return problem({ code: 'CLUSTER_NO_SUCH_KIND', message: `the API server ${server} has no kind ${kind} in ${apiVersion}`, hint });
}

/** Something other than an API server answered, e.g. a proxy's HTML page. */
export function clusterNotAnApi(server: string, what: string, httpStatus: number, contentType: string): AppError {
  const sent = contentType === '' ? 'no content type' : contentType.split(';')[0];
  const message = `cannot ${what}: ${server} answered ${httpStatus} with ${sent}, not with an object of the API`;
  return problem({ code: 'CLUSTER_ERROR', message, hint: 'Another web server or a proxy seems to stand there: check the server address' });
}

/** A request was answered with JSON that is no object of the API. `why` is a clause like `items[0].metadata: expected object`. */
export function clusterAnswerInvalid(
  server: string,
  { what, method, path }: { readonly what: string; readonly method: string; readonly path: string },
  why: string,
): AppError {
  const message = `cannot ${what}: ${server} answered ${method} ${path} with an object that is not of the Kubernetes API: ${why}`;
  return problem({ code: 'CLUSTER_ANSWER_INVALID', message, hint: NOT_AN_API_SERVER });
}

/** A member of an object of the API has the wrong type or is missing. `why` is a clause like `spec.request: expected string`. */
export function clusterObjectInvalid(object: KubeObject, why: string): AppError {
  const message = `the API server sent an invalid ${describeRef(refOf(object))}: ${why}`;
  return problem({ code: 'CLUSTER_ANSWER_INVALID', message, hint: NOT_AN_API_SERVER });
}

/** The object that another one should go with is not there any more. */
export function ownerGone(owner: ObjectRef, owned: KubeObject): AppError {
  const message = `${describeRef(owner)}, with which ${describeRef(refOf(owned))} should go, is gone`;
  return problem({ code: 'CLUSTER_NOT_FOUND', message, hint: 'Run the same command again' });
}

/** A watch that brings something else than events. */
export function clusterBadStream(what: string, why: string): AppError {
  return problem({
    code: 'CLUSTER_ERROR',
    message: `cannot ${what}: ${why}`,
    hint: 'Check what stands between here and the API server (proxy, load balancer)',
  });
}

/**
 * The error for a request the API server refused.
 * @param what the request as a verb clause, e.g. `get ConfigMap kube-system/kubelet-config`
 */
export function clusterRefused(what: string, refusal: Refusal, options?: AppErrorOptions): AppError {
  const code = refusalCode(refusal);
  const reported = withoutEchoes(refusal.message ?? '') || `the API server answered ${refusal.httpStatus}`;
  const hint = refusal.hint ?? HINTS[code];
  return problem({ code, message: `cannot ${what}: ${reported}`, ...(hint === undefined ? {} : { hint }) }, options);
}

const HINTS: Readonly<Record<string, string>> = {
  CLUSTER_UNAUTHORIZED: 'The API server does not accept the credentials: check the token or client certificate in the kubeconfig',
  CLUSTER_CONFLICT: 'Someone else changed it meanwhile: run the command again',
};

function refusalCode({ httpStatus, reason }: Refusal): string {
  switch (httpStatus) {
    case 401:
      return 'CLUSTER_UNAUTHORIZED';
    case 403:
      return 'CLUSTER_FORBIDDEN';
    case 404:
      return 'CLUSTER_NOT_FOUND';
    case 409:
      return reason === 'AlreadyExists' ? 'CLUSTER_ALREADY_EXISTS' : 'CLUSTER_CONFLICT';
    case 410:
      return 'CLUSTER_GONE';
    case 422:
      return 'CLUSTER_INVALID';
    default:
      return 'CLUSTER_ERROR';
  }
}

const MAX_MESSAGE = 1000;

/**
 * The server's words in one line, without the objects it quotes back (`Invalid value: "{...}"` holds the whole object sent, secrets too).
 */
function withoutEchoes(message: string): string {
  const line = message
    .replace(/"\{(?:[^"\\]|\\[\s\S]?)*(?:"|$)/g, '"{…}"')
    .replace(/\s+/g, ' ')
    .trim();
  return line.length > MAX_MESSAGE ? `${line.slice(0, MAX_MESSAGE)}…` : line;
}

function problem(what: Problem, options?: AppErrorOptions): AppError {
  return new AppError(what, options);
}
