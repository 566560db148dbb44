import { joinLines } from '../../base/text/styled.ts';
import { renderTable } from '../../base/text/table.ts';
import { wrapText } from '../../base/text/wrap-line.ts';
import { inlineValue } from '../../codec/inline-value.ts';
import type { Bounds, Danger, FlagDeprecation, LiveChange } from '../../kubelet/catalogue/catalogue.ts';
import { isSafeToRaise } from '../../kubelet/validate/classify-changes.ts';
import type { Explanation } from './explain.ts';
import type { FieldExplanation } from './explain-field.ts';
import type { Member, Period } from './explanation.ts';

type Of<K extends Explanation['kind']> = Extract<Explanation, { readonly kind: K }>;

const INDENT = '    ';
const WIDTH = 76;

/** Prints an explanation in the layout of kubectl explain. */
export function renderExplanation(explanation: Explanation): string {
  switch (explanation.kind) {
    case 'Field':
      return renderField(explanation);
    case 'FieldList':
      return renderList(explanation);
    case 'Matches':
      return renderMatches(explanation);
    case 'Flag':
      return renderFlag(explanation);
    case 'FeatureGate':
      return renderGate(explanation);
  }
}

function renderField(field: FieldExplanation): string {
  const rows: [string, string][] = [];
  if (field.type !== 'Object' && field.type !== '[]Object')
    rows.push(['DEFAULT:', field.known ? defaultText(field.default) : notKnown(field)]);
  if (field.values !== null) rows.push(['VALUES:', field.values.map((value) => (value === '' ? '""' : value)).join(', ')]);
  rows.push(['SINCE:', field.until === null ? field.since : `${field.since}, last in ${field.until}`]);
  if (!field.known) rows.push(['', `not supported by kubelet ${field.kubernetesVersion}`]);
  if (field.kubeadm !== null) rows.push(['KUBEADM:', `${inlineValue(field.kubeadm.value)} (${field.kubeadm.source})`]);
  rows.push(['FLAG:', counterpartText(field)]);
  rows.push(...titled('GATES:', field.featureGates.map(gateText)));
  rows.push(
    ...titled('LIVE CHANGE:', [
      LIVE_CHANGES[field.liveChange.class],
      ...wrapText(`${field.liveChange.reason}${isSafeToRaise(field.path) ? '; raising it is safe' : ''}`, WIDTH - 12),
    ]),
  );
  if (field.danger !== null) rows.push(...titled('DANGER:', wrapText(dangerText(field.danger), WIDTH - 12)));
  if (field.bounds !== null) rows.push(...titled('USUAL:', wrapText(boundsText(field.bounds), WIDTH - 12)));
  rows.push(...titled('NOTE:', wrapText(field.note ?? '', WIDTH - 12)));
  rows.push(
    ...titled(
      'RULES:',
      field.rules.flatMap((rule) => wrapText(rule, WIDTH - 12)),
    ),
  );
  return text([
    ...header(field.kubernetesVersion),
    '',
    `FIELD: ${field.path} <${field.type}>`,
    '',
    ...indented(wrapText(field.description, WIDTH)),
    '',
    ...renderTable(rows),
    ...periodLines('DEFAULT BY VERSION:', field.defaults, (value) => defaultText(value)),
    ...periodLines('VALUES BY VERSION:', field.valuesByVersion, (values) => values.map((value) => value || '""').join(', ')),
    ...memberLines(field.members),
  ]);
}

function titled(title: string, lines: readonly string[]): [string, string][] {
  return lines.map((line, i) => [i === 0 ? title : '', line]);
}

/** `logs-secrets: from verbosity 8 on, ...; such a value needs --allow unsafe`. */
function dangerText({ kind, reason, when }: Danger): string {
  const change = when === undefined ? 'a change' : 'raised' in when ? 'a higher value' : 'such a value';
  return `${kind}: ${reason}; ${change} needs --allow unsafe`;
}

function boundsText({ min, max, reason }: Bounds): string {
  const range = [...(min === undefined ? [] : [`from ${min}`]), ...(max === undefined ? [] : [`up to ${max}`])].join(' ');
  return `${range}, other values are unsafe: ${reason}`;
}

function gateText({ name, stage, default: value, locked }: FieldExplanation['featureGates'][number]): string {
  return stage === null ? `${name}: not in this version` : `${name}: ${stage}, ${value === true ? 'on' : 'off'}${locked ? ', locked' : ''}`;
}

function notKnown({ kubernetesVersion }: FieldExplanation): string {
  return `none in ${kubernetesVersion}`;
}

function defaultText(value: FieldExplanation['default']): string {
  return value === null ? 'unset' : inlineValue(value);
}

function renderList({ kubernetesVersion, members }: Of<'FieldList'>): string {
  return text([...header(kubernetesVersion), ...memberLines(members)]);
}

function renderMatches({ text: part, kubernetesVersion, fields, flags, featureGates }: Of<'Matches'>): string {
  const section = (title: string, rows: readonly (readonly string[])[]): readonly string[] =>
    rows.length === 0 ? [] : ['', title, ...indented(renderTable(rows))];
  return text([
    `Names of kubelet ${kubernetesVersion} that contain ${part}:`,
    ...memberLines(fields),
    ...section(
      'FLAGS:',
      flags.map(({ name, field }) => [`--${name}`, field ?? 'no field']),
    ),
    ...section(
      'FEATURE GATES:',
      featureGates.map(({ name, stage }) => [name, stage ?? '']),
    ),
  ]);
}

