import { joinLines } from '../../base/text/styled.ts';
import { renderTable } from '../../base/text/table.ts';
import { inlineValue } from '../../codec/inline-value.ts';
import type { ExplainedField, LayerValue, NodeExplanation } from './node-explanation.ts';

/** Renders an explanation as a table; `wide` also shows overridden values and flags without a field. */
export function renderNodeExplanation(explanation: NodeExplanation, wide: boolean): string {
  const { node, kubernetesVersion, fields, flags, disagreements } = explanation;
  const rows = fields.flatMap((field) => [[field.path, valueText(field), fromText(field)], ...(wide ? lostRows(field) : [])]);
  const others = flags.filter(({ field }) => field === null);
  return joinLines([
    `${node}: kubelet ${kubernetesVersion}${stateText(explanation)}`,
    ...sourceLines(explanation),
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
    ...(disagreements.length === 0 ? [] : ['', ...disagreements.map(({ message }) => `! ${message}`)]),
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

function valueText({ value }: LayerValue): string {
  return inlineValue(value);
}

function fromText({ layer, source }: LayerValue): string {
  return `${layer}: ${source}`;
}

function lostRows({ lost }: ExplainedField): readonly (readonly string[])[] {
  return lost.map((word) => ['', valueText(word), `overrides ${fromText(word)}`]);
}
