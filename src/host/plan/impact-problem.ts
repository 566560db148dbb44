import type { Problem } from '../../base/errors.ts';
import { type HostChange, isClusterChange } from './change.ts';
import { type HostPlan, impactOfPlan } from './document.ts';
import { exceeds, formatFieldChange, formatImpact, type Impact } from './impact.ts';

const SHOWN = 5;

/**
 * The problem of a plan with changes above the permitted class; null: permitted.
 * @param plan.origins the source of each field, which the message names. @param allowed absent: every impact
 *   is permitted
 */
export function impactNotAllowed(
  { name, phases, origins }: Pick<HostPlan, 'name' | 'phases'> & { readonly origins?: HostPlan['origins'] | undefined },
  allowed: Impact | undefined,
): Problem | null {
  const highest = impactOfPlan({ phases });
  if (allowed === undefined || highest === null || !exceeds(highest, allowed)) return null;
  const above = phases
    .flatMap(({ plan }) => plan.changes)
    .flatMap((change) => (isClusterChange(change) ? [] : namesAbove(change, allowed, origins)));
  const more = above.length > SHOWN ? `, and ${above.length - SHOWN} more` : '';
  return {
    host: name,
    code: 'IMPACT_NOT_ALLOWED',
    message: `the change has the impact ${highest}, but --allow permits at most ${allowed}: ${above.slice(0, SHOWN).join(', ')}${more}`,
    hint: `Check the plan, then pass --allow ${highest}`,
  };
}

/** The fields above the permitted class; a change without fields is named as a whole. */
function namesAbove(change: HostChange, allowed: Impact, origins: HostPlan['origins']): readonly string[] {
  if (!exceeds(change.impact ?? null, allowed)) return [];
  const fields = change.fields ?? [];
  if (fields.length > 0)
    return fields
      .filter(({ impact }) => exceeds(impact, allowed))
      .map((field) => {
        const origin = 'path' in change ? origins?.[change.path]?.[field.field] : undefined;
        return `${formatFieldChange(field)} (${formatImpact(field)}${origin === undefined ? '' : `; ${origin}`})`;
      });
  const subject = 'path' in change ? change.path : 'unit' in change ? change.unit : 'packages' in change ? change.packages.join(' ') : '';
  return [`${change.kind} ${subject} (${change.impact})`];
}
