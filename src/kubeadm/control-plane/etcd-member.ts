import type { KubeObject } from '../../kube/object.ts';

/**
 * Members of an etcd cluster as objects: `create` adds a learner, `patch` promotes it, `delete` removes it.
 */
export const ETCD_MEMBER = { apiVersion: 'etcd.io/v3', kind: 'Member' } as const;

/** A member as reported by etcd. */
export interface EtcdMemberState {
  /** Empty until the first start. */
  readonly name: string;
  /** Decimal. */
  readonly id: string;
  readonly peerURLs: readonly string[];
  readonly clientURLs: readonly string[];
  readonly isLearner: boolean;
}

/** The object of a member. A member that has not started is named by its peer URL. */
export function etcdMemberObject({ name, id, peerURLs, clientURLs, isLearner }: EtcdMemberState): KubeObject {
  return {
    ...ETCD_MEMBER,
    metadata: { name: name === '' ? (peerURLs[0] ?? id) : name, ...(id === '' ? {} : { uid: id }) },
    spec: { started: name !== '', peerURLs, clientURLs, isLearner },
  };
}

/** The member of an object. */
export function etcdMemberOf({ metadata, spec }: KubeObject): EtcdMemberState {
  const { started, peerURLs, clientURLs, isLearner } = spec as unknown as Omit<EtcdMemberState, 'id' | 'name'> & {
    readonly started: boolean;
  };
  return { name: started ? metadata.name : '', id: metadata.uid ?? '', peerURLs, clientURLs, isLearner };
}
