import type { Json, JsonObject } from '../../src/base/json.ts';
import { isJsonObject } from '../../src/base/json.ts';
import { execStartWords } from '../../src/host/systemd/exec-start.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { encodeKubeletConfiguration } from '../../src/kubelet/documents/encode.ts';
import { placedFlags } from '../../src/kubelet/effective/kubelet-setup.ts';
import { layerRunningConfig } from '../../src/kubelet/effective/running-config.ts';

const catalogue = await loadCatalogue();
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfailCgroupV1: false\n';

/** A host's unit, its drop-in and environment file, and the configuration files of its kubelet, below a directory. */
export interface EffectiveCase {
  readonly unit: string;
  readonly dropIn: string;
  readonly environment: string;
  readonly config: string;
  /** Files of `--config-dir` by name. */
  readonly dropIns: Readonly<Record<string, string>>;
}

const FIELDS = [
  'maxPods: 31',
  'maxPods: 0',
  'podPidsLimit: 400',
  'evictionHard: {memory.available: 5%}',
  'evictionHard: {nodefs.available: 9%, imagefs.available: 8%}',
  'mergeDefaultEvictionSettings: true',
  'clusterDNS: [10.1.0.10]',
  'clusterDNS: []',
  'featureGates: {DisableNodeKubeProxyVersion: true}',
  'syncFrequency: 90s',
  'serializeImagePulls: false',
  'authentication: {webhook: {cacheTTL: 30s}}',
  'authorization: {mode: AlwaysAllow}',
  'kubeReserved: {memory: 100Mi, cpu: 50m}',
  'systemReserved: {memory: 200Mi}',
  'readOnlyPort: 10255',
  'containerLogMaxSize: 20Mi',
  'imageGCHighThresholdPercent: 90',
  'staticPodPath: manifests',
  'registerWithTaints: [{key: a, effect: NoSchedule}]',
  'allowedUnsafeSysctls: [net.core.somaxconn]',
  'tlsMinVersion: VersionTLS13',
  'resolvConf: ""',
  'shutdownGracePeriod: 30s',
] as const;
const FLAGS = [
  '--max-pods=44',
  '--max-pods 45',
  '--eviction-hard=memory.available<7%',
  '--kube-reserved=memory=300Mi',
  '--cluster-dns=10.2.0.10,10.2.0.11',
  '--feature-gates=SeparateCacheWatchRPC=false',
  '--sync-frequency=70s',
  '--serialize-image-pulls=true',
  '--pod-max-pids=500',
  '--read-only-port=0',
  '--anonymous-auth=true',
  '--register-with-taints=b=c:NoExecute',
  '--resolv-conf=/etc/own.conf',
  '--cgroups-per-qos',
  '--container_log_max_files=7',
] as const;

/** A case from random numbers below 1. */
export function randomCase(random: () => number): EffectiveCase {
  const some = <T>(from: readonly T[], most: number): readonly T[] => {
    const left = [...from];
    return Array.from({ length: Math.floor(random() * (most + 1)) }, () => left.splice(Math.floor(random() * left.length), 1)[0] as T);
  };
  const document = (most: number): string => {
    const fields = new Map(some(FIELDS, most).map((field) => [field.slice(0, field.indexOf(':')), field]));
    return `${HEADER}${[...fields.values()].join('\n')}\n`;
  };
  const [one, two] = [some(FLAGS, 2).join(' '), some(FLAGS, 2).join(' ')];
  const quote = random() < 0.5 ? `"${two}"` : `'${two}'`;
  const reset =
    random() < 0.5 ? 'ExecStart=\nExecStart=-/k $CONFIG $A ${B} $DIR --v=5' : 'ExecStart=\nExecStart=/k $CONFIG $DIR --v=5 \\\n  $A';
  return {
    unit: `[Service]\nEnvironment="CONFIG=--config=@/config.yaml" "A=${one}" B=--register-node=true\nExecStart=/k\n`,
    dropIn: `[Service]\n${random() < 0.3 ? 'Environment=A=--max-pods=46\n' : ''}EnvironmentFile=-@/env\n${random() < 0.5 ? 'Environment=DIR=--config-dir=@/dir\n' : ''}${reset}\n`,
    environment: random() < 0.6 ? `# flags\nA=${quote}\n` : '',
    config: document(6),
    dropIns: Object.fromEntries(
      some(['10-a.conf', '9-b.conf', '20-c.conf', '99-d.yaml', 'sub.conf'], 4).map((name) => [name, document(3)]),
    ),
  };
}

/** The command line of a case, its files below a directory. */
export function wordsOf({ unit, dropIn, environment }: EffectiveCase, directory: string): ReturnType<typeof execStartWords> {
  const at = (text: string): string => text.replaceAll('@', directory);
  const files = [unit, dropIn].map((text, i) => ({ path: `/u${i}`, text: at(text) }));
  return execStartWords(files, [{ path: `${directory}/env`, text: at(environment) }]);
}

/**
 * The effective configuration of a case by the reader, in the form of `comparable`.
 * @param more flags at the end of the command line
 */
export function effectiveLeaves(given: EffectiveCase, directory: string, more: readonly string[] = []): Readonly<Record<string, string>> {
  const options = { catalogue, minor: 36 };
  const own = more.map((word) => ({ word, source: 'test' }));
  const flags = placedFlags([...(wordsOf(given, directory) ?? []), ...own], options);
  const hasDirectory = flags.some(({ name }) => name === 'config-dir');
  const names = Object.keys(given.dropIns).filter((name) => name.endsWith('.conf'));
  const dropIns = names
    .toSorted((a, b) => (a < b ? -1 : 1))
    .map((name) => ({ path: `${directory}/dir/${name}`, text: given.dropIns[name] as string }));
  const configFile = { path: `${directory}/config.yaml`, text: given.config };
  const { layered } = layerRunningConfig({ ...options, configFile, dynamicConfig: null, dropIns: hasDirectory ? dropIns : [], flags });
  return comparable(encodeKubeletConfiguration(layered.config, options) as JsonObject, directory);
}

/** The leaves of a configuration, or of the kubelet's internal type, by lower-case path; without empty values. */
export function comparable(config: JsonObject, directory: string): Readonly<Record<string, string>> {
  const leaves: Record<string, string> = {};
  const walk = (value: Json, path: string): void => {
    if (isJsonObject(value)) for (const [key, inner] of Object.entries(value)) walk(inner, `${path}.${key}`);
    else {
      const name = path.toLowerCase().replace(/^\.resolverconfig$/, '.resolvconf');
      const text = JSON.stringify(sortedKeys(value)).replaceAll(directory, '@').toLowerCase();
      if (!['null', '""', '0', 'false', '[]', '"0s"', '"0"'].includes(text)) leaves[name] = text;
    }
  };
  walk(config, '');
  // The kubelet sets the certificate of its own; the header is not part of the internal type.
  return Object.fromEntries(
    Object.entries(leaves)
      .filter(([name]) => !/^\.(?:tls(?:cert|privatekey)file|apiversion|kind)$/.test(name))
      .sort(),
  );
}

function sortedKeys(value: Json): Json {
  if (Array.isArray(value)) return value.map(sortedKeys);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, inner]): [string, Json] => [key, sortedKeys(inner)])
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}
