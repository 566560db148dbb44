import { definePhase } from '../../host/phase.ts';
import type { PhasePlan, Warning } from '../../host/plan/change.ts';
import { diffObject } from '../../host/plan/object-diff.ts';
import { diffRbac } from '../../host/plan/rbac-diff.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { CorednsObjects } from '../addons/coredns.ts';
import { diffCoredns, type FoundCoredns } from '../addons/coredns-diff.ts';
import type { KubeProxyObjects } from '../addons/kube-proxy.ts';
import { diffComponentConfig } from '../upgrade/component-config-diff.ts';
import { findObjects } from './find-objects.ts';

interface AddonInput<Objects> {
  /** Null: the addon is disabled in the configuration. */
  readonly objects: Objects | null;
  /** Replace a configuration that was edited by hand. */
  readonly forceUpload: boolean;
}

export type AddonCorednsInput = AddonInput<CorednsObjects>;

export interface AddonKubeProxyInput extends AddonInput<KubeProxyObjects> {
  readonly warnings: readonly Warning[];
}

/** Deploys the cluster DNS. kubeadm 1.36: init phase addon/coredns. */
export const addonCoredns = definePhase<AddonCorednsInput, FoundCoredns | null>({
  name: 'addon/coredns',
  short: 'Deploy CoreDNS',
  observe: async ({ cluster }, { objects }) => {
    if (objects === null) return null;
    const names = Object.keys(objects) as (keyof CorednsObjects)[];
    const found = await findObjects(cluster, Object.values(objects));
    return Object.fromEntries(names.map((name, i) => [name, found[i] ?? null])) as FoundCoredns;
  },
  plan: (found, { objects, forceUpload }) => {
    if (objects === null || found === null) return { changes: [], noop: 'skipped: dns.disabled is set' };
    return planOf(diffCoredns(found, objects, { force: forceUpload }), 'CoreDNS is unchanged');
  },
});

/** Deploys kube-proxy on all nodes. kubeadm 1.36: init phase addon/kube-proxy. */
export const addonKubeProxy = definePhase<AddonKubeProxyInput, readonly (KubeObject | null)[] | null>({
  name: 'addon/kube-proxy',
  short: 'Deploy kube-proxy',
  observe: async ({ cluster }, { objects }) => (objects === null ? null : findObjects(cluster, listOf(objects))),
  plan: (found, { objects, warnings, forceUpload }) => {
    if (objects === null || found === null) return { changes: [], noop: 'skipped: proxy.disabled is set' };
    const [configMap = null, daemonSet = null, serviceAccount = null, ...rbac] = found;
    const config = diffComponentConfig(configMap, objects.configMap, { force: forceUpload, keptCode: 'KUBE_PROXY_CONFIG_KEPT' });
    const changes = [
      config.change,
      diffObject(daemonSet, objects.daemonSet),
      diffObject(serviceAccount, objects.serviceAccount),
      ...objects.rbac.flatMap((object, i) => diffRbac(rbac[i] ?? null, object)),
    ].filter((change) => change !== null);
    return planOf({ changes, warnings: [...warnings, ...config.warnings] }, 'kube-proxy is unchanged');
  },
});

function listOf({ configMap, daemonSet, serviceAccount, rbac }: KubeProxyObjects): readonly KubeObject[] {
  return [configMap, daemonSet, serviceAccount, ...rbac];
}

function planOf({ changes, warnings }: Required<Pick<PhasePlan, 'changes' | 'warnings'>>, current: string): PhasePlan {
  if (changes.length > 0) return { changes, warnings };
  return { changes, warnings, noop: warnings.length > 0 ? 'the existing objects are kept' : current };
}
