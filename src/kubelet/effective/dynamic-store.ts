import { trimTrailing } from '../../base/text/trim-trailing.ts';
import { entryOf, parseSource } from '../../codec/source.ts';
import type { Minor } from '../catalogue/catalogue.ts';

/** The last minor with dynamic configuration from a ConfigMap. */
export const LAST_DYNAMIC_MINOR: Minor = 23;

/** The file in which a kubelet records its assignment. */
export function assignedFile(dynamicConfigDir: string): string {
  return `${trimTrailing(dynamicConfigDir, '/')}/store/meta/assigned`;
}

/** The file in which a kubelet records its last known good configuration, in the form of the assignment. */
export function lastKnownGoodFile(dynamicConfigDir: string): string {
  return `${trimTrailing(dynamicConfigDir, '/')}/store/meta/last-known-good`;
}

/** The payload file of a checkpoint. */
export function checkpointFile(
  dynamicConfigDir: string,
  { uid, resourceVersion, key }: NonNullable<ReturnType<typeof parseAssigned>>,
): string {
  return `${trimTrailing(dynamicConfigDir, '/')}/store/checkpoints/${uid}/${resourceVersion}/${key}`;
}

/**
 * Parses `store/meta/assigned` of a kubelet up to 1.23.
 * @returns the checkpoint assigned to the kubelet, with the ConfigMap `NAMESPACE/NAME`; null if empty (the local
 *   configuration) or invalid
 */
export function parseAssigned(text: string) {
  const { documents, problems } = parseSource(text, 'assigned');
  const root = documents[0]?.root ?? null;
  const source = entryOf(entryOf(root, 'source')?.value ?? null, 'configMap')?.value ?? null;
  if (problems.length > 0 || source === null) return null;
  const member = (name: string): string => {
    const value = entryOf(source, name)?.value;
    return value?.kind === 'scalar' ? value.text : '';
  };
  const [uid, resourceVersion, key] = [member('uid'), member('resourceVersion'), member('kubeletConfigKey')];
  // These values become parts of a path.
  if (![uid, resourceVersion, key].every((part) => /^[-._a-zA-Z0-9]+$/.test(part) && !/^\.\.?$/.test(part))) return null;
  return { uid, resourceVersion, key, configMap: `${member('namespace')}/${member('name')}` };
}
