import type { ClusterChange, Warning } from '../../host/plan/change.ts';
import { unifiedDiff } from '../../host/plan/text-diff.ts';
import type { KubeObject } from '../../kube/object.ts';
import { describeRef, refOf } from '../../kube/object.ts';
import { sameYaml } from '../../kube/same-yaml.ts';
import { dataOf } from '../cluster-objects/cluster-info.ts';
import { isGenerated, unsignedAnnotations } from '../cluster-objects/kubelet-config-map.ts';

/**
 * The change from the existing ConfigMap of a component configuration to the desired one. A ConfigMap that
 * was written or edited by hand is kept with a warning that shows the difference, where kubeadm would
 * overwrite it. Labels and annotations of others are kept.
 * @param options `force`: replace a ConfigMap edited by hand too; `keptCode`: code of the warning
 */
export function diffComponentConfig(
  found: KubeObject | null,
  desired: KubeObject,
  { force, keptCode }: { readonly force: boolean; readonly keptCode: string },
): { readonly change: ClusterChange | null; readonly warnings: readonly Warning[] } {
  if (found === null) return { change: { kind: 'create-object', object: desired, reason: 'does not exist' }, warnings: [] };
  const [before, after] = [dataOf(found), dataOf(desired)];
  const differing = Object.keys(after).filter((key) => !sameYaml(before[key] ?? '', after[key] ?? ''));
  if (differing.length === 0) return { change: null, warnings: [] };
  if (!isGenerated(found) && !force)
    return { change: null, warnings: [{ code: keptCode, message: keptMessage(found, desired, differing) }] };
  const reason = isGenerated(found)
    ? 'the content differs, and was not edited by hand'
    : 'the content differs, and --force-upload was given';
  const annotations = { ...unsignedAnnotations(found), ...desired.metadata.annotations };
  const object = { ...found, metadata: { ...found.metadata, annotations }, data: { ...before, ...after } };
  return { change: { kind: 'update-object', object, before: found, reason }, warnings: [] };
}

function keptMessage(found: KubeObject, desired: KubeObject, keys: readonly string[]): string {
  const { namespace, name } = found.metadata;
  const diffs = keys.map((key) => {
    const label = Object.keys(dataOf(desired)).length === 1 ? `${namespace}/${name}` : `${namespace}/${name} ${key}`;
    return unifiedDiff(dataOf(found)[key] ?? '', dataOf(desired)[key] ?? '', {
      before: `${label} in the cluster`,
      after: `${label} as it would be uploaded`,
    });
  });
  return `${describeRef(refOf(found))} was written or edited by hand and is kept. To replace the ConfigMap, use --force-upload. Difference:\n${diffs.join('')}`;
}
