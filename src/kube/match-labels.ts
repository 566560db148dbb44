import { isJsonObject, type JsonObject } from '../base/json.ts';
import type { Labels } from './label-selector.ts';

/**
 * Whether labels match a LabelSelector of an object (`matchLabels`, `matchExpressions`); an empty selector matches all.
 * An unknown operator matches nothing, as for the disruption controller.
 * @see k8s.io/apimachinery pkg/apis/meta/v1 LabelSelectorAsSelector (1.36)
 */
export function matchesLabels(
  { matchLabels, matchExpressions }: { readonly matchLabels?: unknown; readonly matchExpressions?: unknown },
  labels: Labels,
): boolean {
  const equal = Object.entries(isJsonObject(matchLabels) ? matchLabels : {});
  return equal.every(([key, value]) => labels[key] === value) && matchesExpressions(matchExpressions, labels);
}

/**
 * Whether values match all requirements of a list (`key`, `operator`, `values`), also those of node selectors (Gt, Lt).
 * @param expressions absent: no requirement
 */
export function matchesExpressions(expressions: unknown, labels: Labels): boolean {
  return (Array.isArray(expressions) ? expressions.filter(isJsonObject) : []).every((one) => matchesExpression(one, labels));
}

function matchesExpression({ key, operator, values }: JsonObject, labels: Labels): boolean {
  const own = Object.hasOwn(labels, String(key)) ? labels[String(key)] : undefined;
  const listed: readonly unknown[] = Array.isArray(values) ? values : [];
  switch (operator) {
    case 'In':
      return own !== undefined && listed.includes(own);
    case 'NotIn':
      return own === undefined || !listed.includes(own);
    case 'Exists':
      return own !== undefined;
    case 'DoesNotExist':
      return own === undefined;
    case 'Gt':
      return own !== undefined && Number(own) > Number(listed[0]);
    case 'Lt':
      return own !== undefined && Number(own) < Number(listed[0]);
    default:
      return false;
  }
}
