import { definePhase } from '../../host/phase.ts';
import type { KubeObject } from '../../kube/object.ts';
import { refOf } from '../../kube/object-ref.ts';

/** A bootstrap token for one run only; null: a token was given, or none is needed. */
export interface PassingTokenInput {
  readonly secret: KubeObject | null;
}

export const createPassingToken = definePhase<PassingTokenInput, KubeObject | null>({
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
export const deletePassingToken = definePhase<PassingTokenInput, KubeObject | null>({
  name: 'delete-token',
  short: 'Delete the temporary bootstrap token',
  tidiesUp: true,
  observe: async ({ cluster }, { secret }) => (secret === null ? null : ((await cluster?.get(refOf(secret))) ?? null)),
  plan: (found, { secret }) => {
    if (secret === null) return { changes: [], noop: 'no temporary token was created' };
    if (found === null) return { changes: [], deferred: 'deletes the token after the kubelet has its certificate' };
    return { changes: [{ kind: 'delete-object', ref: refOf(secret), reason: 'the token was created for this run only' }] };
  },
});
