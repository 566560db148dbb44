import { AppError, isAppError, messageOf } from '../../base/errors.ts';
import { type JsonObject, parseJsonObject } from '../../base/json.ts';
import { Secret } from '../../base/text/secret.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { WebFailureCause } from '../../kube/https-client.ts';
import { parseKubeconfig, resolveContext } from '../../kube/kubeconfig.ts';
import { clientKeyOf } from '../../kube/kubeconfig-render.ts';
import { kubeletServerOf } from '../../kubelet/effective/configz.ts';
import type { ObservedKubelet } from '../../kubelet/effective/observe-kubelet.ts';
import type { AgentOptions } from './agent-options.ts';

/** Reads `/configz` of a node's kubelet. */
export type ConfigzSource = ReturnType<typeof configzSource>;

export type CredentialResult = 'accepted' | 'rejected' | 'no-answer' | 'no-certificate';

export class ConfigzUnavailableError extends AppError {
  /**
   * Result of the kubelet's own credential: `accepted` (but without access to configz), `rejected` by this
   * kubelet itself, `no-certificate` (the kubelet waits for the approval of its CSR), `no-answer` (also if the kubelet may have asked the API server in vain), or null: unknown.
   */
  readonly credential: CredentialResult | null;
  /** Reason as a clause. */
  readonly why: string;

  constructor(why: string, credential: CredentialResult | null) {
    super({ code: 'CONFIGZ_NOT_TOLD', message: why });
    this.why = why;
    this.credential = credential;
  }
}

const TIMEOUT_MS = 5_000;

/**
 * Reads configz on the kubelet's host with the kubelet's own credential, so that no connection from the API
 * server to the node is needed. A client certificate discloses nothing to the server. A token is sent only
 * after the server has proved, in the TLS handshake, that it holds the key of the kubelet's serving
 * certificate, a file that only root can write. The issuer and the addresses of that certificate therefore do
 * not matter.
 *
 * Kubelets from 1.33 check at the API server whether the credential may `get` `nodes/configz`. Earlier
 * kubelets check `nodes/proxy`, which the credential may not, and return 403.
 */
export function configzSource({ host, web, kubeconfig, signal }: Pick<AgentOptions, 'host' | 'web' | 'kubeconfig' | 'signal'>) {
  return {
    /** @throws ConfigzUnavailableError */
    query: async ({ running, flags }: Pick<ObservedKubelet, 'running' | 'flags'>): Promise<JsonObject> => {
      const server = kubeletServerOf(running.layered.config, flags.findLast(({ name }) => name === 'cert-dir')?.value);
      if (server === null)
        throw new ConfigzUnavailableError('the kubelet serves no API, because its configuration sets enableServer: false', 'rejected');
      const { address, serverTLSBootstrap } = running.layered.config;
      if (typeof address === 'string' && /^(?:127\.|::1$)/.test(address))
        throw new ConfigzUnavailableError(`the kubelet listens only on ${address}, where the API server cannot reach it`, 'no-answer');
      const credential = await readKubeletCredential(host, kubeconfig, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        throw new ConfigzUnavailableError(withoutCode(error), null);
      });
      const pem = (await observe(host, fileFacts([server.certificateFile]), signal)).get(server.certificateFile)?.content;
      if (pem === undefined && serverTLSBootstrap === true)
        throw new ConfigzUnavailableError(
          `${server.certificateFile} does not exist, because no CSR of the kubelet for a serving certificate was approved (serverTLSBootstrap: true). Run kubeletadm csr approve`,
          'no-certificate',
        );
      if (pem === undefined || !pem.includes('BEGIN CERTIFICATE'))
        throw new ConfigzUnavailableError(`the serving certificate ${server.certificateFile} cannot be read`, null);
      const answer = await web.get({
        url: `${server.url}/configz`,
        trust: { kind: 'certificate', pem },
        ...loginWith(credential),
        ...(host.dial === undefined ? { proxyUrl: null } : { dial: host.dial }),
        timeoutMs: TIMEOUT_MS,
        signal,
      });
      if (answer.kind === 'failed') throw new ConfigzUnavailableError(`${server.url}: ${describeFailure(answer.issue)}`, 'no-answer');
      const { status, text } = answer;
      const reported = text.trim().split('\n', 1)[0]?.slice(0, 200) ?? '';
      if (status !== 200)
        throw new ConfigzUnavailableError(
          `${server.url} returned ${status}${reported === '' ? '' : `: ${reported}`}`,
          resultOf(status, credential),
        );
      const parsed = parseJsonObject(text);
      if (parsed === null) throw new ConfigzUnavailableError(`${server.url} returned a response that is not a configuration`, 'no-answer');
      return parsed;
    },
  };
}

