import { trimTrailing } from '../../base/text/trim-trailing.ts';
import { entryOf, parseSource, type SourceNode } from '../../codec/source.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import { type ConfigIdentity, formatIdentity } from '../../kubelet/layers/config-source.ts';

/** A file below `store/meta` of a kubelet up to 1.23. */
export type MetaFile =
  /** An empty file: the local configuration. */
  | { readonly kind: 'local' }
  | { readonly kind: 'source'; readonly identity: ConfigIdentity }
  /** The kubelet exits with code 1 at every start. */
  | { readonly kind: 'corrupt'; readonly why: string };

/** Paths of a kubelet's configuration store below `--dynamic-config-dir`. */
interface NativeStorePaths {
  readonly root: string;
  readonly meta: string;
  readonly assigned: string;
  readonly lastKnownGood: string;
  readonly checkpoints: string;
}

/** The paths of a store. Its root is `store` below the directory of the flag. */
export function nativeStorePaths(dynamicConfigDir: string): NativeStorePaths {
  const root = `${trimTrailing(dynamicConfigDir, '/')}/store`;
  const meta = `${root}/meta`;
  return { root, meta, assigned: `${meta}/assigned`, lastKnownGood: `${meta}/last-known-good`, checkpoints: `${root}/checkpoints` };
}

/** The directory of one version of a ConfigMap; one file per key. */
export function nativeCheckpointDirectory(dynamicConfigDir: string, { uid, resourceVersion }: ConfigIdentity): string {
  return `${nativeStorePaths(dynamicConfigDir).checkpoints}/${uid}/${resourceVersion}`;
}

/**
 * Reads `store/meta/assigned` or `store/meta/last-known-good` as the kubelet does: unknown members are
 * ignored, unquoted `n` and `on` are booleans, and numbers are not strings.
 */
export function parseMetaFile(text: string): MetaFile {
  if (text === '') return { kind: 'local' };
  const { documents, problems } = parseSource(text, 'meta');
  if (problems[0] !== undefined) return corrupt(problems[0].message);
  const root = documents[0]?.root ?? null;
  if (root?.kind !== 'map') return corrupt('not a SerializedNodeConfigSource');
  for (const [member, expected] of HEADER) {
    const value = entryOf(root, member)?.value;
    if (value?.kind !== 'scalar' || value.text !== expected) return corrupt(`${member} is not ${expected}`);
  }
  const map = entryOf(entryOf(root, 'source')?.value ?? null, 'configMap')?.value ?? null;
  if (map?.kind !== 'map') return corrupt('source.configMap is missing');
  const texts = MEMBERS.map((member) => [member, textOf(map, member)] as const);
  const wrong = texts.find(([, value]) => value === null);
  if (wrong !== undefined) return corrupt(`source.configMap.${wrong[0]} is not a string`);
  return { kind: 'source', identity: Object.fromEntries(texts) as unknown as ConfigIdentity };
}

/** Renders such a file; empty for the local configuration. */
export function renderMetaFile(identity: ConfigIdentity | null): string {
  if (identity === null) return '';
  return encodeYaml({ ...Object.fromEntries(HEADER), source: formatIdentity(identity) });
}

/** Whether the parts of an identity that are used in a path stay below the store. */
export function hasSafeStorePath({ uid, resourceVersion, kubeletConfigKey }: ConfigIdentity): boolean {
  return [uid, resourceVersion, kubeletConfigKey].every((part) => /^[-._a-zA-Z0-9]{1,255}$/.test(part) && !/^\.\.?$/.test(part));
}

const HEADER = [
  ['apiVersion', 'kubelet.config.k8s.io/v1beta1'],
  ['kind', 'SerializedNodeConfigSource'],
] as const;
const MEMBERS = ['namespace', 'name', 'uid', 'resourceVersion', 'kubeletConfigKey'] as const;

/** Empty if the member is absent, null if it is not a string. */
function textOf(map: SourceNode, member: string): string | null {
  const value = entryOf(map, member)?.value;
  if (value === undefined) return '';
  if (value.kind !== 'scalar') return null;
  if (value.scalar.type === 'null') return '';
  return value.scalar.type === 'string' ? value.text : null;
}

function corrupt(why: string): MetaFile {
  return { kind: 'corrupt', why };
}
