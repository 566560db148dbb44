import { definePhase } from '../../host/phase.ts';
import { diffRbac } from '../../host/plan/rbac-diff.ts';
import type { ClusterServer } from '../../kube/kubeconfig-render.ts';
import { type KubeObject, refOf } from '../../kube/object.ts';
import { bootstrapRbac } from '../cluster-objects/bootstrap-rbac.ts';
import { clusterInfoMap, clusterInfoRbac, diffClusterInfo } from '../cluster-objects/cluster-info.ts';
import { diffToken } from '../token/token-secret.ts';
import { findObjects } from './find-objects.ts';

export interface DesiredToken {
  readonly secret: KubeObject;
  /** Its expiration was declared as a time, not as a TTL. */
  readonly hasAbsoluteExpiry: boolean;
}

export interface BootstrapTokenInput {
  /** Tokens to create or update; existing tokens that are used unchanged are not included. */
  readonly tokens: readonly DesiredToken[];
  /** Content of cluster-info; null when it is not known. */
  readonly apiServer: ClusterServer | null;
  /** Its address was declared, so it replaces an existing one. */
  readonly replaceAddress: boolean;
  readonly now: Date;
}

const JOINING = bootstrapRbac();
const RBAC = [...JOINING, ...clusterInfoRbac()];

interface Found {
  readonly tokens: readonly (KubeObject | null)[];
  readonly rbac: readonly (KubeObject | null)[];
  readonly clusterInfo: KubeObject | null;
}

/**
 * Creates the bootstrap tokens, the RBAC rules for joining nodes, and cluster-info. kubeadm 1.36: init phase
 * bootstrap-token.
 */
export const bootstrapToken = definePhase<BootstrapTokenInput, Found>({
  name: 'bootstrap-token',
  short: 'Create bootstrap tokens, cluster-info and the RBAC rules for joining nodes',
  observe: async ({ cluster }, { tokens, apiServer }) => {
    const secrets = tokens.map(({ secret }) => secret);
    const map = clusterInfoMap(apiServer ?? { server: '', caPem: '' });
    const [foundTokens, rbac, [clusterInfo = null]] = await Promise.all([
      findObjects(cluster, secrets),
      findObjects(cluster, RBAC),
      findObjects(cluster, [map]),
    ]);
    return { tokens: foundTokens, rbac, clusterInfo };
  },
  plan: (found, { tokens, apiServer, replaceAddress, now }) => {
    const info = apiServer === null ? null : diffClusterInfo(found.clusterInfo, clusterInfoMap(apiServer), replaceAddress);
    const rbac = RBAC.map((object, i) => diffRbac(found.rbac[i] ?? null, object));
    const changes = [
      ...tokens.map(({ secret, hasAbsoluteExpiry }, i) => diffToken(found.tokens[i] ?? null, secret, { hasAbsoluteExpiry, now })),
      ...rbac.slice(0, JOINING.length).flat(),
      info?.change ?? null,
      ...rbac.slice(JOINING.length).flat(),
    ].filter((change) => change !== null);
    const deferred = apiServer === null ? { deferred: 'cluster-info needs the address and the CA of the API server (--kubeconfig)' } : {};
    const noop =
      changes.length > 0 || apiServer === null
        ? {}
        : { noop: 'bootstrap tokens, cluster-info and the RBAC rules for joining nodes are unchanged' };
    return { changes, warnings: info?.warnings ?? [], ...deferred, ...noop };
  },
});

/**
 * Restores the RBAC rules for joining nodes. Tokens and cluster-info are kept: an administrator may have deleted them.
 * kubeadm 1.36: upgrade apply phase bootstrap-token
 */
export const bootstrapTokenRbac = definePhase<null, readonly (KubeObject | null)[]>({
  name: 'bootstrap-token',
  short: 'Create the RBAC rules for joining nodes',
  observe: ({ cluster }) => findObjects(cluster, RBAC),
  plan: (found) => {
    const changes = RBAC.flatMap((object, i) => diffRbac(found[i] ?? null, object));
    return { changes, ...(changes.length > 0 ? {} : { noop: 'the RBAC rules for joining nodes are unchanged' }) };
  },
});

/** A bootstrap token for one run only; null: a token was given, or none is needed. */
interface TemporaryTokenInput {
  readonly secret: KubeObject | null;
}

export const createTemporaryToken = definePhase<TemporaryTokenInput, KubeObject | null>({
  name: 'bootstrap-token',
  short: 'Create a temporary bootstrap token',
  observe: async ({ cluster }, { secret }) => (secret === null ? null : ((await cluster?.get(refOf(secret))) ?? null)),
  plan: (found, { secret }) => {
    if (secret === null) return { changes: [], noop: 'no temporary token is needed' };
    if (found !== null) return { changes: [], noop: 'the token exists' };
    return { changes: [{ kind: 'create-object', object: secret, reason: 'for the TLS bootstrap of the kubelet' }] };
  },
});

/** Deletes the token, also after a failure. */
export const deleteTemporaryToken = definePhase<TemporaryTokenInput, KubeObject | null>({
  name: 'delete-token',
  short: 'Delete the temporary bootstrap token',
  runsAfterFailure: true,
  observe: async ({ cluster }, { secret }) => (secret === null ? null : ((await cluster?.get(refOf(secret))) ?? null)),
  plan: (found, { secret }) => {
    if (secret === null) return { changes: [], noop: 'no temporary token was created' };
    if (found === null) return { changes: [], deferred: 'deletes the token after the kubelet has its certificate' };
    return { changes: [{ kind: 'delete-object', ref: refOf(secret), reason: 'the token was created for this run only' }] };
  },
});