/**
 * A kubelet checks client certificates itself. It asks the API server about tokens (401) and permissions (500).
 * @see kubernetes/kubernetes pkg/kubelet/server/auth.go, cmd/kubelet/app/auth.go (1.36)
 */
function resultOf(status: number, { kind }: KubeletCredential): CredentialResult | null {
  if (status === 403) return 'accepted';
  if (status === 401) return kind === 'certificate' ? 'rejected' : 'no-answer';
  return status >= 500 ? null : 'no-answer';
}

function loginWith(credential: KubeletCredential) {
  return credential.kind === 'token'
    ? { bearerToken: credential.token }
    : { clientCertificate: { certificate: credential.certificate, key: credential.key } };
}

function withoutCode(error: unknown): string {
  return isAppError(error) ? error.problems.map(({ message }) => message).join('; ') : messageOf(error);
}

function describeFailure(issue: WebFailureCause): string {
  switch (issue.kind) {
    case 'refused':
      return 'connection refused';
    case 'timed-out':
      return `no response within ${TIMEOUT_MS / 1000} s`;
    case 'closed':
      return 'the connection was closed before a response';
    case 'other-certificate':
      return 'the server presents another certificate than that of the kubelet, so no token was sent';
    case 'tls-handshake':
      return `the TLS handshake failed (${issue.why}): the kubelet may have no serving certificate yet`;
    case 'not-tls':
      return 'the server does not speak TLS';
    default:
      return issue.kind;
  }
}

type KubeletCredential =
  /** Certificate and key in PEM. */
  { readonly kind: 'certificate'; readonly certificate: string; readonly key: Secret } | { readonly kind: 'token'; readonly token: Secret };

/**
 * Reads the current credential from the kubeconfig of a kubelet: certificates are rotated.
 * @param path path of the kubeconfig on the host
 * @throws Error with a clause: a file is missing, or the kubeconfig uses an exec plugin
 */
export async function readKubeletCredential(host: Host, path: string, signal?: AbortSignal): Promise<KubeletCredential> {
  const read = async (file: string): Promise<string> => {
    const full = file.startsWith('/') ? file : `${path.slice(0, path.lastIndexOf('/') + 1)}${file}`;
    const content = (await observe(host, fileFacts([full]), signal)).get(full)?.content;
    if (content === undefined) throw new Error(`${full} cannot be read`);
    return content;
  };
  const { user } = resolveContext(parseKubeconfig(await read(path), path));
  const certificate = user?.certFile === undefined ? decode(user?.certData) : await read(user.certFile);
  const key = user?.keyFile === undefined ? clientKeyOf(user?.keyData) : new Secret(await read(user.keyFile));
  if (certificate !== null && key !== null) return { kind: 'certificate', certificate, key };
  const token = user?.tokenFile === undefined ? user?.token : new Secret((await read(user.tokenFile)).trim());
  if (token !== undefined) return { kind: 'token', token };
  throw new Error(`${path} holds neither a client certificate nor a token`);
}

function decode(base64: string | undefined): string | null {
  return base64 === undefined ? null : Buffer.from(base64, 'base64').toString('utf8');
}
