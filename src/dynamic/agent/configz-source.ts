import { AppError, isAppError, messageOf } from '../../base/errors.ts';
import { type JsonObject, parseJsonObject } from '../../base/json.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { Host } from '../../host/host.ts';
import { observe } from '../../host/observe.ts';
import type { Web } from '../../kube/web.ts';
import type { WebFailureCause } from '../../kube/web-answer.ts';
import type { ObservedKubelet } from '../../kubeadm/workflows/observe-kubelet.ts';
import { kubeletServerOf } from '../../kubelet/kubelet-server.ts';
import { type KubeletCredential, readKubeletCredential } from './kubelet-credential.ts';

/** What the kubelet of a node answers at `/configz`. */
export interface ConfigzSource {
  /** @throws ConfigzUnavailableError */
  query(kubelet: Pick<ObservedKubelet, 'running' | 'flags'>): Promise<JsonObject>;
}

export interface ConfigzSourceOptions {
  readonly host: Host;
  readonly web: Web;
  /** The kubeconfig of the kubelet, on its host. */
  readonly kubeconfig: string;
  readonly signal: AbortSignal;
}

/** Configz was not told. */
export class ConfigzUnavailableError extends AppError {
  /** How the kubelet treats its own credential: `accepted` (it may not read configz), `refused` (nor is it recognized, or nothing answers), or null: not known. */
  readonly credential: 'accepted' | 'refused' | null;
  /** A clause. */
  readonly why: string;

  constructor(why: string, credential: 'accepted' | 'refused' | null) {
    super({ code: 'CONFIGZ_NOT_TOLD', message: why });
    this.why = why;
    this.credential = credential;
  }
}

const TIMEOUT_MS = 5_000;

/**
 * Asks the kubelet on its own host, which takes no connection from the API server to the node, with the kubelet's own credential. A client certificate
 * discloses nothing to the server. A token is sent once the server has proved, in the TLS handshake, that it holds the key of the certificate the kubelet keeps on
 * this host, in a file that only root can write. So it does not matter who signed that certificate, and for which address.
 *
 * Kubelets since 1.33 ask the API server whether the credential may `get` `nodes/configz`. Older ones ask for `nodes/proxy`, which it may not: they answer 403.
 */
export function configzSource({ host, web, kubeconfig, signal }: ConfigzSourceOptions): ConfigzSource {
  return {
    query: async ({ running, flags }) => {
      const server = kubeletServerOf(running.layered.config, flags.findLast(({ name }) => name === 'cert-dir')?.value);
      if (server === null) throw new ConfigzUnavailableError('it serves no API (enableServer: false)', 'refused');
      const credential = await readKubeletCredential(host, kubeconfig, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        throw new ConfigzUnavailableError(withoutCode(error), null);
      });
      const pem = (await observe(host, fileFacts([server.certificateFile]), signal)).get(server.certificateFile)?.content;
      if (pem === undefined || !pem.includes('BEGIN CERTIFICATE'))
        throw new ConfigzUnavailableError(`its certificate ${server.certificateFile} can't be read`, null);
      const answer = await web.get({
        url: `${server.url}/configz`,
        trust: { kind: 'certificate', pem },
        ...loginWith(credential),
        ...(host.dial === undefined ? { proxyUrl: null } : { dial: host.dial }),
        timeoutMs: TIMEOUT_MS,
        signal,
      });
      if (answer.kind === 'failed') throw new ConfigzUnavailableError(`${server.url}: ${describeFailure(answer.issue)}`, 'refused');
      const { status, text } = answer;
      const reported = text.trim().split('\n', 1)[0]?.slice(0, 200) ?? '';
      if (status !== 200)
        throw new ConfigzUnavailableError(
          `${server.url} answers ${status}${reported === '' ? '' : `: ${reported}`}`,
          status === 403 ? 'accepted' : 'refused',
        );
      const parsed = parseJsonObject(text);
      if (parsed === null) throw new ConfigzUnavailableError(`${server.url} answers with something else than a configuration`, 'refused');
      return parsed;
    },
  };
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
      return `no answer within ${TIMEOUT_MS / 1000} s`;
    case 'closed':
      return 'the connection was closed before an answer came';
    case 'other-certificate':
      return 'the server does not present the certificate of the kubelet, no token was sent to it';
    case 'tls-handshake':
      return `the TLS handshake failed (${issue.why}): it may have no serving certificate yet`;
    case 'not-tls':
      return 'the server does not speak TLS';
    default:
      return issue.kind;
  }
}
