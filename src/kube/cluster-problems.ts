import { AppError, type AppErrorOptions } from '../base/errors.ts';
import { quoteShell } from '../base/text/shell-quote.ts';
import { describeRef, type KubeObject, type ObjectRef, refOf } from './object.ts';

const NOT_AN_API_SERVER =
  'Check the server address in the kubeconfig: a proxy or another web server may have answered instead of the API server';

/** The rejection of a request: the HTTP status and, if sent, the members of the Status object. */
export interface Refusal {
  readonly httpStatus: number;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly hint?: string | undefined;
  readonly kubeconfig?: NamedKubeconfig | null;
}

/** A kubeconfig of the operator, for messages. */
export interface NamedKubeconfig {
  readonly file: string;
  readonly context: string;
  readonly user: string | null;
  /** Source of the path, such as `--kubeconfig`. */
  readonly origin: string;
}

/** Replaces "the kubeconfig" in a hint by its path, its context, and the source of the path. Null: the hint is unchanged. */
export function nameKubeconfig(hint: string, kubeconfig: NamedKubeconfig | null | undefined): string {
  return kubeconfig == null ? hint : hint.replace('the kubeconfig', () => kubeconfigText(kubeconfig));
}

function kubeconfigText({ file, context, origin }: NamedKubeconfig): string {
  const about = [`context ${JSON.stringify(context)}`, ...(file === origin ? [] : [`from ${origin}`])];
  return `the kubeconfig ${file} (${about.join(', ')})`;
}

/** The user that was denied, and a command that checks the permission; undefined: another rejection, as of an admission plugin. */
function deniedHint(reported: string, kubeconfig: NamedKubeconfig | null | undefined): string | undefined {
  const denied = /User "([^"]*)" cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?/.exec(reported);
  if (denied === null || kubeconfig == null) return undefined;
  const [, user, verb, resource, group, namespace] = denied;
  const { file, context } = kubeconfig;
  if (user === 'system:anonymous')
    return `The user ${JSON.stringify(kubeconfig.user ?? '')} in ${kubeconfigText(kubeconfig)} has no credentials. Pass another kubeconfig with --kubeconfig`;
  const check = [
    `kubectl auth can-i ${verb} ${resource}${group === '' ? '' : `.${group}`}`,
    ...(namespace === undefined ? [] : [`-n ${namespace}`]),
    ...(file === kubeconfig.origin ? [] : [`--kubeconfig ${quoteShell(file)}`]),
    `--context ${quoteShell(context)}`,
  ].join(' ');
  return `Grant the permission to the user of ${kubeconfigText(kubeconfig)}, or pass the kubeconfig of an administrator with --kubeconfig. To check, run ${check}`;
}

/** `why` is a clause ("connection refused"), `hint` suggests the next check. */
export function clusterUnreachable(server: string, why: string, hint: string, options?: AppErrorOptions): AppError {
  return new AppError({ code: 'CLUSTER_UNREACHABLE', message: `cannot reach the API server ${server}: ${why}`, hint }, options);
}

/** No request was sent. `why` never contains output of a credential plugin. */
export function clusterCredentials(server: string, why: string, hint: string, options?: AppErrorOptions): AppError {
  return new AppError({ code: 'CLUSTER_UNAUTHORIZED', message: `no credentials for the API server ${server}: ${why}`, hint }, options);
}

/** Whether a later attempt may succeed: the API server fails, or another server answers in its place. */
export function isTemporaryError(error: unknown): error is AppError {
  return error instanceof AppError && TEMPORARY_ERRORS.has(error.code);
}

const TEMPORARY_ERRORS: ReadonlySet<string> = new Set(['CLUSTER_UNREACHABLE', 'CLUSTER_ERROR', 'CLUSTER_ANSWER_INVALID']);

export function clusterNoSuchKind(server: string, apiVersion: string, kind: string): AppError {
  const hint = 'Check apiVersion and kind, or install the CRD that defines the kind';
  return new AppError({ code: 'CLUSTER_NO_SUCH_KIND', message: `the API server ${server} has no kind ${kind} in ${apiVersion}`, hint });
}

/** Another server than the API server answered, e.g. a proxy with an HTML page. */
export function clusterNotAnApi(server: string, what: string, httpStatus: number, contentType: string): AppError {
  const sent = contentType === '' ? 'no content type' : contentType.split(';')[0];
  const message = `cannot ${what}: ${server} answered ${httpStatus} with ${sent}, not with an API object`;
  const hint = 'Check the server address: another web server or a proxy may be answering at that address';
  return new AppError({ code: 'CLUSTER_ERROR', message, hint });
}

/** The response is JSON but not a valid API object. `why` is a clause like `items[0].metadata: expected object`. */
export function clusterAnswerInvalid(
  server: string,
  { what, method, path }: { readonly what: string; readonly method: string; readonly path: string },
  why: string,
): AppError {
  const message = `cannot ${what}: ${server} answered ${method} ${path} with an invalid Kubernetes object: ${why}`;
  return new AppError({ code: 'CLUSTER_ANSWER_INVALID', message, hint: NOT_AN_API_SERVER });
}

/** `why` is a clause like `spec.request: expected string`. */
export function clusterObjectInvalid(object: KubeObject, why: string): AppError {
  const message = `the API server sent an invalid ${describeRef(refOf(object))}: ${why}`;
  return new AppError({ code: 'CLUSTER_ANSWER_INVALID', message, hint: NOT_AN_API_SERVER });
}

/** The owner of an object to be created no longer exists. */
export function ownerNotFound(owner: ObjectRef, owned: KubeObject): AppError {
  const message = `cannot create ${describeRef(refOf(owned))}: its owner ${describeRef(owner)} no longer exists`;
  const hint = 'The owner was deleted during the run. Rerun the command, which reads the cluster again';
  return new AppError({ code: 'CLUSTER_NOT_FOUND', message, hint });
}

export function clusterWatchInvalid(what: string, why: string): AppError {
  const hint = 'Check the proxies and load balancers between the local host and the API server';
  return new AppError({ code: 'CLUSTER_ERROR', message: `cannot ${what}: ${why}`, hint });
}

/** @param what the request as a verb clause, e.g. `get ConfigMap kube-system/kubelet-config` */
export function clusterRefused(what: string, refusal: Refusal, options?: AppErrorOptions): AppError {
  const code = refusalCode(refusal);
  const reported = withoutEchoes(refusal.message ?? '') || `the API server answered ${refusal.httpStatus}`;
  const general = HINTS[code];
  const hint =
    refusal.hint ?? (general === undefined ? deniedHint(reported, refusal.kubeconfig) : nameKubeconfig(general, refusal.kubeconfig));
  return new AppError({ code, message: `cannot ${what}: ${reported}`, hint }, options);
}

const HINTS: Readonly<Record<string, string>> = {
  CLUSTER_UNAUTHORIZED: 'Check the token or the client certificate in the kubeconfig: the API server rejects these credentials',
  CLUSTER_CONFLICT: 'Rerun the command: another client changed the object at the same time',
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

/** In one line, without quoted objects (`Invalid value: "{...}"` contains the whole object sent, with secrets). */
function withoutEchoes(message: string): string {
  const line = message
    .replace(/"\{(?:[^"\\]|\\[\s\S]?)*(?:"|$)/g, '"{…}"')
    .replace(/\s+/g, ' ')
    .trim();
  return line.length > MAX_MESSAGE ? `${line.slice(0, MAX_MESSAGE)}…` : line;
}
