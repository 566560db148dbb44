import { trimTrailing } from '../../base/text/trim-trailing.ts';
import { entryOf, parseSource, type SourceNode } from '../../codec/source.ts';
import type { Minor } from '../catalogue/catalogue.ts';

/** The last minor with dynamic configuration from a ConfigMap. */
export const LAST_DYNAMIC_MINOR: Minor = 23;

/** The checkpoint assigned to a kubelet. */
interface AssignedCheckpoint {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly key: string;
  /** e.g. `kube-system/my-config`. */
  readonly configMap: string;
}

/** The file in which a kubelet records its assignment. */
export function assignedFile(dynamicConfigDir: string): string {
  return `${trimTrailing(dynamicConfigDir, '/')}/store/meta/assigned`;
}

/** The file in which a kubelet records its last known good configuration, in the form of the assignment. */
export function lastKnownGoodFile(dynamicConfigDir: string): string {
  return `${trimTrailing(dynamicConfigDir, '/')}/store/meta/last-known-good`;
}

/** The payload file of a checkpoint. */
export function checkpointFile(dynamicConfigDir: string, { uid, resourceVersion, key }: AssignedCheckpoint): string {
  return `${trimTrailing(dynamicConfigDir, '/')}/store/checkpoints/${uid}/${resourceVersion}/${key}`;
}

/**
 * Parses `store/meta/assigned` of a kubelet up to 1.23.
 * @returns null if empty (the local configuration) or invalid
 */
export function parseAssigned(text: string): AssignedCheckpoint | null {
  const { documents, problems } = parseSource(text, 'assigned');
  const root = documents[0]?.root ?? null;
  const source = entryOf(entryOf(root, 'source')?.value ?? null, 'configMap')?.value ?? null;
  if (problems.length > 0 || source === null) return null;
  const member = (name: string): string => textOf(source, name);
  const [uid, resourceVersion, key] = [member('uid'), member('resourceVersion'), member('kubeletConfigKey')];
  // These values become parts of a path.
  if (![uid, resourceVersion, key].every((part) => /^[-._a-zA-Z0-9]+$/.test(part) && !/^\.\.?$/.test(part))) return null;
  return { uid, resourceVersion, key, configMap: `${member('namespace')}/${member('name')}` };
}

function textOf(node: SourceNode, name: string): string {
  const value = entryOf(node, name)?.value;
  return value?.kind === 'scalar' ? value.text : '';
}
