import type { RunTime } from '../../base/clock.ts';
import { AppError, messageOf } from '../../base/errors.ts';
import { parseJson } from '../../base/json.ts';
import type { LocalServer } from '../../base/local-server.ts';
import type { Reporter } from '../../base/reporter.ts';
import { systemErrorText } from '../../base/system-error.ts';
import { Secret } from '../../base/text/secret.ts';
import type { AgentHostPort } from '../../dynamic/ports.ts';
import { connectFromPod } from '../../kubeadm/use-cases/connect-from-pod.ts';
import type { KubeconfigRequest, OpenClusterPorts } from '../../kubeadm/use-cases/open-cluster.ts';
import { type HookAnswer, hookAnswers } from './hooks.ts';
import type { UpdateSettings } from './update-machine.ts';

export interface ServingCertificate {
  readonly certPem: string;
  readonly keyPem: Secret;
  /** The CA of the certificates that clients must have; null: any client may send requests. */
  readonly clientCaPem: string | null;
}

/** Serves the hooks by HTTPS: POST of JSON, and GET of `/healthz`. */
export interface HookServers {
  /** @throws errors of Node.js, also for a certificate that does not belong to its key */
  serveHooks(options: {
    /** Undefined: all addresses. */
    readonly host: string | undefined;
    /** 0: a free one. */
    readonly port: number;
    readonly certificate: ServingCertificate;
    /** Time limit of a handshake, and of the headers of a request. */
    readonly timeoutMs?: number;
    /** @param body the text of the request. @returns null: 404 */
    readonly answer: (path: string, body: string) => Promise<HookAnswer | null>;
  }): Promise<LocalServer & { renew(certificate: ServingCertificate): void }>;
}

export interface ExtensionPorts extends OpenClusterPorts, RunTime, HookServers, Pick<AgentHostPort, 'watchFile'> {}

export interface ExtensionRequest extends UpdateSettings {
  /** The management cluster. Without a kubeconfig and in a pod: by the service account of the pod. */
  readonly cluster: KubeconfigRequest;
  readonly host: string | undefined;
  readonly port: number;
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCaFile: string | undefined;
}

/**
 * Runs an in-place update extension of Cluster API until the signal is aborted. A changed certificate is served without a restart.
 * @throws AppError CLUSTER_API_LISTEN (exit code 2), the errors of files and of `openCluster`
 */
export async function runExtension(services: ExtensionPorts, request: ExtensionRequest, reporter: Reporter): Promise<void> {
  const { clock, signal, connectCluster } = services;
  const certificate = await readCertificate(services, request);
  const { cluster: management } = await connectFromPod(services, request.cluster, reporter);
  try {
    const answers = hookAnswers({ management, connectCluster, clock, reporter }, request);
    const answer = async (path: string, body: string) => {
      try {
        return await answers(path, parseJson(body));
      } catch (error) {
        reporter.report({ level: 'error', code: 'HOOK_NOT_ANSWERED', message: `${path}: ${messageOf(error)}` });
        throw error;
      }
    };
    const { host, port } = request;
    const server = await services.serveHooks({ host, port, certificate, answer }).catch((cause: unknown) => {
      throw new AppError(
        { code: 'CLUSTER_API_LISTEN', message: `cannot serve on port ${port}: ${systemErrorText(cause)}` },
        { exitCode: 2, cause },
      );
    });
    reporter.report({ level: 'info', code: 'SERVER_STARTED', message: `serves the hooks of Cluster API on port ${server.port}` });
    followCertificate(services, request, { renew: server.renew, reporter });
    if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    await server.close();
  } finally {
    await management.close();
  }
}

async function readCertificate({ input }: Pick<ExtensionPorts, 'input'>, { certFile, keyFile, clientCaFile }: ExtensionRequest) {
  const [certPem, key, clientCaPem] = await Promise.all([
    input.readText(certFile),
    input.readText(keyFile),
    clientCaFile === undefined ? null : input.readText(clientCaFile),
  ]);
  return { certPem, keyPem: new Secret(key), clientCaPem };
}

/** The files are replaced one after the other: a pair that does not match is followed by another change. */
function followCertificate(
  services: ExtensionPorts,
  request: ExtensionRequest,
  { renew, reporter }: { readonly renew: (certificate: ServingCertificate) => void; readonly reporter: Reporter },
): void {
  const reload = async (): Promise<void> => {
    try {
      renew(await readCertificate(services, request));
      reporter.report({ level: 'info', code: 'CERTIFICATE_RELOADED', message: `${request.certFile} was reloaded` });
    } catch (error) {
      const message = `${request.certFile} cannot be reloaded, and the previous certificate is served: ${messageOf(error)}`;
      reporter.report({ level: 'warning', code: 'CERTIFICATE_NOT_RELOADED', message });
    }
  };
  for (const file of [request.certFile, request.keyFile, request.clientCaFile])
    if (file !== undefined) services.watchFile(file, () => void reload(), services.signal);
}
