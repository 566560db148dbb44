import { valueAt } from '../documents/values.ts';
import { beyondBounds } from './dangers.ts';
import type { Rule } from './rule.ts';

/** Values that the kubelet accepts, but that are rarely intended: a change to them has the impact `unsafe`. */
export const BOUND_RULES: readonly Rule[] = [
  {
    id: 'KUBELET_UNUSUAL_VALUE',
    check: ({ given, catalogue }) =>
      [...catalogue.fields.values()].flatMap(({ path, bounds }) => {
        const message = bounds === undefined ? null : beyondBounds(bounds, valueAt(given, path));
        return message === null ? [] : [{ path, message }];
      }),
  },
];
