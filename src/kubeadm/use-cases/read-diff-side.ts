import { AppError, type Problem, usageError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { InputFiles } from '../../base/local-files.ts';
import type { DecodedDocument } from '../../codec/decode-typed.ts';
import { parseSource } from '../../codec/source.ts';
import type { Host } from '../../host/access/host.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { KUBE_SYSTEM, KUBELET_CONFIG_NAME } from '../../kube/well-known.ts';
import { type Catalogue, type Minor, NEWEST_MINOR, OLDEST_KNOWN_MINOR, parseMinor } from '../../kubelet/catalogue/catalogue.ts';
import { decodeKubeletConfiguration, KUBELET_API_VERSION, KUBELET_KIND, syntaxOf } from '../../kubelet/documents/decode.ts';
import { observeKubelet } from '../../kubelet/effective/observe-kubelet.ts';
import { readMinor } from '../../kubelet/minor-option.ts';
import { readConfigMapDocument } from '../workflows/node/cluster-baseline.ts';
import { readNodeConfig } from '../workflows/node/read-node-config.ts';

/** A configuration to compare; `minor` is null when its source has no kubelet version. */
export interface DiffSide {
  readonly name: string;
  readonly minor: Minor | null;
  /** Decodes the configuration as a kubelet of this minor does. */
  readonly configOf: (minor: Minor) => {
    /** In the shape of `decodeKubeletConfiguration`. */
    readonly config: JsonObject;
    /** Fields that this kubelet ignores. */
    readonly warnings: readonly Problem[];
  };
}

export interface DiffSideContext {
  readonly input: Pick<InputFiles, 'readText'>;
  readonly signal: AbortSignal;
  /** Connects to a host by its address; `localhost` is the local host. */
  readonly connectTo: (address: string) => Promise<Host>;
  readonly catalogue: Catalogue;
  /** Connects on first use. */
  readonly cluster: () => Promise<Cluster>;
}

/**
 * Reads one side of a comparison: `cluster`, `node/NAME`, `host/ADDRESS`, `defaults/1.X`, else a file (`-` is standard input).
 * @throws AppError with the errors of the host, the API server or the file
 */
export async function readDiffSide(name: string, context: DiffSideContext): Promise<DiffSide> {
  const [kind = '', rest = ''] = /^(node|host|defaults)\/(.*)$/.exec(name)?.slice(1) ?? [];
  if (name === 'cluster') return readCluster(context);
  if (kind === '') return readFile(name, context);
  if (rest === '') throw usageError(`${name}: the name after the slash is missing`, `Example: ${EXAMPLES[kind] ?? ''}`);
  if (kind === 'node') {
    const { minor, config } = await readNodeConfig(await context.cluster(), rest, context.catalogue);
    return { name, minor, configOf: () => ({ config, warnings: [] }) };
  }
  if (kind === 'host') return readHost(name, rest, context);
  const minor = readMinor(rest, name, OLDEST_KNOWN_MINOR);
  return { name, minor, configOf: () => ({ config: { apiVersion: KUBELET_API_VERSION, kind: KUBELET_KIND }, warnings: [] }) };
}

const EXAMPLES: Readonly<Record<string, string>> = { node: 'node/worker-1', host: 'host/root@10.0.0.11', defaults: 'defaults/1.36' };

async function readCluster({ cluster, catalogue }: DiffSideContext): Promise<DiffSide> {
  const api = await cluster();
  const configMap = await api.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: KUBE_SYSTEM, name: KUBELET_CONFIG_NAME });
  if (configMap === null)
    throw new AppError({
      code: 'CLUSTER_NOT_FOUND',
      message: `${api.server} has no ConfigMap kube-system/kubelet-config`,
      hint: 'Create the ConfigMap with: kubeletadm cluster adopt --kubeconfig admin.conf',
    });
  const document = readConfigMapDocument(configMap, 'kubelet');
  const minor = parseMinor(await api.version());
  return {
    name: 'cluster',
    minor: minor === null ? null : Math.min(Math.max(minor, OLDEST_KNOWN_MINOR), NEWEST_MINOR),
    configOf: (kubelet) => requireDecoded(decodeKubeletConfiguration(document, { minor: kubelet, catalogue, lenient: true })),
  };
}

async function readHost(name: string, address: string, { connectTo, signal, catalogue }: DiffSideContext): Promise<DiffSide> {
  const host = await connectTo(address);
  try {
    const { minor, running } = await observeKubelet(host, catalogue, signal);
    return {
      name,
      minor,
      configOf: () => ({ config: running.layered.config, warnings: running.problems.map((problem) => ({ host: name, ...problem })) }),
    };
  } finally {
    await host.close();
  }
}

async function readFile(file: string, { input, catalogue }: DiffSideContext): Promise<DiffSide> {
  const text = await input.readText(file);
  const { documents, problems } = parseSource(text, file);
  if (problems.length > 0) throw new AppError(problems, { exitCode: 2 });
  const document = documents.find(({ root }) => root !== null);
  if (document === undefined)
    throw new AppError({ code: 'CONFIG_NO_DOCUMENT', message: `${file}: the file contains no document` }, { exitCode: 2 });
  return {
    name: file,
    minor: null,
    configOf: (minor) => requireDecoded(decodeKubeletConfiguration(document, { minor, catalogue, lenient: true, syntax: syntaxOf(text) })),
  };
}

function requireDecoded({ value, problems }: DecodedDocument) {
  const errors = problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) throw new AppError(errors, { exitCode: 2 });
  return { config: value, warnings: problems };
}
