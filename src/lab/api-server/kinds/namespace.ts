import { label } from '../../../kube/name-rules.ts';
import { memberOf, textOf, withMetadata } from '../members.ts';
import type { KindRules } from './kind.ts';

/** Every Namespace has its own name as a label. */
export const namespaces: KindRules = {
  name: label,
  returnsDeleted: true,
  fields: (namespace) => ({ 'status.phase': textOf(memberOf(namespace, 'status'), 'phase') }),
  prepareCreate: (namespace) => ({
    ...withMetadata(namespace, { labels: { ...namespace.metadata.labels, 'kubernetes.io/metadata.name': namespace.metadata.name } }),
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  }),
};
