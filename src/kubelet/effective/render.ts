import { joinLines } from '../../base/text/styled.ts';
import { renderTable } from '../../base/text/table.ts';
import { inlineValue } from '../../codec/inline-value.ts';
import { formatMinor } from '../catalogue/catalogue.ts';
import type { ConfigDiff, ConfigSide, FieldDifference, SideValue } from '../diff/diff-configs.ts';
import { masked } from './field-changes.ts';
import type { LayerValue, NodeExplanation } from './node-explanation.ts';

/** Renders an explanation as a table; `wide` also shows overridden values and flags without a field. */
export function renderNodeExplanation(explanation: NodeExplanation, wide: boolean): string {
  const { node, kubernetesVersion, fields, flags, disagreements } = explanation;
  const rows = fields.flatMap((field) => [
    [field.path, inlineValue(field.value), fromText(field)],
    ...(wide ? field.lost.map((word) => ['', inlineValue(word.value), `overridden: ${fromText(word)}`]) : []),
  ]);
  const others = flags.filter(({ field }) => field === null);
  return joinLines([
    `${node}: kubelet ${kubernetesVersion}${stateText(explanation)}`,
    ...sourceLines(explanation),
    ...disagreements.map(({ message }) => `! ${message}`),
    '',
    ...renderTable([['FIELD', 'VALUE', 'SOURCE'], ...rows]),
    ...(wide && others.length > 0
      ? [
          '',
          ...renderTable([
            ['FLAG', 'VALUE', 'SOURCE'],
            ...others.map(({ name, value, source }) => [`--${name}`, inlineValue(value), source]),
          ]),
        ]
      : []),
  ]);
}

function stateText({ process: running, health }: NodeExplanation): string {
  if (running === null) return health === null ? '' : `, not running (${health})`;
  const since = running.startedAt === null ? '' : ` since ${running.startedAt}`;
  return `, running as process ${running.pid}${since}${health === null || health === 'ok' ? '' : `, health: ${health}`}`;
}

/** Empty: the configuration file, or unknown because no host was inspected; the fields show as much. */
function sourceLines({ source, process: running }: NodeExplanation): readonly string[] {
  if (source === null || source.kind === 'file') return [];
  if (source.kind === 'unknown') return running === null ? [] : [`configuration: unknown: ${source.why}`];
  const { namespace, name, kubeletConfigKey } = source.source;
  const at = source.assignedAt === null ? '' : `, assigned at ${source.assignedAt}`;
  return [`configuration: ConfigMap ${namespace}/${name} (key ${kubeletConfigKey})${at}`];
}

function fromText({ layer, source }: LayerValue): string {
  return `${layer}: ${source}`;
}

/** Renders a comparison as a table with the highest impact below. */
export function renderDiff({ differences, worst }: ConfigDiff, a: ConfigSide, b: ConfigSide): string {
  const sides = `${a.name} (kubelet ${formatMinor(a.minor)}) and ${b.name} (kubelet ${formatMinor(b.minor)})`;
  if (worst === null) return `${sides}: no effective difference\n`;
  const rows = differences.map((one) => [one.path, sideText(one.path, one.before), sideText(one.path, one.after), classText(one)]);
  const count = differences.length === 1 ? '1 field differs' : `${differences.length} fields differ`;
  return joinLines([
    ...renderTable([['FIELD', a.name, b.name, 'LIVE CHANGE'], ...rows]),
    '',
    `${sides}: ${count}; highest impact: ${worst}`,
  ]);
}

function sideText(path: string, side: SideValue): string {
  const text = inlineValue(shownSide(path, side).value);
  return side.isDefault ? `${text} (default)` : text;
}

/** A value without credentials; unset values stay unset. */
function shownSide(path: string, { value, isDefault }: SideValue): SideValue {
  return { value: value === undefined ? value : masked(path, value), isDefault };
}

function classText(difference: FieldDifference): string {
  return `${difference.class}: ${difference.reason}${difference.nodeSpecific ? ' (host-specific)' : ''}`;
}

/** A comparison as a document; unset values are omitted. */
export function diffDocument({ differences, worst }: ConfigDiff, a: ConfigSide, b: ConfigSide): object {
  return {
    before: { name: a.name, kubernetesVersion: formatMinor(a.minor) },
    after: { name: b.name, kubernetesVersion: formatMinor(b.minor) },
    worst,
    differences: differences.map(({ path, before, after, class: liveChange, reason, nodeSpecific }) => ({
      path,
      before: shownSide(path, before),
      after: shownSide(path, after),
      liveChange,
      reason,
      nodeSpecific,
    })),
  };
}
