import { AppError, isAppError, messageOf } from '../core/errors.ts';
import { fileFacts } from '../core/facts/file-facts.ts';
import { type JsonObject, parseJsonObject } from '../core/json.ts';
import { kubeletServerOf } from '../core/kubelet/kubelet-server.ts';
import type { WebTrouble } from '../core/network/web-answer.ts';
import { Secret } from '../core/text/secret.ts';
import { observe } from '../engine/observe.ts';
import type { Cluster } from '../ports/cluster.ts';
import type { Host } from '../ports/host.ts';
import type { Web } from '../ports/web.ts';
import type { ObservedKubelet } from '../workflows/observe-kubelet.ts';

/** What the kubelet of a node answers at `/configz`. */
export interface ConfigzSource {
  /**
   * By its own word on its host, else through the API server.
   * @throws ConfigzNotToldError
   */
  ask(kubelet: Pick<ObservedKubelet, 'running' | 'flags'>): Promise<JsonObject>;
  /** Through the API server, which has to get through to the kubelet for that. @throws ConfigzNotToldError */
  askThroughApiServer(): Promise<JsonObject>;
}

export interface ConfigzSourceOptions {
  readonly host: Host;
  readonly cluster: Cluster;
  readonly web: Web;
  readonly nodeName: string;
  /** What the agent logs in with; null: nothing that a kubelet could know. */
  readonly tokenFile: string | null;
  readonly signal: AbortSignal;
}

/** Configz was not told. */
export class ConfigzNotToldError extends AppError {
  /** Somebody answered who should have told it: neither a network that is away nor a missing permission. */
  readonly isAnswer: boolean;
  /** A clause. */
  readonly why: string;

  constructor(why: string, isAnswer: boolean) {
    super({ code: 'CONFIGZ_NOT_TOLD', message: why });
    this.why = why;
    this.isAnswer = isAnswer;
  }
}

const TIMEOUT_MS = 5_000;

/**
 * Asks the kubelet itself first: that takes no way from the API server to the node, which firewalls may close, and needs no permission but for this one answer.
 *
 * The agent shows it the token it logs in to the API server with, and the kubelet has the API server judge that. It gets the token once it has proved, in the TLS
 * handshake, that it holds the key of the certificate the kubelet keeps on this host, in a file that only root can write. Whoever can show that is root here, and
 * could read the token from its file. So nobody has to have signed that certificate, and it need not be for the address that is asked.
 */
export function configzSource({ host, cluster, web, nodeName, tokenFile, signal }: ConfigzSourceOptions): ConfigzSource {
  const path = `/api/v1/nodes/${encodeURIComponent(nodeName)}/proxy/configz`;
  const askThroughApiServer = async (): Promise<JsonObject> => {
    try {
      return await cluster.getRaw(path);
    } catch (error) {
      throw new ConfigzNotToldError(withoutCode(error), isAnswerOfApiServer(error));
    }
  };

  const askKubelet = async ({ running, flags }: Pick<ObservedKubelet, 'running' | 'flags'>): Promise<JsonObject> => {
    const server = kubeletServerOf(running.layered.config, flags.findLast(({ name }) => name === 'cert-dir')?.value);
    if (server === null) throw new ConfigzNotToldError('it serves no API (enableServer: false)', true);
    if (tokenFile === null) throw new ConfigzNotToldError('the agent has no token to show it', false);
    const files = await observe(host, fileFacts([server.certificateFile, tokenFile]), signal);
    const [pem, token] = [files.get(server.certificateFile)?.content, files.get(tokenFile)?.content?.trim()];
    if (pem === undefined || !pem.includes('BEGIN CERTIFICATE'))
      throw new ConfigzNotToldError(`its certificate ${server.certificateFile} can't be read`, false);
    if (token === undefined || token === '') throw new ConfigzNotToldError(`there is no token in ${tokenFile}`, false);
    const trust = { kind: 'certificate', pem } as const;
    const url = `${server.url}/configz`;
    const way = host.dial === undefined ? { proxyUrl: null } : { dial: host.dial };
    const answer = await web.get({ url, trust, bearerToken: new Secret(token), ...way, timeoutMs: TIMEOUT_MS, signal });
    if (answer.kind === 'failed')
      throw new ConfigzNotToldError(`${server.url}: ${describeTrouble(answer.trouble)}`, answer.trouble.kind !== 'other-certificate');
    const { status, text } = answer;
    const said = text.trim().split('\n', 1)[0]?.slice(0, 200) ?? '';
    // 403: it is well, and the account may not read it.
    if (status !== 200) throw new ConfigzNotToldError(`${server.url} answers ${status}${said === '' ? '' : `: ${said}`}`, status !== 403);
    const parsed = parseJsonObject(text);
    if (parsed === null) throw new ConfigzNotToldError(`${server.url} answers with something else than a configuration`, true);
    return parsed;
  };

  return {
    askThroughApiServer,
    ask: async (kubelet) => {
      const own = await askKubelet(kubelet).catch((error: unknown) => error as Error);
      if (!(own instanceof Error)) return own;
      signal.throwIfAborted();
      const through = await askThroughApiServer().catch((error: ConfigzNotToldError) => error);
      if (!(through instanceof Error)) return through;
      const isAnswer = through.isAnswer || (own instanceof ConfigzNotToldError && own.isAnswer);
      throw new ConfigzNotToldError(`the kubelet itself: ${withoutCode(own)}; through the API server: ${through.why}`, isAnswer);
    },
  };
}

/** A refusal of the API server's own is one of permissions; the kubelet's own reads otherwise. @see kubernetes/kubernetes pkg/kubelet/server/server.go (1.36) */
function isAnswerOfApiServer(error: unknown): boolean {
  if (isAppError(error, 'CLUSTER_UNREACHABLE')) return false;
  return !isAppError(error, 'CLUSTER_FORBIDDEN') || error.message.includes('Forbidden (user=');
}

function withoutCode(error: unknown): string {
  return isAppError(error) ? error.problems.map(({ message }) => message).join('; ') : messageOf(error);
}

function describeTrouble(trouble: WebTrouble): string {
  switch (trouble.kind) {
    case 'refused':
      return 'connection refused';
    case 'timed-out':
      return `no answer within ${TIMEOUT_MS / 1000} s`;
    case 'closed':
      return 'the connection was closed before an answer came';
    case 'other-certificate':
      return 'what answers there does not show the certificate of the kubelet, it was told nothing';
    case 'tls-handshake':
      return `the TLS handshake failed (${trouble.why}): it may have no serving certificate yet`;
    case 'not-tls':
      return 'what answers there does not speak TLS';
    default:
      return trouble.kind;
  }
}
