import type { KubeObject } from '../../kube/object.ts';

/** Members of an etcd cluster are looked at and changed as objects: `create` announces one as a learner, `patch` promotes it, `delete` removes it. */
export const ETCD_MEMBER = { apiVersion: 'etcd.io/v3', kind: 'Member' } as const;

/** A member as etcd tells of it. */
export interface EtcdMemberState {
  /** Empty until it has started for the first time. */
  readonly name: string;
  /** Decimal. */
  readonly id: string;
  readonly peerURLs: readonly string[];
  readonly clientURLs: readonly string[];
  readonly isLearner: boolean;
}

/** The object that stands for a member. One that has not started goes by the URL its peers reach it at. */
export function etcdMemberObject({ name, id, peerURLs, clientURLs, isLearner }: EtcdMemberState): KubeObject {
  return {
    ...ETCD_MEMBER,
    metadata: { name: name === '' ? (peerURLs[0] ?? id) : name, ...(id === '' ? {} : { uid: id }) },
    spec: { started: name !== '', peerURLs, clientURLs, isLearner },
  };
}

/** The member an object stands for. */
export function etcdMemberOf({ metadata, spec }: KubeObject): EtcdMemberState {
  const { started, peerURLs, clientURLs, isLearner } = spec as unknown as Omit<EtcdMemberState, 'id' | 'name'> & {
    readonly started: boolean;
  };
  return { name: started ? metadata.name : '', id: metadata.uid ?? '', peerURLs, clientURLs, isLearner };
}
