import { quickAtFirst } from '../base/wait-until.ts';

/** A member of an etcd cluster, as etcd reports it. */
export interface EtcdMemberState {
  /** Empty until the member has started for the first time. */
  readonly name: string;
  /** Decimal. */
  readonly id: string;
  readonly peerURLs: readonly string[];
  readonly clientURLs: readonly string[];
  readonly isLearner: boolean;
}

/** Whether an etcd cluster has a leader; `reason` is etcd's own, or empty. */
export interface EtcdHealth {
  readonly healthy: boolean;
  readonly reason: string;
}

/**
 * The membership of an etcd cluster. Changes that etcd refuses only for now (a member that has just started, an election,
 * another learner) are repeated for up to two minutes.
 * Errors (AppError): ETCD_UNREACHABLE if no endpoint responds, ETCD_TLS_FAILED for certificate errors,
 * ETCD_REFUSED with the message of etcd.
 */
export interface EtcdCluster {
  members(): Promise<readonly EtcdMemberState[]>;
  /** Adds a learner: a member without a vote until it is promoted. */
  addLearner(peerURL: string): Promise<void>;
  /** Promotes a learner to a voting member, once it has caught up with the leader. */
  promote(id: string): Promise<void>;
  /** @param id of the member */
  remove(id: string): Promise<void>;
  health(): Promise<EtcdHealth>;
}

/** For waits for a new member: it starts within seconds, and its kubelet waits for it. */
export const ETCD_PAUSE = quickAtFirst({ quickMs: 100, forMs: 20_000, slowMs: 500 });

/** A change of the etcd members. `member` is the name, or the peer URL before the member's first start. */
export type EtcdChange =
  | { readonly kind: 'add-etcd-learner'; readonly member: string; readonly peerURL: string; readonly reason: string }
  | { readonly kind: 'promote-etcd-member'; readonly member: string; readonly id: string; readonly reason: string }
  | { readonly kind: 'remove-etcd-member'; readonly member: string; readonly id: string; readonly reason: string };

/** Applies one change of the members. Throws the errors of `EtcdCluster`. */
export async function applyEtcdChange(etcd: EtcdCluster, change: EtcdChange): Promise<void> {
  switch (change.kind) {
    case 'add-etcd-learner':
      return etcd.addLearner(change.peerURL);
    case 'promote-etcd-member':
      return etcd.promote(change.id);
    case 'remove-etcd-member':
      return etcd.remove(change.id);
  }
}
