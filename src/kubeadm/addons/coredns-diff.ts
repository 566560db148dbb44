import type { ClusterChange, Warning } from '../../host/plan/change.ts';
import { diffObject } from '../../host/plan/object-diff.ts';
import { diffRbac } from '../../host/plan/rbac-diff.ts';
import { unifiedDiff } from '../../host/plan/text-diff.ts';
import type { KubeObject } from '../../kube/object.ts';
import { dataOf } from '../cluster-objects/cluster-info.ts';
import { COREDNS_REPLICAS, COREFILE_KEY, type CorednsObjects, isOwnCorefile } from './coredns.ts';

/** The existing CoreDNS objects; null: does not exist. */
export type FoundCoredns = { readonly [K in keyof CorednsObjects]: KubeObject | null };

/**
 * The change from the existing CoreDNS to the desired one. A Corefile edited by hand is kept with a warning
 * that shows the difference; the number of replicas and the immutable clusterIP of the Service are kept too.
 * @param force replace an edited Corefile too
 */
export function diffCoredns(
  found: FoundCoredns,
  desired: CorednsObjects,
  { force }: { readonly force: boolean },
): { readonly changes: readonly ClusterChange[]; readonly warnings: readonly Warning[] } {
  const corefile = diffCorefile(found.configMap, desired.configMap, force);
  const service = diffService(found.service, desired.service);
  const changes = [
    corefile.change,
    ...diffRbac(found.clusterRole, desired.clusterRole),
    ...diffRbac(found.clusterRoleBinding, desired.clusterRoleBinding),
    diffObject(found.serviceAccount, desired.serviceAccount),
    diffObject(found.deployment, withReplicasOf(found.deployment, desired.deployment)),
    service.change,
  ].filter((change) => change !== null);
  return { changes, warnings: [...corefile.warnings, ...service.warnings] };
}

function diffCorefile(
  found: KubeObject | null,
  desired: KubeObject,
  force: boolean,
): { readonly change: ClusterChange | null; readonly warnings: readonly Warning[] } {
  const [before, after] = [found === null ? '' : (dataOf(found)[COREFILE_KEY] ?? ''), dataOf(desired)[COREFILE_KEY] ?? ''];
  if (found === null || before === '' || before === after || isOwnCorefile(before) || force)
    return { change: diffObject(found, desired), warnings: [] };
  const at = 'kube-system/coredns';
  const diff = unifiedDiff(before, after, { before: `${at} in the cluster`, after: `${at} as it would be written` });
  const message = `ConfigMap ${at}: the Corefile was edited and is kept. To replace the Corefile, use --force-upload. Difference:\n${diff}`;
  return { change: null, warnings: [{ code: 'COREFILE_KEPT', message }] };
}

/** A user or a controller may have scaled the Deployment. */
function withReplicasOf(found: KubeObject | null, desired: KubeObject): KubeObject {
  const [existing, ours] = [specOf(found), specOf(desired)];
  if (existing.replicas === undefined || ours.replicas !== COREDNS_REPLICAS) return desired;
  return { ...desired, spec: { ...ours, replicas: existing.replicas } } as KubeObject;
}

function diffService(found: KubeObject | null, desired: KubeObject): ReturnType<typeof diffCorefile> {
  const [existing, ours] = [specOf(found).clusterIP, specOf(desired).clusterIP];
  if (found === null || existing === ours) return { change: diffObject(found, desired), warnings: [] };
  const message = `Service kube-system/kube-dns is kept: its clusterIP is ${String(existing)} instead of ${String(ours)}, and a clusterIP is immutable. Set clusterDNS of the kubelets to ${String(existing)}, or delete the Service and rerun the command`;
  const kept = { ...desired, spec: { ...specOf(desired), clusterIP: existing } } as KubeObject;
  return { change: diffObject(found, kept), warnings: [{ code: 'DNS_ADDRESS_KEPT', message }] };
}

function specOf(object: KubeObject | null) {
  return (object?.spec ?? {}) as { readonly replicas?: number; readonly clusterIP?: string };
}
