import type * as z from 'zod';
import { AppError, firstMessage } from '../../base/errors.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';
import { NAME_RULE, ROLLOUT_API_VERSION, ROLLOUT_KIND, type RolloutSpec, type RolloutStatus, rolloutSchema } from './schema.ts';

/** A KubeletConfigRollout. */
export interface Rollout {
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  readonly resourceVersion: string;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly isDeleted: boolean;
  readonly finalizers: readonly string[];
  readonly spec: RolloutSpec;
  readonly status: RolloutStatus;
}

export function rolloutRef(name: string): ObjectRef {
  return { apiVersion: ROLLOUT_API_VERSION, kind: ROLLOUT_KIND, name };
}

/**
 * Reads an object with the defaults of the API. A status that does not follow the schema is empty.
 * @returns the rollout, or each error as `spec.strategy.canary.count: message`
 */
export function readRollout(object: KubeObject): { readonly rollout: Rollout } | { readonly errors: readonly string[] } {
  const { metadata } = object;
  const spec = rolloutSchema.spec.safeParse(object.spec);
  const isLong = !NAME_RULE.holds(object);
  const errors = [...(isLong ? [`metadata.name: ${NAME_RULE.message}`] : []), ...(spec.error?.issues ?? []).map(issueText)];
  if (spec.data === undefined || isLong) return { errors };
  const finalizers = Array.isArray(metadata.finalizers) ? metadata.finalizers.filter((one) => typeof one === 'string') : [];
  return {
    rollout: {
      name: metadata.name,
      uid: metadata.uid ?? '',
      generation: Number(metadata.generation ?? 0),
      resourceVersion: metadata.resourceVersion ?? '',
      createdAt: metadata.creationTimestamp ?? '',
      isDeleted: metadata.deletionTimestamp !== undefined,
      finalizers,
      spec: spec.data,
      status: rolloutSchema.status.safeParse(object.status).data ?? {},
    },
  };
}

/** The CLUSTER_NO_SUCH_KIND of an API server without the CustomResourceDefinition, with the command that installs it; exit code 2. */
export function noRolloutDefinition(error: AppError): AppError {
  const hint =
    'Install the CustomResourceDefinition with the controller: kubeletadm controller install, or alone: kubeletadm controller crd | kubectl apply -f -';
  return new AppError({ code: error.code, message: firstMessage(error), hint }, { exitCode: 2, cause: error });
}

function issueText({ path, message }: z.core.$ZodIssue): string {
  return `${['spec', ...path].join('.')}: ${message}`;
}
