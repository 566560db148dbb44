import { isJsonObject, type Json, type JsonObject } from '../base/json.ts';
import type { SensitiveText } from '../base/text/secret.ts';
import { parseSource, sourceToJson } from '../codec/source.ts';
import { KUBECONFIG_LIMITS, parseKubeconfig } from './kubeconfig.ts';
import { clientCertificateKubeconfig, tokenKubeconfig } from './kubeconfig-render.ts';

/** Not exported, and with a private field: only the functions below make values of this type. */
class TrustedKubeconfig {
  readonly #text: string | SensitiveText;
  /** Source of the kubeconfig for messages; relative paths are relative to its folder. */
  readonly file: string;
  /** Source of the path for messages, such as `--kubeconfig`; null: the operator named no kubeconfig. */
  readonly origin: string | null;

  constructor(text: string | SensitiveText, file: string, origin: string | null = null) {
    this.#text = text;
    this.file = file;
    this.origin = origin;
  }

  get text(): string | SensitiveText {
    return this.#text;
  }
}

/**
 * A kubeconfig of the operator: its programs and files on the local host are trusted. No function creates one
 * from text, because text could originate from a host: see `HostKubeconfig`.
 */
export type OperatorKubeconfig = TrustedKubeconfig;

/**
 * Several files are merged.
 * @param origin source of the paths, such as `--kubeconfig`; null: the operator did not name them
 * @throws errors of `input.readText`; AppError as `parseKubeconfig` for several files
 */
export async function readOperatorKubeconfig(
  input: { readText(path: string): Promise<string> },
  files: readonly [string, ...string[]],
  origin: string | null = null,
): Promise<OperatorKubeconfig> {
  const texts: KubeconfigText[] = [];
  for (const file of files) texts.push({ file, text: await input.readText(file) });
  const [first, ...more] = texts as [KubeconfigText, ...KubeconfigText[]];
  const [text, file] = more.length === 0 ? [first.text, first.file] : [mergeKubeconfigs(texts), 'KUBECONFIG'];
  return new TrustedKubeconfig(text, file, origin);
}

/** A kubeconfig with an address, a CA and a token. `file` names it in messages. */
export function composeTokenKubeconfig(options: Parameters<typeof tokenKubeconfig>[0], file: string): OperatorKubeconfig {
  return new TrustedKubeconfig(tokenKubeconfig(options), file);
}

/** A kubeconfig with an address, a CA, a client certificate and its key. `file` names it in messages. */
export function composeCertificateKubeconfig(options: Parameters<typeof clientCertificateKubeconfig>[0], file: string): OperatorKubeconfig {
  return new TrustedKubeconfig(clientCertificateKubeconfig(options), file);
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * The kubeconfig of a pod: its service account. The token is read again when it changes.
 * @returns null outside of a pod
 * @see k8s.io/client-go rest.InClusterConfig
 */
export function inClusterKubeconfig(env: Readonly<Record<string, string | undefined>>): OperatorKubeconfig | null {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '' } = env;
  if (host === '' || port === '') return null;
  const server = `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const text = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'pod',
    clusters: [{ name: 'pod', cluster: { server, 'certificate-authority': `${SERVICE_ACCOUNT}/ca.crt` } }],
    users: [{ name: 'pod', user: { tokenFile: `${SERVICE_ACCOUNT}/token` } }],
    contexts: [{ name: 'pod', context: { cluster: 'pod', user: 'pod' } }],
  });
  return new TrustedKubeconfig(text, 'in-cluster');
}

export interface KubeconfigText {
  readonly file: string;
  readonly text: string;
}

/** Members of an entry that are paths, relative to the folder of their file. */
const PATHS = ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile'];

/**
 * As kubectl merges the files of KUBECONFIG: the first that defines an entry of a name, or a current-context,
 * wins.
 * @returns JSON text; its paths are relative to the working directory. @throws as `parseKubeconfig`
 */
export function mergeKubeconfigs(files: readonly KubeconfigText[]): string {
  const roots = files.map(({ file, text }) => {
    parseKubeconfig(text, file);
    const root = parseSource(text, file, KUBECONFIG_LIMITS).documents.find((document) => document.root !== null)?.root ?? null;
    return { file, root: (root === null ? {} : sourceToJson(root)) as JsonObject };
  });
  const list = (name: string, member: string): readonly Json[] => {
    const found = new Map<string, Json>();
    for (const { file, root } of roots)
      for (const entry of Array.isArray(root[name]) ? root[name].filter(isJsonObject) : [])
        if (!found.has(String(entry.name))) found.set(String(entry.name), { ...entry, [member]: withPaths(entry[member], file) });
    return [...found.values()];
  };
  const contexts = roots.map(({ root }) => root['current-context']);
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': contexts.find((context) => typeof context === 'string' && context !== '') ?? '',
    clusters: list('clusters', 'cluster'),
    contexts: list('contexts', 'context'),
    users: list('users', 'user'),
  });
}

function withPaths(value: Json | undefined, file: string): Json {
  if (!isJsonObject(value)) return value ?? {};
  const place = (path: Json): Json =>
    typeof path !== 'string' || path === '' || path.startsWith('/') ? path : `${file.slice(0, file.lastIndexOf('/') + 1)}${path}`;
  const moved = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, PATHS.includes(name) ? place(member) : member]));
  const { exec } = moved;
  if (!isJsonObject(exec) || typeof exec.command !== 'string' || !exec.command.includes('/')) return moved;
  return { ...moved, exec: { ...exec, command: place(exec.command) } };
}
