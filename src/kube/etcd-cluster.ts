import { type AppError, isAppError } from '../base/errors.ts';
import { quickAtFirst, type WaitContext } from '../base/wait-until.ts';

export interface EtcdMemberState {
  /** Empty until the member has started for the first time. */
  readonly name: string;
  readonly id: string;
  readonly peerURLs: readonly string[];
  readonly clientURLs: readonly string[];
  readonly isLearner: boolean;
}

/** Progress and abort signal of the wait for a change of the members. */
export type EtcdWait = Omit<WaitContext, 'clock'>;

/**
 * The membership of an etcd cluster. Changes are repeated until they are made, or for `timeouts.etcdAPICall`. This time starts
 * again whenever another host has joined: etcd has one learner at a time.
 * Errors (AppError): ETCD_UNREACHABLE if no endpoint responds, ETCD_TLS_FAILED for certificate errors,
 * ETCD_DENIED if etcd does not permit or accept the request at any time, else ETCD_REFUSED with the message of etcd.
 */
export interface EtcdCluster {
  members(): Promise<readonly EtcdMemberState[]>;
  /** Adds a learner: a member without a vote until it is promoted. */
  addLearner(peerURL: string, wait?: EtcdWait): Promise<void>;
  /** Promotes a learner to a voting member, once it has caught up with the leader. */
  promote(id: string, wait?: EtcdWait): Promise<void>;
  remove(id: string, wait?: EtcdWait): Promise<void>;
  /** Whether the cluster has a leader; `reason` is etcd's own, or empty. */
  health(): Promise<{ readonly healthy: boolean; readonly reason: string }>;
  /** The version of the member that answers, e.g. 3.6.8. */
  version(): Promise<string>;
}

/** kubeadm 1.36: the default of timeouts.etcdAPICall. */
export const ETCD_API_CALL_MS = 120_000;

/** For waits for a new member: it starts within seconds, and its kubelet waits for it. */
export const ETCD_PAUSE = quickAtFirst({ quickMs: 100, forMs: 20_000, slowMs: 500 });

/** A new member triggers a leader election, but wrong certificates stay wrong, and denied requests denied. */
export function isTransientEtcdError(error: unknown): error is AppError {
  return isAppError(error) && error.code !== 'ETCD_TLS_FAILED' && error.code !== 'ETCD_DENIED';
}

/** A change of the etcd members. `member` is the name, or the peer URL before the member's first start. */
export type EtcdChange =
  | { readonly kind: 'add-etcd-learner'; readonly member: string; readonly peerURL: string; readonly reason: string }
  | { readonly kind: 'promote-etcd-member'; readonly member: string; readonly id: string; readonly reason: string }
  | { readonly kind: 'remove-etcd-member'; readonly member: string; readonly id: string; readonly reason: string };

/** Applies one change of the members. Throws the errors of `EtcdCluster`. */
export async function applyEtcdChange(etcd: EtcdCluster, change: EtcdChange, wait: EtcdWait): Promise<void> {
  switch (change.kind) {
    case 'add-etcd-learner':
      return etcd.addLearner(change.peerURL, wait);
    case 'promote-etcd-member':
      return etcd.promote(change.id, wait);
    case 'remove-etcd-member':
      return etcd.remove(change.id, wait);
  }
}
