import { trimTrailing } from '../base/text/trim-trailing.ts';
import { entryOf, parseSource, type SourceNode } from '../codec/source.ts';
import { encodeYaml } from '../codec/yaml-encode.ts';
import { type ConfigIdentity, formatIdentity } from '../kubelet/config-source.ts';

/** A file below `store/meta` of a kubelet up to 1.23. */
export type MetaFile =
  /** Empty: the local configuration. */
  | { readonly kind: 'local' }
  | { readonly kind: 'source'; readonly identity: ConfigIdentity }
  /** The kubelet leaves with exit code 1 when it reads this, each time it is started. */
  | { readonly kind: 'corrupt'; readonly why: string };

/** Where a kubelet keeps what it was assigned, below `--dynamic-config-dir`. */
export interface NativeStorePaths {
  readonly root: string;
  readonly meta: string;
  readonly assigned: string;
  readonly lastKnownGood: string;
  readonly checkpoints: string;
}

/** The paths of a store. The directory of the flag has `store` below it. */
export function nativeStorePaths(dynamicConfigDir: string): NativeStorePaths {
  const root = `${trimTrailing(dynamicConfigDir, '/')}/store`;
  const meta = `${root}/meta`;
  return { root, meta, assigned: `${meta}/assigned`, lastKnownGood: `${meta}/last-known-good`, checkpoints: `${root}/checkpoints` };
}

/** The directory of one version of a ConfigMap: a file a key. */
export function nativeCheckpointDirectory(dynamicConfigDir: string, { uid, resourceVersion }: ConfigIdentity): string {
  return `${nativeStorePaths(dynamicConfigDir).checkpoints}/${uid}/${resourceVersion}`;
}

/**
 * Reads `store/meta/assigned` or `store/meta/last-known-good` as the kubelet does: unknown members are passed over, `n` and `on` without quotes
 * are booleans and numbers are no text.
 */
export function parseMetaFile(text: string): MetaFile {
  if (text === '') return { kind: 'local' };
  const { documents, problems } = parseSource(text, 'meta');
  if (problems[0] !== undefined) return corrupt(problems[0].message);
  const root = documents[0]?.root ?? null;
  if (root?.kind !== 'map') return corrupt('no SerializedNodeConfigSource');
  for (const [member, expected] of HEADER) {
    const value = entryOf(root, member)?.value;
    if (value?.kind !== 'scalar' || value.text !== expected) return corrupt(`${member} is not ${expected}`);
  }
  const map = entryOf(entryOf(root, 'source')?.value ?? null, 'configMap')?.value ?? null;
  if (map?.kind !== 'map') return corrupt('source names no ConfigMap');
  const texts = MEMBERS.map((member) => [member, textOf(map, member)] as const);
  const wrong = texts.find(([, value]) => value === null);
  if (wrong !== undefined) return corrupt(`source.configMap.${wrong[0]} is no text`);
  return { kind: 'source', identity: Object.fromEntries(texts) as unknown as ConfigIdentity };
}

/** What the kubelet writes into such a file; empty for the local configuration. */
export function renderMetaFile(identity: ConfigIdentity | null): string {
  if (identity === null) return '';
  return encodeYaml({ ...Object.fromEntries(HEADER), source: formatIdentity(identity) });
}

/** Whether the parts of an identity that become parts of a path stay below the store. */
export function staysInStore({ uid, resourceVersion, kubeletConfigKey }: ConfigIdentity): boolean {
  return [uid, resourceVersion, kubeletConfigKey].every((part) => /^[-._a-zA-Z0-9]{1,255}$/.test(part) && !/^\.\.?$/.test(part));
}

const HEADER = [
  ['apiVersion', 'kubelet.config.k8s.io/v1beta1'],
  ['kind', 'SerializedNodeConfigSource'],
] as const;
const MEMBERS = ['namespace', 'name', 'uid', 'resourceVersion', 'kubeletConfigKey'] as const;

/** Empty where the member is absent, null where it is no text. */
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
