import type { JsonObject } from '../../base/json.ts';
import type { SensitiveText } from '../../base/text/secret.ts';
import type { MarkNode } from '../../kube/node-marks.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';
import type { CertificateDescription, KubeconfigDescription } from '../../x509/describe-certificate.ts';
import type { PackageManager } from '../install/package-facts.ts';
import type { LargeFile } from './large-file.ts';

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

/** A change of a host, as data: printed, saved, applied and undone from the same value. `because` is a clause for people. */
export type HostChange =
  | {
      readonly kind: 'write-file';
      readonly path: string;
      readonly mode: number;
      readonly owner: string;
      readonly action: 'create' | 'update';
      readonly content: string | SensitiveText;
      readonly summary?: FileSummary;
      readonly before: FileBefore | null;
      readonly reason: string;
    }
  /** A program. Nothing good is at that path: its name tells what is in it. */
  | {
      readonly kind: 'put-file';
      readonly path: string;
      readonly mode: number;
      readonly owner: string;
      readonly content: LargeFile;
      readonly reason: string;
    }
  | { readonly kind: 'make-directory'; readonly path: string; readonly mode: number; readonly owner: string; readonly reason: string }
  | { readonly kind: 'remove-file'; readonly path: string; readonly before: FileBefore | null; readonly reason: string }
  | { readonly kind: 'move-file'; readonly path: string; readonly to: string; readonly reason: string }
  | { readonly kind: 'empty-directory'; readonly path: string; readonly reason: string }
  /** With all that is in it. */
  | { readonly kind: 'remove-directory'; readonly path: string; readonly reason: string }
  /** Left where something is in it. */
  | { readonly kind: 'remove-empty-directory'; readonly path: string; readonly reason: string }
  | { readonly kind: 'unmount-below'; readonly path: string; readonly flags: readonly string[]; readonly reason: string }
  /** `mayStay`: pods that cannot be removed are no failure. */
  | { readonly kind: 'remove-pods'; readonly criSocket: string; readonly mayStay?: true; readonly reason: string }
  /** The container runtime fetches an image; one that is there is fetched again. */
  | { readonly kind: 'pull-image'; readonly image: string; readonly criSocket: string; readonly reason: string }
  | { readonly kind: 'daemon-reload'; readonly reason: string }
  | { readonly kind: 'enable-unit'; readonly unit: string; readonly reason: string }
  | { readonly kind: 'restart-unit'; readonly unit: string; readonly reason: string }
  | { readonly kind: 'stop-unit'; readonly unit: string; readonly reason: string }
  /** Nothing is done where it runs. */
  | { readonly kind: 'start-unit'; readonly unit: string; readonly reason: string }
  /** `packages` as the package manager takes them (`kubelet=1.36.*`); `repositories` are those that keep back what is named in them. */
  | {
      readonly kind: 'install-packages';
      readonly manager: PackageManager;
      readonly packages: readonly string[];
      readonly repositories: readonly string[];
      readonly reason: string;
    }
  /** With apt. */
  | { readonly kind: 'hold-packages'; readonly packages: readonly string[]; readonly reason: string }
  /** The host itself fetches it, and takes it when it has this SHA-256. */
  | {
      readonly kind: 'download-file';
      readonly path: string;
      readonly url: string;
      readonly sha256: string;
      readonly mode: number;
      readonly reason: string;
    }
  | { readonly kind: 'extract-archive'; readonly path: string; readonly to: string; readonly reason: string }
  | { readonly kind: 'load-module'; readonly module: string; readonly reason: string }
  | { readonly kind: 'set-sysctl'; readonly name: string; readonly value: string; readonly reason: string }
  | { readonly kind: 'turn-off-swap'; readonly reason: string }
  /** Keeps what an earlier run changed and did not come to confirm. */
  | { readonly kind: 'confirm-commit'; readonly id: string; readonly reason: string };

/**
 * A change of the cluster. `before` is the object as it was read; its resourceVersion guards the update. `owner` is the object with which it goes: it may be one
 * that is only made before, so who it is (its uid) is asked when the change is made.
 */
export type ClusterChange =
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
} as const;

/** Tells cluster changes from host changes. */
export function isClusterChange(change: Change): change is ClusterChange {
  return Object.hasOwn(CLUSTER_KINDS, change.kind);
}
