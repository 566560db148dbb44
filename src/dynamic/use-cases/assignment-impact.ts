import { type JsonObject, jsonEqual } from '../../base/json.ts';
import type { Reporter } from '../../base/reporter.ts';
import { type FieldChange, formatFieldChange, formatImpact, highestImpact } from '../../host/plan/impact.ts';
import type { AssignmentPatch } from '../workflows/assign-config.ts';
import type { CheckedRisks } from './check-pod-risks.ts';

/**
 * An assignment with its effect on the kubelet of the node.
 * @param change null: the node has the assignment already
 * @param fields the changed fields; null: unknown; undefined: the kubelet does not change, or the assignment is removed
 */
export function withFields(change: AssignmentPatch | null, fields: readonly FieldChange[] | null | undefined): AssignmentPatch | null {
  if (change === null || fields === undefined) return change;
  if (fields === null) return { ...change, fields };
  // A kubelet is restarted with every new configuration.
  return { ...change, fields, impact: highestImpact(fields.map(({ impact }) => impact)) ?? 'safe' };
}

/** A field that changes on one or several nodes. */
interface FieldOfNodes {
  readonly change: FieldChange;
  readonly nodes: readonly string[];
  /** All nodes have the same values. */
  readonly isSame: boolean;
}

/** Reports the changed fields of all nodes with their impact, one event for each field, then the highest impact. */
export function reportImpact(fields: CheckedRisks['fields'], reporter: Reporter): void {
  if (fields.size === 0) return;
  const report = (message: string, data: JsonObject): void => reporter.report({ level: 'info', code: 'DYNAMIC_IMPACT', message, data });
  const groups = groupByField(fields);
  for (const { change, nodes, isSame } of groups) {
    const { field, impact, before, after } = change;
    const what = isSame ? formatFieldChange(change) : `${field}: values differ by node`;
    const values = isSame ? { before, after } : {};
    report(`${what} (${formatImpact(change)})${fields.size === 1 ? '' : ` on ${count(nodes.length)}`}`, {
      field,
      impact,
      nodes: [...nodes],
      ...values,
    });
  }
  const highest = highestImpact(groups.map(({ change }) => change.impact));
  if (highest !== null) report(`highest impact: ${highest}`, { highestImpact: highest });
  const unknown = [...fields].flatMap(([name, changed]) => (changed === null ? [name] : []));
  const shown = `${unknown.slice(0, SHOWN).join(', ')}${unknown.length > SHOWN ? ` and ${unknown.length - SHOWN} more` : ''}`;
  if (unknown.length > 0)
    report(`impact unknown for ${shown}, because the running configuration cannot be read`, { impact: null, nodes: unknown });
}

/** Number of nodes with unknown impact that are named. */
const SHOWN = 5;

function groupByField(fields: CheckedRisks['fields']): readonly FieldOfNodes[] {
  const groups = new Map<string, FieldOfNodes>();
  for (const [node, changes] of fields)
    for (const change of changes ?? []) {
      const { field, before, after } = change;
      const key = `${field} ${change.impact}`;
      const group = groups.get(key) ?? { change, nodes: [], isSame: true };
      const isSame = group.isSame && jsonEqual(group.change.before, before) && jsonEqual(group.change.after, after);
      groups.set(key, { ...group, nodes: [...group.nodes, node], isSame });
    }
  return [...groups.values()].sort((a, b) => (a.change.field < b.change.field ? -1 : 1));
}

function count(nodes: number): string {
  return nodes === 1 ? '1 node' : `${nodes} nodes`;
}
