import type { JsonObject } from '../../base/json.ts';
import type { EtcdChange } from '../../kube/etcd-cluster.ts';
import type { MarkNode } from '../../kube/node-marks.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';
import { refOf } from '../../kube/object-ref.ts';
import type { CertificateDescription, KubeconfigDescription } from '../../x509/describe-certificate.ts';
import type { Operation, OperationOf } from './operation.ts';

/** What stood at a path before a change; null: nothing. */
export interface FileBefore {
  readonly content: string;
  readonly mode: number;
  readonly owner: string;
}

/** Shown in place of what a file holds: a certificate and a kubeconfig in words. Of a private key nothing is shown. */
export interface FileSummary {
  readonly certificate?: CertificateDescription;
  readonly kubeconfig?: KubeconfigDescription;
}

/** A change of a host: an operation, with its reason (a clause for people) and the state that it expects. Printed, saved, applied and undone as one value. */
export type HostChange =
  | (OperationOf<'write-file'> & Reason & Expected & { readonly action: 'create' | 'update'; readonly summary?: FileSummary })
  | (OperationOf<'remove-file'> & Reason & Expected)
  | WithReason<Exclude<Operation, NotPlanned | OperationOf<'write-file' | 'remove-file'>>>;

type Reason = { readonly reason: string };
type Expected = { readonly before: FileBefore | null };
type WithReason<O> = O extends Operation ? O & Reason : never;

/** Operations that the runner adds to those of a plan, and commands without a kind of their own. `confirm-commit` keeps the change of an earlier run. */
type NotPlanned = OperationOf<'run' | 'take-lock' | 'release-lock' | 'arm-revert' | 'check-commit' | 'revert-commit'>;

/**
 * A change of an object. `before` is the object as it was read; its resourceVersion guards the update. `owner` is the object with which it goes: it may be one
 * that is only made before, so who it is (its uid) is asked when the change is made.
 */
export type ObjectChange =
  | { readonly kind: 'create-object'; readonly object: KubeObject; readonly owner?: ObjectRef; readonly reason: string }
  | {
      readonly kind: 'update-object';
      readonly object: KubeObject;
      readonly owner?: ObjectRef;
      readonly before: KubeObject;
      readonly reason: string;
    }
  | {
      readonly kind: 'patch-object';
      readonly ref: ObjectRef;
      readonly patch: JsonObject;
      /** `status`; absent: the object itself. */
      readonly subresource?: string;
      readonly reason: string;
    }
  | MarkNode
  | { readonly kind: 'delete-object'; readonly ref: ObjectRef; readonly reason: string };

/** A change that is not made on the host of its phase: of an object of the API server, or of the members of etcd. */
export type ClusterChange = ObjectChange | EtcdChange;

export type Change = HostChange | ClusterChange;

/** Advice that stops nothing. `field` is the KubeletConfiguration field or flag it is about. */
export interface Warning {
  readonly code: string;
  readonly message: string;
  readonly field?: string;
}

/**
 * What a phase wants: changes; or nothing (`noop` says why); or nothing yet (`deferred` says what it waits for). Files staged into a directory
 * are changes with a deferred restart, so both may be there.
 */
export interface PhasePlan {
  readonly changes: readonly Change[];
  readonly noop?: string;
  readonly deferred?: string;
  readonly warnings?: readonly Warning[];
}

const CLUSTER_KINDS = {
  'create-object': true,
  'update-object': true,
  'patch-object': true,
  'mark-node': true,
  'delete-object': true,
  'add-etcd-learner': true,
  'promote-etcd-member': true,
  'remove-etcd-member': true,
} as const;

/** Tells cluster changes from host changes. */
export function isClusterChange(change: Change): change is ClusterChange {
  return Object.hasOwn(CLUSTER_KINDS, change.kind);
}

/** The object that a cluster change is about. A member of etcd is shown as one. */
export function changedRef(change: ClusterChange): ObjectRef {
  if ('member' in change) return { apiVersion: 'etcd.io/v3', kind: 'Member', name: change.member };
  return 'ref' in change ? change.ref : refOf(change.object);
}