function renderFlag(flag: Of<'Flag'>): string {
  const rows: [string, string][] = [
    ['DEFAULT:', flag.default === '' ? '""' : flag.default],
    ['SINCE:', flag.removedIn === null ? flag.since : `${flag.since}, removed in ${flag.removedIn}`],
  ];
  if (!flag.known) rows.push(['', `not supported by kubelet ${flag.kubernetesVersion}, which fails at startup with it`]);
  rows.push(['FIELD:', fieldText(flag)]);
  if (flag.deprecated !== null) {
    const { since, how } = flag.deprecated;
    rows.push([
      'DEPRECATED:',
      [since === null ? 'yes' : `since ${since}`, how === null ? '' : DEPRECATIONS[how]].filter(Boolean).join(': '),
    ]);
  }
  return text([
    `FLAG: --${flag.name} <${flag.type}>, kubelet ${flag.kubernetesVersion}`,
    '',
    ...renderTable(rows),
    ...periodLines('DEFAULT BY VERSION:', flag.defaults, (value) => value || '""'),
  ]);
}

function fieldText({ field, kubernetesVersion }: Of<'Flag'>): string {
  if (field === null) return 'none: configurable only as a flag';
  return field.known ? `${field.path}: the flag overrides the field` : `${field.path}, since ${field.since}: not in ${kubernetesVersion}`;
}

function renderGate(gate: Of<'FeatureGate'>): string {
  const rows: [string, string][] = gate.known
    ? [
        ['STAGE:', String(gate.stage)],
        ['DEFAULT:', gate.locked === true ? `${gate.default}, locked: any other value is rejected` : String(gate.default)],
      ]
    : [['STAGE:', `not supported by kubelet ${gate.kubernetesVersion}, which fails at startup with it`]];
  if (gate.fields.length > 0) rows.push(['FIELDS:', gate.fields.join(', ')]);
  if (gate.dependencies.length > 0) rows.push(['NEEDS:', gate.dependencies.join(', ')]);
  if (gate.removedIn !== null) rows.push(['REMOVED:', `in ${gate.removedIn}`]);
  return text([
    `FEATURE GATE: ${gate.name}, kubelet ${gate.kubernetesVersion}`,
    '',
    ...renderTable(rows),
    '',
    'BY VERSION:',
    ...indented(
      renderTable(
        gate.versions.map((period) => [
          periodText(period),
          period.value.stage,
          `${period.value.default}${period.value.lockToDefault ? ', locked' : ''}`,
        ]),
      ),
    ),
  ]);
}

function header(version: string): readonly string[] {
  return renderTable([
    ['KIND:', 'KubeletConfiguration'],
    ['VERSION:', `kubelet.config.k8s.io/v1beta1, kubelet ${version}`],
  ]);
}

/** Empty if the value never changed. */
function periodLines<T>(title: string, list: readonly Period<T>[], show: (value: T) => string): readonly string[] {
  if (list.length < 2) return [];
  return ['', title, ...indented(renderTable(list.map((period) => [periodText(period), show(period.value)])))];
}

function periodText({ from, to }: Period<unknown>): string {
  if (to === null) return `since ${from}`;
  return from === to ? from : `${from} to ${to}`;
}

function memberLines(members: readonly Member[]): readonly string[] {
  if (members.length === 0) return [];
  const nested = members.some((member) => member.members !== undefined);
  const rows = nested ? treeRows(members, 0) : members.map(({ path, type, description }) => [path, `<${type}>`, description]);
  return ['', 'FIELDS:', ...indented(renderTable(rows))];
}

/** Names only, indented by level, with the effective default. */
function treeRows(members: readonly Member[], level: number): readonly (readonly string[])[] {
  return members.flatMap(({ path, type, default: value, members: under = [] }) => [
    [`${'  '.repeat(level)}${path.slice(path.lastIndexOf('.') + 1)}`, `<${type}>`, value === null ? '' : inlineValue(value)],
    ...treeRows(under, level + 1),
  ]);
}

function counterpartText({ flag, known }: FieldExplanation): string {
  if (flag === null) return 'none';
  const names = [flag.name, ...flag.aliases].map((name) => `--${name}`).join(', ');
  if (!flag.known) return flag.removedIn === null ? `${names}, not in this version` : `${names}, removed in ${flag.removedIn}`;
  if (!known) return `${names}: in this version configurable only as a flag`;
  return flag.deprecation === null
    ? `${names}: overrides the field`
    : `${names}: overrides the field; deprecated: ${DEPRECATIONS[flag.deprecation]}`;
}

const DEPRECATIONS: { readonly [D in FlagDeprecation]: string } = {
  'to-be-removed': 'it will be removed',
  'use-config-file': 'set the field of the configuration file',
  'use-other-flag': 'use the new name of the flag',
  'leaked-cadvisor-flag': 'a cAdvisor flag that was exposed by accident',
};

const LIVE_CHANGES: { readonly [L in LiveChange]: string } = {
  safe: 'safe: does not affect running pods',
  drain: 'drain: drain the node before the change',
  'new-pods-only': 'new-pods-only: affects new pods; a change that would terminate running pods is refused',
  unsafe: 'unsafe: may disconnect the node or lose its state',
};

function indented(lines: readonly string[]): readonly string[] {
  return lines.map((line) => `${INDENT}${line}`);
}

function text(lines: readonly string[]): string {
  return joinLines(lines.map((line) => line.trimEnd()));
}
