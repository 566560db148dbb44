import type { JsonObject } from '../../base/json.ts';
import type { EtcdChange } from '../../kube/etcd-cluster.ts';
import type { MarkNode } from '../../kube/node-marks.ts';
import { type KubeObject, type ObjectRef, refOf } from '../../kube/object.ts';
import type { CertificateDescription, KubeconfigDescription } from '../../x509/describe-certificate.ts';
import type { Operation, OperationOf } from '../operation/operation.ts';
import type { FieldChange, Impact } from './impact.ts';

/** Printed instead of the content: a description of a certificate or kubeconfig. Private keys have no description. */
export interface FileSummary {
  readonly certificate?: CertificateDescription;
  readonly kubeconfig?: KubeconfigDescription;
}

/**
 * A change of a host: an operation, its reason (a clause for messages) and the expected previous state. The
 * same value is printed, saved, applied and undone. `volatile`: a program of the host writes the file all the time, so
 * a plan with another previous content is the same plan.
 */
export type HostChange = {
  readonly reason: string;
  /** Effect on the pods of the host. Absent: no running kubelet is changed. */
  readonly impact?: Impact;
  /** Changed fields and flags of the running kubelet. */
  readonly fields?: readonly FieldChange[];
} & (
  | Exclude<Operation, { readonly kind: AddedByRunner | 'write-file' | 'remove-file' | 'put-file' | 'upload-file' }>
  /** `keep`: the file stays if a later change fails: its previous content is unknown, or the next run uses it. */
  | (OperationOf<'put-file' | 'upload-file'> & { readonly keep?: boolean | undefined })
  | (OperationOf<'write-file'> & Replacing & { readonly action: 'create' | 'update'; readonly summary?: FileSummary })
  | (OperationOf<'remove-file'> & Replacing & { readonly volatile?: true })
);

/** The file before the change; null: none. */
type Replacing = { readonly before: { readonly content: string; readonly mode: number; readonly owner: string } | null };

/** Operations that the runner adds to a plan. `confirm-commit` confirms the change of an earlier run. */
type AddedByRunner = 'append-journal' | 'run' | 'take-lock' | 'release-lock' | 'arm-revert' | 'check-commit' | 'revert-commit';

/**
 * `before` is the object as read; its resourceVersion guards the update. Another change may create the
 * `owner` of the owner reference, so its uid is read at apply time.
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
      /** Effect on the pods of the node whose kubelet reads the changed object. Absent: unknown, or no kubelet changes. */
      readonly impact?: Impact;
      /** Of that kubelet. Null: its running configuration is unknown. Absent: no kubelet changes. */
      readonly fields?: readonly FieldChange[] | null;
    }
  | MarkNode
  | { readonly kind: 'delete-object'; readonly ref: ObjectRef; readonly reason: string };

/** A change outside of the phase's host: of an API object, or of the etcd members. */
export type ClusterChange = ObjectChange | EtcdChange;

export type Change = HostChange | ClusterChange;

/** A warning that does not stop the run. `field` is the affected KubeletConfiguration field or flag. */
export interface Warning {
  readonly code: string;
  readonly message: string;
  readonly field?: string | undefined;
}

/**
 * Changes, or none (`noop` is the reason), or not yet known (`deferred` is the reason). Both changes and
 * `deferred`: files are staged into a directory and the restart is deferred.
 */
export interface PhasePlan {
  readonly changes: readonly Change[];
  readonly noop?: string;
  readonly deferred?: string;
  /** `noop` is not reported when the phase is applied, because `verify` reports it in detail. */
  readonly isReportedByVerify?: boolean;
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

export function isClusterChange(change: Change): change is ClusterChange {
  return Object.hasOwn(CLUSTER_KINDS, change.kind);
}

/** The object of a cluster change. An etcd member is shown as an object. */
export function changedRef(change: ClusterChange): ObjectRef {
  if ('member' in change) return { apiVersion: 'etcd.io/v3', kind: 'Member', name: change.member };
  return 'ref' in change ? change.ref : refOf(change.object);
}
